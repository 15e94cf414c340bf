"""Run the parts, print their lines at once, write the JSON files and the figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.figure import draw
from benchmarks.layers import NAMES
from benchmarks.measure import BenchOptions, describe
from benchmarks.results import COLUMNS, Measurement, describe_machine, read_json, write_json
from haarpool._modules import module_names
from haarpool.errors import HaarPoolError

LAYER_PARTS = ("timing", "memory")  # those of which single layers can be measured


def find_parts() -> dict[str, ModuleType]:
    """Return all parts by name.

    A part is a module with TITLE and `run`, which yields its measurements. One that takes long or
    needs real data has FILE too, the name of a file of its own in results/. It runs when it is
    asked for; the others share a file. `{device}` in it is that of the options.
    """
    names = module_names("benchmarks.parts")
    return {name: import_module(f"benchmarks.parts.{name}") for name in names}


def describe_parts() -> Iterator[str]:
    """Yield a line about each part."""
    for name, part in find_parts().items():
        file = getattr(part, "FILE", None)
        yield f"{name}: {part.TITLE}{f' (on request, {file}.json)' if file else ''}"


def results_path(folder: Path, options: BenchOptions, file: str | None = None) -> Path:
    """Return a JSON file in a folder of results: that of a part, by default that of the device."""
    stem = (file or "bench-{device}").format(device=options.device.type)
    return folder / f"{stem}{'-quick' * options.quick}.json"


def run_parts(
    options: BenchOptions,
    folder: Path,
    only: Sequence[str] = (),
    show: Callable[[str], object] = print,
) -> bool:
    """Run benchmarks.

    Args:
        options: Device, sizes and layers.
        folder: Folder of the JSON files and of the figure.
        only: Names of parts; by default those that share a file, or those of layers if the options
            name layers.
        show: Called with each line of text.

    Returns:
        Whether all values are within their limits and nothing failed.
    """
    parts = find_parts()
    files = {name: getattr(part, "FILE", None) for name, part in parts.items()}
    known = LAYER_PARTS if options.layers else tuple(parts)
    if unknown := sorted({*only} - {*known}):
        expected = f"parts of {', '.join(known)}{' for chosen layers' * bool(options.layers)}"
        raise HaarPoolError(expected, ", ".join(unknown), "join names by commas")
    if unknown := sorted({*options.layers} - {*NAMES}):
        raise HaarPoolError(
            f"layers of {'; '.join(NAMES)}", "; ".join(unknown), "pass one name at a time"
        )
    chosen = only or [name for name in known if files[name] is None]
    folder.mkdir(parents=True, exist_ok=True)
    machine, measured, kept = describe_machine(options), list[Measurement](), list[Any]()
    show(", ".join(f"{name} {value}" for name, value in machine.items()))
    path, start = results_path(folder, options), time.perf_counter()
    if path.exists() and not read_json(path, machine) and None in map(files.get, chosen):
        if options.layers:
            raise HaarPoolError(
                f"{path} of this machine and these versions, to add layers to it",
                "another file",
                "measure all layers, or write to another folder",
            )
        show(f"{path} is replaced: it has no lines of this machine and these versions")
    for name in chosen:
        lines = list[Measurement]()
        for one in run_part(name, parts[name], options, show):
            lines.append(one)
            show(str(one))
        show(f"-- {name}: {time.perf_counter() - start:.0f} s since the start")
        measured += lines
        # After each part, in case a later one crashes.
        if files[name] is None:
            kept = write_json(path, machine, lines, options.layers)
        elif not any(one.reason for one in lines):
            own = results_path(folder, options, files[name])
            write_json(own, machine, lines, key="results")
            show(str(own))
    if kept:
        draw(kept, machine, path.with_suffix(".png"))
        show(f"{path}\n{path.with_suffix('.png')}")
    failed = sum(not one.passed for one in measured)
    show(f"{failed} of {len(measured)} lines failed")
    return not failed


def run_part(
    name: str, part: ModuleType, options: BenchOptions, show: Callable[[str], object]
) -> Iterator[Measurement]:
    """Yield the measurements of a part, without limits for tiny sizes, and one more if it fails."""
    show(f"\n{COLUMNS}\n{name}: {part.TITLE}")
    try:
        for one in part.run(options):
            limits = {"at_least": None, "at_most": None} if options.quick else {}
            yield replace(one, part=name, **limits)
    except Exception as error:  # the other parts still run
        yield Measurement(name, error=describe(error), part=name)
