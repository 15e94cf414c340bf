"""Readers: one file, or folder, per kind of source of graphs; a reader is found by being here."""

from haarpool._modules import import_modules

import_modules(__name__)
