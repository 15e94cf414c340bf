"""Run the parts, print their lines at once, write the JSON file and the figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from haarpool.bench.figure import draw
from haarpool.bench.measure import Settings, Stopwatch, describe
from haarpool.bench.results import COLUMNS, Line, describe_machine, write_json
from haarpool.errors import HaarPoolError

# A part is a module with TITLE and `run`, which yields its lines.
PARTS = ("timing", "transforms", "growth", "training", "memory", "chains", "collating")


def run_parts(
    settings: Settings,
    folder: Path,
    only: Sequence[str] = (),
    show: Callable[[str], object] = print,
) -> bool:
    """Run benchmarks.

    Args:
        settings: Device and sizes.
        folder: Folder of the JSON file and of the figure.
        only: Names of parts; by default all.
        show: Called with each line of text.

    Returns:
        Whether all values are within their limits and nothing failed.
    """
    if unknown := sorted({*only} - {*PARTS}):
        raise HaarPoolError(
            f"parts of {', '.join(PARTS)}", ", ".join(unknown), "join names by commas"
        )
    folder.mkdir(parents=True, exist_ok=True)
    machine, lines = describe_machine(settings), list[Line]()
    show(", ".join(f"{name} {value}" for name, value in machine.items()))
    path = folder / f"bench-{settings.device.type}{'-quick' * settings.quick}.json"
    watch = Stopwatch()
    for name in only or PARTS:
        for line in run_part(name, settings, show):
            lines.append(line)
            show(str(line))
        show(f"-- {name}: {watch.seconds:.0f} s since the start")
        kept = write_json(path, machine, lines)  # after each part, in case a later one crashes
    draw(kept, machine, path.with_suffix(".png"))
    failed = [line.name for line in lines if not line.passed]
    for text in (path, path.with_suffix(".png"), f"{len(failed)} of {len(lines)} lines failed"):
        show(str(text))
    return not failed


def run_part(name: str, settings: Settings, show: Callable[[str], object]) -> Iterator[Line]:
    """Yield the lines of a part, and one more if it fails."""
    try:
        part = import_module(f"haarpool.bench.{name}")
        show(f"\n{COLUMNS}\n{name}: {part.TITLE}")
        lines: Iterable[Line] = part.run(settings)
        yield from lines
    except Exception as error:  # the other parts still run
        yield Line(name, name, error=describe(error))
