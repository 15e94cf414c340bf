"""Progress of long work: a bar on a terminal, or a line of text now and then.

A function as `progress=` takes lines. The shell command passes one where it has no terminal; the
library alone prints no lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tqdm import tqdm

from haarpool.errors import HaarPoolError

# True shows a bar, False hides it, None shows it on a terminal; a function is called with lines.
ProgressOption = bool | None | Callable[[str], object]

SECONDS_PER_LINE = 30.0  # at least, within one piece of work
Item = TypeVar("Item")


class ProgressLines:
    """Lines about work in progress, with the time since its start and the time left.

    Args:
        show: Is called with each line.
        share: Share of the work that was done before.
    """

    def __init__(self, show: Callable[[str], object], share: float = 0.0) -> None:
        self._show, self._first_share = show, share
        self._start = self._last = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last line is old enough for another one."""
        return time.monotonic() - self._last >= SECONDS_PER_LINE

    def show(self, text: str, share: float | None = None) -> None:
        """Show a line.

        Args:
            text: What was done.
            share: Share of the work that is done, in [0, 1]; None if it is not known.
        """
        self._last = time.monotonic()
        seconds = self._last - self._start
        line = f"{text}, {format_seconds(seconds)}"
        if share is not None and self._first_share < share < 1:
            left = seconds * (1 - share) / (share - self._first_share)
            line += f", about {format_seconds(left)} left"
        self._show(line)


def is_hidden(progress: ProgressOption) -> bool | None:
    """Check `progress=`; return the argument `disable` of tqdm: lines take the place of a bar."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise HaarPoolError(
            "as True, False, None or a function",
            f"{progress!r}",
            "pass {progress} to show none",
            parameter="progress",
            progress=False,
        )
    return None if progress is None else progress is not True


@contextmanager
def show_progress(
    progress: ProgressOption, name: str, unit: str, total: int | None = None, **options: Any
) -> Iterator[Callable[[int], object]]:
    """Show the progress of work that consists of many equal parts.

    Args:
        progress: True shows a bar, False hides it, None shows it on a terminal; a function is
            called with a line of text every 30 seconds.
        name: Name of the work.
        unit: Name of its parts.
        total: Number of its parts.
        **options: Options of the bar, see tqdm.

    Yields:
        A function to call with the number of parts that were done.
    """
    if not callable(progress):
        options = {"disable": is_hidden(progress), "leave": False} | options
        with tqdm(total=total, desc=name, unit=f" {unit}", **options) as bar:
            yield bar.update
        return
    lines, done = ProgressLines(progress), 0

    def update(number: int) -> None:
        nonlocal done
        done += number
        if lines.is_due:
            of_total = "" if total is None else f" of {total:,}"
            lines.show(f"{name}: {done:,}{of_total} {unit}", total and done / total)

    yield update


def counted(
    items: Iterable[Item], progress: ProgressOption, name: str, **options: Any
) -> Iterator[Item]:
    """Yield items and show how many there were; the arguments are those of `show_progress`."""
    with show_progress(progress, name, name, **options) as update:
        for item in items:
            yield item
            update(1)


def format_seconds(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    Example:
        >>> format_seconds(42.4), format_seconds(100), format_seconds(3723)
        ('0:42', '1:40', '1:02:03')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
