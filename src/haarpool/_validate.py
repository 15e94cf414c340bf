"""Checks of single values: whole numbers, real numbers, choices, seeds.

Each check returns the value in its plain Python type, or raises a `HaarPoolError` that names the
parameter; `remedy` and `**values` are those of the error. `setting` declares a dataclass field
together with its help text for the shell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, TypeVar

from haarpool.errors import HaarPoolError

MAX_SEED = 2**31 - 1
INFINITY = float("inf")

Choice = TypeVar("Choice")


def whole_number(
    name: str,
    value: Any,
    minimum: float = 1,
    maximum: float | None = None,
    *,
    remedy: str = "pass a whole number",
    **values: Any,
) -> int:
    """Check a whole number; numpy integers count, booleans do not.

    Example:
        >>> whole_number("epochs", 0)
        Traceback (most recent call last):
        haarpool.errors.HaarPoolError: expected epochs >= 1, got 0; pass a whole number
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < minimum or (maximum is not None and value > maximum):
        limits = f">= {minimum}" if maximum is None else f"in {minimum}..{maximum}"
        if minimum == -INFINITY:
            limits = "as a whole number"
        raise HaarPoolError(limits, f"{value!r}", remedy, parameter=name, **values)
    return int(value)


def real_number(
    name: str,
    value: Any,
    minimum: float = 0.0,
    maximum: float = INFINITY,
    *,
    includes_minimum: bool = True,
    includes_maximum: bool = False,
    remedy: str = "pass a number",
    **values: Any,
) -> float:
    """Check a real number in an interval, by default minimum <= value < maximum.

    Example:
        >>> real_number("dropout", 1.5, maximum=1.0)
        Traceback (most recent call last):
        haarpool.errors.HaarPoolError: expected dropout in [0, 1), got 1.5; pass a number
    """
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_real else float("nan")  # NaN is in no interval
    above = number >= minimum if includes_minimum else number > minimum
    below = number <= maximum if includes_maximum else number < maximum
    if not (above and below):
        left, right = "[" if includes_minimum else "(", "]" if includes_maximum else ")"
        interval = f"in {left}{minimum:g}, {maximum:g}{right}"
        if minimum == -INFINITY:
            interval = "as a number"
        raise HaarPoolError(interval, f"{value!r}", remedy, parameter=name, **values)
    return number


def choice(
    name: str, value: Choice, choices: Sequence[Choice], *, remedy: str = "choose one of these"
) -> Choice:
    """Check that a value is one of a few.

    Example:
        >>> choice("task", "x", ("a", "b"))
        Traceback (most recent call last):
        haarpool.errors.HaarPoolError: expected task "a" or "b", got 'x'; choose one of these
    """
    if not any(value is one or (type(value) is type(one) and value == one) for one in choices):
        shown = [f'"{one}"' if isinstance(one, str) else f"{one}" for one in choices]
        listed = " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
        example: dict[str, Any] = {}
        if isinstance(value, str) and (close := similar(value, choices)):
            remedy = f"did you mean {{{name}}}? {remedy[0].upper()}{remedy[1:]}"
            example = {name: close}
        raise HaarPoolError(listed, f"{value!r}", remedy, parameter=name, **example)
    return value


def similar(value: str, choices: Sequence[Any]) -> str | None:
    """Return the choice that is most similar to a text."""
    from difflib import get_close_matches  # only an error needs it

    texts = [one for one in choices if isinstance(one, str)]
    return next(iter(get_close_matches(value, texts, n=1)), None)


def like_default(
    name: str, value: Any, default: Any, limits: tuple[Any, ...] | None = None
) -> None:
    """Check that a value is of the type of a default: a number, a boolean or text.

    Args:
        name: Name of the parameter.
        value: The value.
        default: Its default; with a default of another type, as None, any value is right.
        limits: Smallest and largest value, None for no largest one; those of a real number are
            excluded. The choices of a text.

    Example:
        >>> like_default("width", 2.5, default=2)
        Traceback (most recent call last):
        haarpool.errors.HaarPoolError: expected width as a whole number, got 2.5; pass for example
        width=2
    """
    remedy, example = f"pass for example {{{name}}}", {name: default}
    if isinstance(default, bool):
        choice(name, value, (True, False, 0, 1))
    elif isinstance(default, int):
        low, high = limits or (-INFINITY, None)
        whole_number(name, value, low, high, remedy=remedy, **example)
    elif isinstance(default, float):
        low, high = limits or (-INFINITY, None)
        high = INFINITY if high is None else high
        real_number(name, value, low, high, includes_minimum=False, remedy=remedy, **example)
    elif isinstance(default, str) and limits:
        choice(name, value, limits)
    elif isinstance(default, str) and not isinstance(value, str):
        raise HaarPoolError("as text", f"{value!r}", remedy, parameter=name, **example)


def seed(value: Any) -> int:
    """Check a seed of random numbers."""
    return whole_number("seed", value, 0, MAX_SEED, remedy="pass for example {seed}", seed=0)


def setting(default: Any, help: str, **shell: Any) -> Any:  # noqa: A002
    """Declare a dataclass field that is also an argument of the shell command.

    Args:
        default: Default value of the field.
        help: Help text of the argument.
        **shell: `metavar`, `choices`, and `type` (if it is not the type of the default).
    """
    return field(default=default, metadata={"help": help, **shell})
