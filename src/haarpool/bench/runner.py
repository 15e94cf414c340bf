"""Run the parts, print their lines at once, write the JSON file and the figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from haarpool.bench.figure import draw
from haarpool.bench.layers import NAMES
from haarpool.bench.measure import BenchOptions, describe
from haarpool.bench.results import COLUMNS, Measurement, describe_machine, read_json, write_json
from haarpool.errors import HaarPoolError

# A part is a module with TITLE and `run`, which yields its measurements.
PARTS = ("timing", "eager", "transforms", "growth", "training", "memory", "chains", "collating")
LAYER_PARTS = ("timing", "memory")  # those of which single layers can be measured


def results_path(folder: Path, options: BenchOptions) -> Path:
    """Return the JSON file of a device in a folder of results."""
    return folder / f"bench-{options.device.type}{'-quick' * options.quick}.json"


def run_parts(
    options: BenchOptions,
    folder: Path,
    only: Sequence[str] = (),
    show: Callable[[str], object] = print,
) -> bool:
    """Run benchmarks.

    Args:
        options: Device, sizes and layers.
        folder: Folder of the JSON file and of the figure.
        only: Names of parts; by default all, or those of layers if the options name layers.
        show: Called with each line of text.

    Returns:
        Whether all values are within their limits and nothing failed.
    """
    parts = LAYER_PARTS if options.layers else PARTS
    if unknown := sorted({*only} - {*parts}):
        expected = f"parts of {', '.join(parts)}{' for chosen layers' * bool(options.layers)}"
        raise HaarPoolError(expected, ", ".join(unknown), "join names by commas")
    if unknown := sorted({*options.layers} - {*NAMES}):
        raise HaarPoolError(
            f"layers of {'; '.join(NAMES)}", "; ".join(unknown), "pass one name at a time"
        )
    folder.mkdir(parents=True, exist_ok=True)
    machine, measured = describe_machine(options), list[Measurement]()
    show(", ".join(f"{name} {value}" for name, value in machine.items()))
    path = results_path(folder, options)
    if path.exists() and not read_json(path, machine):
        if options.layers:
            raise HaarPoolError(
                f"{path} of this machine and these versions, to add layers to it",
                "another file",
                "measure all layers, or write to another folder",
            )
        show(f"{path} is replaced: it has no lines of this machine and these versions")
    start = time.perf_counter()
    for name in only or parts:
        for one in run_part(name, options, show):
            measured.append(one)
            show(str(one))
        show(f"-- {name}: {time.perf_counter() - start:.0f} s since the start")
        # After each part, in case a later one crashes.
        kept = write_json(path, machine, measured, options.layers)
    draw(kept, machine, path.with_suffix(".png"))
    failed = sum(not one.passed for one in measured)
    for text in (path, path.with_suffix(".png"), f"{failed} of {len(measured)} lines failed"):
        show(str(text))
    return not failed


def run_part(
    name: str, options: BenchOptions, show: Callable[[str], object]
) -> Iterator[Measurement]:
    """Yield the measurements of a part, without limits for tiny sizes, and one more if it fails."""
    try:
        part = import_module(f"haarpool.bench.{name}")
        show(f"\n{COLUMNS}\n{name}: {part.TITLE}")
        for one in part.run(options):
            limits = {"at_least": None, "at_most": None} if options.quick else {}
            yield replace(one, part=name, **limits)
    except Exception as error:  # the other parts still run
        yield Measurement(name, error=describe(error), part=name)
