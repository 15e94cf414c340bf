"""Readers: one file, or folder, per kind of source of graphs. Each is registered by being here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from haarpool.datasets.readers.registry import (
    Reader,
    find_by_name,
    find_by_suffix,
    full_name,
    readers,
    register,
    sources,
)

__all__ = [
    "Reader",
    "find_by_name",
    "find_by_suffix",
    "full_name",
    "readers",
    "register",
    "sources",
]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
