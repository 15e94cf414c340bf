"""What commands write besides their results: notes, progress; and how wide lines are."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable

from haarpool._text import printable


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


def wrap(text: str, indent: int) -> list[str]:
    """Break a text into lines that fit the terminal.

    Args:
        text: The text. Words, and thus paths, are not broken.
        indent: Columns that are taken at the left of each line.
    """
    width = max(terminal_width() - indent, 20)
    lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    return lines or [""]
