"""Readers: one file, or folder, per kind of source of graphs; a reader is found by being here."""

from importlib import import_module

from haarpool._modules import module_names

for _name in module_names(__name__):
    import_module(f"{__name__}.{_name}")
