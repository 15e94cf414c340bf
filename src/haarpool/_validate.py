"""Checks of single values: whole numbers, real numbers, choices, seeds.

Each check returns the value in its plain Python type, or raises a `HaarPoolError` that names the
parameter; `remedy` and `**values` are those of the error. `setting` declares a dataclass field
together with its help text for the shell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

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


class Option(NamedTuple):
    """A value that a user may set: its default, whose type values have, and its limits.

    Attributes:
        default: Value by default. With `None`, values have the type of the limits, or are `None`;
            without limits too, any value is right.
        limits: Smallest and largest number, `None` for no largest one; those of a real number are
            excluded, unless one is the default. The choices of a text. () for no limits.
    """

    default: Any
    limits: tuple[Any, ...] = ()

    def check(self, name: str, value: Any) -> Any:
        """Check the value of a parameter; "pooling.ratio" is an entry of a mapping.

        Example:
            >>> Option(2, (1, 9)).check("width", 2.5)
            Traceback (most recent call last):
            haarpool.errors.HaarPoolError: expected width in 1..9, got 2.5; pass for example width=2
        """
        default, limits = self
        if type(value) is type(default) and value == default:
            return value
        kind = limits[0] if default is None and limits else default
        example = self.example(name)
        if isinstance(kind, bool):
            return bool(choice(name, value, (True, False, 0, 1)))
        if isinstance(kind, int | float):
            low, high = limits or (-INFINITY, None)
            if isinstance(kind, int):
                return whole_number(name, value, low, high, **example)
            high = INFINITY if high is None else high
            ends = {"includes_minimum": default == low, "includes_maximum": default == high}
            return real_number(name, value, low, high, **ends, **example)
        if isinstance(kind, str) and limits:
            return choice(name, value, limits)
        if isinstance(kind, str) and not isinstance(value, str):
            raise HaarPoolError("as text", f"{value!r}", parameter=name, **example)
        return value

    def is_consistent(self) -> bool:
        """Return whether the limits are limits, or choices, and the default is among them."""
        default, limits = self
        if not limits or isinstance(default, bool):
            return True
        if isinstance(limits[0], str):
            return default is None or default in limits
        low, high = limits if len(limits) == 2 else (None, None)
        high = INFINITY if high is None else high
        known: list[Any] = [low, low if default is None else default, high]
        return all(isinstance(one, int | float) for one in known) and known == sorted(known)

    def example(self, name: str) -> dict[str, Any]:
        """Return the remedy of an error, and the value that it mentions."""
        return {"remedy": f"pass for example {{{name}}}", name: self.default}


def make_options(
    owner: str, defaults: Mapping[str, Any], limits: Mapping[str, Sequence[Any]]
) -> dict[str, Option]:
    """Return the options of an owner by name; their limits must be consistent."""
    for unknown in [name for name in limits if name not in defaults]:
        expected = f"limits of options of {owner}: {', '.join(defaults) or 'it has none'}"
        raise HaarPoolError(expected, f"{unknown!r}", "rename it, or leave it out")
    result = {name: Option(defaults[name], tuple(limits.get(name, ()))) for name in defaults}
    for name, option in result.items():
        if not option.is_consistent():
            expected = f"limits of {owner} with the default {name}={option.default!r} inside"
            remedy = f'pass for example limits={{"{name}": (smallest, largest)}}'
            raise HaarPoolError(expected, f"{option.limits}", remedy)
    return result


def seed(value: Any) -> int:
    """Check a seed of random numbers."""
    return whole_number("seed", value, 0, MAX_SEED, remedy="pass for example {seed}", seed=0)


def setting(default: Any, help: str, **shell: Any) -> Any:  # noqa: A002
    """Declare a dataclass field that is also an argument of the shell command.

    Args:
        default: Default value of the field.
        help: Help text of the argument.
        **shell: `metavar`, `choices`, and `type` (if it is not the type of the default); `limits`
            of its values, see `Option`.
    """
    return field(default=default, metadata={"help": help, **shell})
