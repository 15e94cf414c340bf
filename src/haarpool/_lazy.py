"""Names of a package that are imported on first use (PEP 562)."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]], *others: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: Its name.
        modules: Its modules, each with the names that are imported from it.
        *others: Names that the package defines itself.
    """
    home = {name: f"{package}.{module}" for module, names in modules.items() for name in names}
    every = sorted([*home, *others])

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(import_module(package), name, value)  # the next use does not come here
        return value

    return get, lambda: every, every
