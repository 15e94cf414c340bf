"""Packages whose modules are found by being there: one file for each thing that varies."""

from __future__ import annotations

from importlib.util import find_spec
from pkgutil import iter_modules


def module_names(package: str) -> list[str]:
    """Return the names of the modules of a package but private ones, without importing it.

    Example:
        >>> module_names("haarpool.tasks")
        ['classification', 'multilabel', 'regression']
    """
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations
    names = (module.name for module in iter_modules(folders))
    return sorted(name for name in names if not name.startswith("_"))
