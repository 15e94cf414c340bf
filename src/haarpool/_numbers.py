"""Numbers as text and as JSON, each form in one place."""

from __future__ import annotations

import math
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
