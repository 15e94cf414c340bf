"""Text from data: in messages and tables, and amounts of things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters
# Control characters, those that change the direction of text, and bytes of names that are no text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shorten(names: Sequence[str], most: int = 10) -> str:
    """List names for a message, at most the first `most`.

    Example:
        >>> shorten(["a", "b", "c"]), shorten(["a", "b", "c"], most=1)
        ('a, b, c', 'a and 2 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with control characters as escapes, but those to keep.

    Example:
        >>> print(printable("\x1b[31mred\x1b[0m, für Ωmega\n"))
        \x1b[31mred\x1b[0m, für Ωmega\n
    """

    def escape(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

    return _CONTROL.sub(escape, text)


def count(amount: int, singular: str, plural: str = "") -> str:
    """Format an amount of something; the plural is the singular with an s by default.

    Example:
        >>> count(1, "value"), count(2, "class", "classes")
        ('1 value', '2 classes')
    """
    return f"{amount:,} {singular if amount == 1 else plural or singular + 's'}"


def safe_cells(cells: Iterable[Any]) -> list[Any]:
    """Return the cells of a row to write so that spreadsheet programs read no formula.

    Text that starts with =, +, -, @, a tab or a carriage return gets an apostrophe in front, unless
    it is a number or a single character. So does such text behind apostrophes: no two texts become
    the same.

    Example:
        >>> safe_cells(["=HYPERLINK(A1)", "@me", "-1", "-C", "+", "a=b", -0.5])
        ["'=HYPERLINK(A1)", "'@me", '-1', "'-C", '+', 'a=b', -0.5]
    """
    return [f"'{cell}" if _is_formula(cell) else cell for cell in cells]


def _is_formula(cell: Any) -> bool:
    text = cell.lstrip("'") if isinstance(cell, str) else ""
    if len(text) < 2 or text[0] not in FORMULA:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return "_" in text  # Python allows it in numbers
