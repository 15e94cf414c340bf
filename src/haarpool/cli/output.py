"""What the commands print: names from data must not control the terminal."""

from __future__ import annotations

import errno
import os
from typing import Any

from haarpool._text import printable
from haarpool.errors import HaarPoolError

_NAME_BYTES = 255  # of a file or folder, on all common file systems


class PrintableOutput:
    """A stream that writes printable text to another one, in the lines in which it comes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text with control characters as escapes."""
        self._stream.write(printable(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def system_error(error: OSError) -> str:
    """Return the message for an error of the system, such as no permission or a full disk."""
    if error.errno != errno.ENAMETOOLONG or error.filename is None:
        return str(error)
    path = os.fsencode(error.filename)
    name = max(path.split(os.fsencode(os.sep)), key=len)
    if len(name) <= _NAME_BYTES:
        name = path
    got = f"{len(name):,} bytes: {os.fsdecode(name[:40])}..."
    expected = f"a name of at most {_NAME_BYTES} bytes, in a path of at most 4,095"
    return str(HaarPoolError(expected, got, "choose a shorter name or path"))
