"""Run the parts, print their lines at once, write the JSON file and the figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from haarpool.bench.figure import draw
from haarpool.bench.layers import NAMES
from haarpool.bench.measure import Settings, Stopwatch, describe
from haarpool.bench.results import COLUMNS, Line, describe_machine, read_json, write_json
from haarpool.errors import HaarPoolError

# A part is a module with TITLE and `run`, which yields its lines.
PARTS = ("timing", "eager", "transforms", "growth", "training", "memory", "chains", "collating")
LAYER_PARTS = ("timing", "memory")  # those of which single layers can be measured


def run_parts(
    settings: Settings,
    folder: Path,
    only: Sequence[str] = (),
    show: Callable[[str], object] = print,
) -> bool:
    """Run benchmarks.

    Args:
        settings: Device, sizes and layers.
        folder: Folder of the JSON file and of the figure.
        only: Names of parts; by default all, or those of layers if the settings name layers.
        show: Called with each line of text.

    Returns:
        Whether all values are within their limits and nothing failed.
    """
    parts = LAYER_PARTS if settings.layers else PARTS
    if unknown := sorted({*only} - {*parts}):
        expected = f"parts of {', '.join(parts)}{' for chosen layers' * bool(settings.layers)}"
        raise HaarPoolError(expected, ", ".join(unknown), "join names by commas")
    if unknown := sorted({*settings.layers} - {*NAMES}):
        raise HaarPoolError(
            f"layers of {'; '.join(NAMES)}", "; ".join(unknown), "pass one name at a time"
        )
    folder.mkdir(parents=True, exist_ok=True)
    machine, lines = describe_machine(settings), list[Line]()
    show(", ".join(f"{name} {value}" for name, value in machine.items()))
    path = folder / f"bench-{settings.device.type}{'-quick' * settings.quick}.json"
    if path.exists() and not read_json(path, machine):
        if settings.layers:
            raise HaarPoolError(
                f"{path} of this machine and these versions, to add layers to it",
                "another file",
                "measure all layers, or write to another folder",
            )
        show(f"{path} is replaced: it has no lines of this machine and these versions")
    watch = Stopwatch()
    for name in only or parts:
        for line in run_part(name, settings, show):
            lines.append(line)
            show(str(line))
        show(f"-- {name}: {watch.seconds:.0f} s since the start")
        # After each part, in case a later one crashes.
        kept = write_json(path, machine, lines, settings.layers)
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
