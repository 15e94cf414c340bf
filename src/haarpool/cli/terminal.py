"""What commands print: safe for a terminal, and as wide as it is; notes and progress."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable, Sequence
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


def print_note(text: str) -> None:
    """Print a line on stderr; of several processes only one does."""
    if is_main_process():
        print(f"haarpool: {printable(text)}", file=sys.stderr)


def is_main_process() -> bool:
    """Return whether this process prints, of those that `torchrun` started."""
    return os.environ.get("RANK", "0") == "0"


def progress_option(arguments: Namespace) -> bool | Callable[[str], object] | None:
    """Return `progress=` of the library: nothing, a bar on a terminal, or lines without one."""
    if arguments.quiet:
        return False
    return None if sys.stderr.isatty() else print_note


def terminal_width() -> int:
    """Return the columns of the terminal; 80 where they are not known."""
    return shutil.get_terminal_size((80, 24)).columns


def print_entry(name: str, lines: Sequence[str], width: int) -> None:
    """Print lines of text, all of them to the right of a name.

    Args:
        name: The name.
        lines: The lines.
        width: Columns of the name; there are two more before the text.
    """
    print(f"{name:{width}} ", f"\n{'':{width + 2}}".join(lines))


def wrap(text: str, indent: int, following: str = "") -> list[str]:
    """Break a text into lines that fit the terminal.

    Args:
        text: The text. Words, and thus paths, are not broken.
        indent: Columns that are taken at the left of each line.
        following: What the lines after the first begin with.
    """
    wrapper = textwrap.TextWrapper(max(terminal_width() - indent, 20), subsequent_indent=following)
    wrapper.break_on_hyphens = wrapper.break_long_words = False
    return wrapper.wrap(text) or [""]
