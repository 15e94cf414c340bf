"""Libraries that only some clusterings need, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from haarpool.errors import HaarPoolError


def extra(module: str) -> Any:
    """A module of the extra `haarpool[cluster]`, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise HaarPoolError(
            f"the package that holds {module.split('.')[0]!r}",
            f"{error}",
            'pip install "haarpool[cluster]"',
        ) from error
