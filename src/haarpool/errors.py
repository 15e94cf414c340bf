"""Errors and warnings of haarpool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def python_words(name: str, value: Any = ...) -> str:
    """Return a parameter, or the passing of a value to it, as Python writes it.

    Args:
        name: The parameter; "chain.ratio" is an entry of a parameter that is a mapping.
        value: The value; `...` for the name alone.

    Example:
        >>> python_words("epochs"), python_words("split", "random")
        ('epochs', 'split="random"')
        >>> python_words("chain.ratio"), python_words("chain.ratio", 0.5)
        ('ratio of chain', 'chain={"ratio": 0.5}')
    """
    name, *entries = name.split(".")
    if value is ...:
        return " of ".join([*reversed(entries), name])
    for entry in reversed(entries):
        value = {entry: value}
    shown = repr(value).replace("'", '"').replace("Ellipsis", "...")
    return f"{name}={shown}"


def _fill_in(text: str, values: Mapping[str, Any], words: Callable[..., str]) -> str:
    """Write the parameters that a text mentions as `{name}`."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", words(name, value))
    return text


class HaarPoolError(ValueError):
    """Invalid input: what was expected, what was passed instead, and how to fix it.

    The texts mention parameters as `{name}`, so that each front end can write them in its own
    words: Python as `ratio=0.5`, the shell as `--ratio 0.5`.

    Args:
        expected: What was expected.
        got: What was passed instead.
        remedy: How to fix it.
        parameter: The parameter that has this value; the message starts with it. An entry of a
            mapping is "pooling.ratio".
        **values: By name of a parameter in the texts, a value to pass to it; `...` for the name
            alone.

    Example:
        >>> print(HaarPoolError("in (0, 1)", "1.5", "pass {ratio}", parameter="ratio", ratio=0.5))
        expected ratio in (0, 1), got 1.5; pass ratio=0.5
    """

    def __init__(
        self, expected: str, got: str, remedy: str, *, parameter: str = "", **values: Any
    ) -> None:
        # The texts go to `args`, so that the error survives pickling between processes.
        super().__init__(expected, got, remedy)
        self.parameter, self.values = parameter, values
        self.words: Callable[..., str] = python_words

    def texts(self, words: Callable[..., str] | None = None) -> tuple[str, str, str]:
        """Return what was expected, what came, and the remedy.

        Args:
            words: Writes a parameter: `words(name)`, or `words(name, value)`; by default those of
                the function that the user called, see `errors_in_words`.
        """
        words = words or self.words
        expected, got, remedy = self.args
        start = f"{words(self.parameter)} " if self.parameter else ""
        expected, remedy = (_fill_in(text, self.values, words) for text in (expected, remedy))
        return start + expected, got, remedy

    def located(self, where: str) -> HaarPoolError:
        """Return the same error with the place of the input, for example "in graph 3"."""
        expected, got, remedy = self.args
        got = f"{got} {where}"
        return HaarPoolError(expected, got, remedy, parameter=self.parameter, **self.values)

    def inside(self, setting: str) -> HaarPoolError:
        """Return the same error about the entries of a setting that is a mapping.

        Example:
            >>> error = HaarPoolError("below 1", "3", "pass {ratio}", parameter="ratio", ratio=0.5)
            >>> print(error.inside("chain"))
            expected ratio of chain below 1, got 3; pass chain={"ratio": 0.5}
        """
        expected, got, remedy = self.args
        values = {}
        for name, value in self.values.items():
            values[f"{setting}.{name}"] = value
            renamed = f"{{{setting}.{name}}}"
            expected, remedy = (t.replace(f"{{{name}}}", renamed) for t in (expected, remedy))
        parameter = f"{setting}.{self.parameter}" if self.parameter else ""
        return HaarPoolError(expected, got, remedy, parameter=parameter, **values)

    @property
    def expected(self) -> str:
        """What was expected."""
        return self.texts()[0]

    @property
    def got(self) -> str:
        """What was passed instead."""
        return self.texts()[1]

    @property
    def remedy(self) -> str:
        """How to fix it."""
        return self.texts()[2]

    def in_words(self, words: Callable[..., str] | None = None) -> str:
        """Return the whole message, with parameters as `words` writes them, see `texts`."""
        expected, got, remedy = self.texts(words)
        return f"expected {expected}, got {got}; {remedy}"

    def __str__(self) -> str:
        return self.in_words()


@contextmanager
def errors_in_words(words: Callable[..., str]) -> Iterator[None]:
    """Let errors inside a block write parameters as a front end does.

    A front end is a function that users call; functions that it calls have other parameters.

    Args:
        words: Writes a parameter, see `HaarPoolError.texts`.

    Example:
        >>> with errors_in_words(lambda name, value=...: f"read({name}={value})"):
        ...     raise HaarPoolError("a folder", "none", "pass {root}", root="DIR")
        Traceback (most recent call last):
        haarpool.errors.HaarPoolError: expected a folder, got none; pass read(root=DIR)
    """
    try:
        yield
    except HaarPoolError as error:
        error.words = words
        raise


class MissingExtraError(HaarPoolError, ImportError):
    """An optional package is not installed."""


class HaarPoolWarning(UserWarning):
    """A problem that does not stop the work, and what was done instead.

    Args:
        text: The message; it mentions parameters as `{name}`, as a `HaarPoolError` does.
        **values: By name of a parameter in the text, its value; `...` for the name alone.

    Example:
        >>> print(HaarPoolWarning("{patience} has no effect", patience=...))
        patience has no effect
    """

    def __init__(self, text: str, **values: Any) -> None:
        super().__init__(text)
        self.values = values

    def in_words(self, words: Callable[..., str] = python_words) -> str:
        """Return the message, with parameters as `words` writes them."""
        return _fill_in(self.args[0], self.values, words)

    def __str__(self) -> str:
        return self.in_words()


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: Name of the module, for example "sklearn.cluster".
        extra: Extra of haarpool that installs the package, for example "cluster".

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
