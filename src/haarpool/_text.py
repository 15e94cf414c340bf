"""Names from data in messages: few enough to read, and without control characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Control characters, those that change the direction of text, and bytes of names that are no text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shorten(names: Sequence[str], most: int = 10) -> str:
    """List names for a message, the first ones if there are many.

    Args:
        names: The names.
        most: Number of names that are listed.

    Example:
        >>> shorten(["a", "b", "c"]), shorten(["a", "b", "c"], most=1)
        ('a, b, c', 'a and 2 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with control characters as escapes.

    Args:
        text: The text.
        keep: Control characters that stay.

    Example:
        >>> print(printable("\x1b[31mred\x1b[0m, für Ωmega\n"))
        \x1b[31mred\x1b[0m, für Ωmega\n
    """

    def escape(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

    return _CONTROL.sub(escape, text)
