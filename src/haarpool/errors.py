"""Errors and warnings of haarpool."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class HaarPoolError(ValueError):
    """Invalid input: what was expected, what was passed instead, and how to fix it.

    Example:
        >>> print(HaarPoolError("a ratio in (0, 1)", "1.5", "pass for example ratio=0.5"))
        expected a ratio in (0, 1), got 1.5; pass for example ratio=0.5
    """

    def __init__(self, expected: str, got: str, remedy: str) -> None:
        # All three go to `args`, so that the error survives pickling between processes.
        super().__init__(expected, got, remedy)
        self.expected, self.got, self.remedy = expected, got, remedy

    def __str__(self) -> str:
        return f"expected {self.expected}, got {self.got}; {self.remedy}"


class MissingExtraError(HaarPoolError, ImportError):
    """An optional package is not installed."""


class HaarPoolWarning(UserWarning):
    """A problem that does not stop the work, and what was done instead."""


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: Name of the module, for example "sklearn.cluster".
        extra: Extra of haarpool that installs the package, for example "cluster".

    Returns:
        The module.

    Raises:
        MissingExtraError: The package is not installed or cannot be imported.

    Example:
        >>> import_extra("no_such_package.part", "cluster")
        Traceback (most recent call last):
        haarpool.errors.MissingExtraError: expected the optional package 'no_such_package',
        got No module named 'no_such_package'; run pip install "haarpool[cluster]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"the optional package {module.partition('.')[0]!r}",
            f"{error}",
            f'run pip install "haarpool[{extra}]"',
        ) from error
