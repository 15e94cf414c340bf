"""What is found by being there: the modules of a folder, and entry points of installed packages.

A package registers its own clusterings, layers, tasks or readers by an entry point in the group
`haarpool.clusterings`, `haarpool.layers`, `haarpool.tasks` or `haarpool.readers`, which names the
module to import.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import ParamSpec, TypeVar

from haarpool.errors import HaarPoolWarning

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


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


def import_modules(package: str) -> None:
    """Import the modules of a package but private ones; without those that raise an error."""
    for name in module_names(package):
        module = f"{package}.{name}"
        try:
            import_module(module)
        except Exception as error:  # whatever a file raises, others work
            spec = find_spec(module)
            _warn(f"{module if spec is None else spec.origin}", error)


@cache
def load_entry_points(group: str) -> None:
    """Import what installed packages name in a group; without those that raise an error."""
    from importlib.metadata import entry_points  # it takes time, and few names need it

    for entry in entry_points(group=group):
        try:
            entry.load()
        except Exception as error:  # whatever a package raises, others work
            _warn(f"entry point {entry.name} = {entry.value} of {group}", error)


def also_in_packages(
    group: str,
) -> Callable[[Callable[Arguments, Found | None]], Callable[Arguments, Found | None]]:
    """Return a decorator for a function that returns `None` if it finds nothing.

    Then the entry points of the group are loaded, and the function is called again.
    """

    def decorate(find: Callable[Arguments, Found | None]) -> Callable[Arguments, Found | None]:
        @wraps(find)
        def find_again(*args: Arguments.args, **options: Arguments.kwargs) -> Found | None:
            found = find(*args, **options)
            if found is None:
                load_entry_points(group)
                found = find(*args, **options)
            return found

        return find_again

    return decorate


def _warn(what: str, error: Exception) -> None:
    text = f"{what} was not loaded: {type(error).__name__}: {error}"
    warnings.warn(text, HaarPoolWarning, stacklevel=3)
