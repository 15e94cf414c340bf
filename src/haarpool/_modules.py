"""What is found by being there: the modules of a folder, and entry points of installed packages.

A package registers its own clusterings, layers, tasks or readers by an entry point in the group
`haarpool.clusterings`, `haarpool.layers`, `haarpool.tasks` or `haarpool.readers`, which names the
module to import.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from haarpool.errors import HaarPoolWarning


def module_names(package: str) -> list[str]:
    """Return the names of the modules of a package but private ones, without importing it.

    Example:
        >>> "regression" in module_names("haarpool.tasks")
        True
    """
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations
    names = (module.name for module in iter_modules(folders))
    return sorted(name for name in names if not name.startswith("_"))


@contextmanager
def warning_instead(subject: str) -> Iterator[None]:
    """Turn whatever a file or package raises into a warning, so that others work."""
    try:
        yield
    except Exception as error:
        text = f"{subject} was not loaded: {type(error).__name__}: {error}"
        warnings.warn(text, HaarPoolWarning, stacklevel=4)


def import_modules(package: str) -> None:
    """Import the modules of a package but private ones; without those that raise an error."""
    for name in module_names(package):
        spec = find_spec(module := f"{package}.{name}")
        with warning_instead(f"{module if spec is None else spec.origin}"):
            import_module(module)


@cache
def load_entry_points(group: str) -> None:
    """Import what installed packages name in a group; without those that raise an error."""
    from importlib.metadata import entry_points  # it takes time, and few names need it

    for entry in entry_points(group=group):
        with warning_instead(f"entry point {entry.name} = {entry.value} of {group}"):
            entry.load()
