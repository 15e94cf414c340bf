"""The timing figure and the property table of the paper, from the files of `haarpool bench`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from haarpool.errors import HaarPoolError
from haarpool.experiments.document import Grid, Heading, Paragraph, Part, Picture
from haarpool.experiments.published import PROPERTIES, PROPERTY_NAMES

PARTS = ("timing", "growth", "memory")  # of `haarpool bench`
MODES = ("forward", "forward + backward")
DASH = "–"
TIMING_TEXT = (
    "One pooling layer on a minibatch of 50 random graphs with 10 % density and 64 features: "
    "median time of a call in ms. Chains are computed before, once per dataset; "
    "`haarpool bench` measures them apart. –: left out, because a call takes seconds or too much "
    "memory."
)
PROPERTY_TEXT = (
    "The complexities are those that the paper prints. Beside them are measured exponents e: time "
    "~ |V|^e of a forward pass, fitted over the sizes above; at 10 % density |E| grows as |V|², "
    "and overhead that does not grow lowers e, most of all on a GPU. Memory is the peak of forward "
    "and backward at the largest size, in multiples of the input."
)


class Benchmark(NamedTuple):
    """A file of `haarpool bench`.

    Attributes:
        path: The file.
        device: What was measured on.
        lines: Its lines.
    """

    path: Path
    device: str
    lines: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Benchmark:
        """Read a file."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            machine, lines = content["machine"], content["lines"]
            cores = f"{machine['processor']}, {machine['cores']} cores"
            return cls(path, machine.get("gpu") or cores, lines)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise HaarPoolError(
                "a file of `haarpool bench`", f"{path} ({error})", "measure again, or remove it"
            ) from error

    def times(self, mode: str) -> dict[str, dict[int, float | None]]:
        """Return median times in ms by layer and number of nodes; None if it was left out."""
        result: dict[str, dict[int, float | None]] = {}
        for line in self.lines:
            case = line["case"]
            if line["part"] == "timing" and (case["mode"], case["way"]) == (mode, "eager"):
                result.setdefault(case["layer"], {})[case["nodes"]] = line["median_ms"]
        return result

    def exponent(self, layer: str) -> float | None:
        """Return the slope of log time over log nodes; None for fewer than two sizes."""
        times = self.times("forward").get(layer, {})
        known = {nodes: ms for nodes, ms in times.items() if ms}
        if len(known) < 2:
            return None
        return float(np.polyfit(np.log(list(known)), np.log(list(known.values())), 1)[0])

    def memory(self, layer: str) -> float | None:
        """Return the peak memory of a layer, in multiples of its input."""
        values = [
            line["value"]
            for line in self.lines
            if line["part"] == "memory" and line["case"].get("layer") == layer
        ]
        return values[0] if values else None


def read_benchmarks(folder: Path, *, quick: bool = False) -> list[Benchmark]:
    """Read the files of `haarpool bench` in a folder that have the timing part."""
    paths = sorted(folder.glob("bench-*.json"))
    chosen = [Benchmark.read(path) for path in paths if path.stem.endswith("-quick") == quick]
    return [one for one in chosen if any(line["part"] == "timing" for line in one.lines)]


def speed_parts(benchmarks: Sequence[Benchmark]) -> Iterator[Part]:
    """Yield the part of the report on speed."""
    yield Heading(2, "Timing of pooling layers")
    yield Paragraph(TIMING_TEXT)
    for one in benchmarks:
        yield Heading(3, one.device)
        if one.path.with_suffix(".png").exists():
            yield Picture(f"{one.path.stem}.png", f"Benchmarks on {one.device}")
        for mode in MODES:
            times = one.times(mode)
            sizes = sorted({nodes for layer in times.values() for nodes in layer})
            rows = [[name, *(_ms(layer.get(n)) for n in sizes)] for name, layer in times.items()]
            yield Grid(
                f"{mode}, ms, {one.device}.", ["Layer", *(f"{n} nodes" for n in sizes)], rows
            )
    yield Heading(2, "Properties of pooling methods")
    yield Paragraph(PROPERTY_TEXT)
    header = ["Method", "Time O(·)", "Space O(·)"]
    for one in benchmarks:
        header += [f"e, {one.device}", f"memory, {one.device}"]
    rows = []
    for name, paper in PROPERTIES.items():
        row = [name, paper.time, paper.space]
        for one in benchmarks:
            row += [_number(one.exponent(paper.layer)), _number(one.memory(paper.layer))]
        rows.append([*row, *("yes" if each in paper.has else "" for each in PROPERTY_NAMES)])
    yield Grid("Properties of pooling methods.", [*header, *PROPERTY_NAMES], rows)


def _ms(value: float | None) -> str:
    return DASH if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"
