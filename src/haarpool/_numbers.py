"""Numbers as text and as JSON, each form in one place."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

DASH = "–"  # in place of a number that is not there


def fixed(value: float, decimals: int = 1, sign: str = "") -> str:
    """Format a number with fixed decimals; zero has no sign, and NaN is a dash.

    The sign "+" shows that of positive numbers, too.

    Example:
        >>> [fixed(value, sign="+") for value in (1234.56, -0.04, -0.06, float("nan"))]
        ['+1,234.6', '0.0', '-0.1', '–']
    """
    if math.isnan(value):
        return DASH
    text = f"{value:{sign},.{decimals}f}"
    return text if text.strip("+-0.") else f"{0:.{decimals}f}"


def mean_and_std(mean: float, std: float | None, decimals: int = 1, mark: str = "") -> str:
    """Format a mean, with a mark behind it, and its standard deviation if there is one.

    Example:
        >>> mean_and_std(85.04, 4.93), mean_and_std(0.85, None, 2, "*")
        ('85.0 ± 4.9', '0.85*')
    """
    spread = "" if std is None else f" ± {fixed(std, decimals)}"
    return f"{fixed(mean, decimals)}{mark}{spread}"


def number(value: float | None) -> str:
    """Format a number with four digits; None and NaN give a dash.

    Example:
        >>> number(0.84210526), number(188), number(43471.0), number(None)
        ('0.8421', '188', '43,471', '–')
    """
    if value is None or math.isnan(value):
        return DASH
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def measured(mean: float, std: float | None = None) -> str:
    """Format mean ± standard deviation, both to the second digit of the standard deviation.

    Example:
        >>> measured(42.914, 1.2345), measured(0.00002, 0.000001), measured(42.914)
        ('42.9 ± 1.2', '2.0e-05 ± 1.0e-06', '42.91')
    """
    if std is None or not math.isfinite(mean + std):
        return number(mean)
    if 0 < max(abs(mean), std) < 1e-4:
        return f"{mean:.1e} ± {std:.1e}"
    # At most four digits of the mean, even if all repeats have the same score.
    scale = max(std, abs(mean) / 100) or 1
    return mean_and_std(mean, std, max(1 - math.floor(math.log10(scale)), 0))


def six_digits(values: Iterable[float]) -> list[str]:
    """Return the cells of numbers in a table."""
    return [f"{value:.6g}" for value in values]


def as_json(value: Any, digits: int = 17) -> Any:
    """Return a value that JSON can hold: null for numbers that are not finite.

    By default, numbers have all their significant digits.

    Example:
        >>> as_json({"r2": float("nan"), "ms": (0.123456789,)}, digits=3)
        {'r2': None, 'ms': [0.123]}
    """
    if isinstance(value, dict):
        return {name: as_json(one, digits) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one, digits) for one in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None
