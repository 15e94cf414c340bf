"""The timing figure and the property table of the paper, from files of `python -m benchmarks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.results import Benchmark
from haarpool._numbers import DASH
from haarpool.comparison.document import Grid, Part
from paper.published import PROPERTIES, PROPERTY_NAMES

PARTS = ("timing", "growth", "memory")  # of `python -m benchmarks`
MODES = ("forward", "forward + backward")
OVERHEAD = "overhead"
MIN_GROWTH = 1.5  # from the smallest to the largest size; below it an exponent is noise
TIMING_TEXT = (
    "One pooling layer on a minibatch of 50 random graphs with 10 % density and 64 features: "
    "median time of a call in ms. Chains are computed before, once per dataset; "
    "`python -m benchmarks` measures them apart. –: left out, because a call takes seconds or too "
    "much memory, or not measured."
)
PROPERTY_TEXT = (
    "The complexities are those that the paper prints. Below them are measured exponents e, "
    "fitted over the sizes above: time ~ |V|^e of a forward pass, and peak memory ~ |V|^e of "
    "forward and backward beyond the input. At 10 % density |E| grows as |V|². Time that does not "
    "grow, such as that of Python and of kernel launches, lowers e, most of all on a GPU. e "
    "also varies between runs. "
    f"{OVERHEAD}: the value at the largest size is less than {MIN_GROWTH} times that at the "
    "smallest, so it is mostly such overhead and noise, and e would say nothing about complexity. "
    "Memory is that at the largest size, in multiples of the input. "
    "–: not measured, or e at one size only."
)
LAYER_TEXT = (
    "The column Layer names the class that is measured. SortAggregation, TopKPooling and "
    "SAGPooling are those of PyG, which most people use, with their default settings. k of "
    "SortAggregation is half of the nodes. TopKPooling selects nodes as gPool does, with tanh "
    "instead of sigmoid. SAGPooling computes scores by GraphConv; the paper of SAGPool uses a GCN. "
    "The accuracies of gPool and SAGPool in other tables are those of `GPool` and `SAGPool` of "
    "haarpool. DiffPool uses `dense_diff_pool` of PyG. Modes of EigenPooling are computed before, "
    "with the chains."
)


def times(measured: Benchmark, mode: str, layer: str) -> dict[int, float | None]:
    """Return median times of a layer in ms by number of nodes; None if it was left out."""
    lines = measured.find("timing", "nodes", layer=layer, mode=mode, way="eager")
    return {nodes: line["median_ms"] for nodes, line in lines.items()}


def properties(measured: Benchmark, layer: str) -> list[str]:
    """Return the exponents of time and memory, and the memory at the largest size."""
    lines = measured.find("memory", "nodes", layer=layer)  # in multiples of the input
    memory = {nodes: line["value"] for nodes, line in lines.items()}
    # The size of the input is proportional to the number of nodes.
    peaks = {nodes: value and nodes * value for nodes, value in memory.items()}
    largest = memory[max(memory)] if memory else None
    return [exponent(times(measured, "forward", layer)), exponent(peaks), _number(largest)]


def read_benchmarks(folder: Path, *, quick: bool = False) -> list[Benchmark]:
    """Read the files of `python -m benchmarks` in a folder that have the timing part."""
    paths = sorted(folder.glob("bench-*.json"))
    chosen = [Benchmark.read(path) for path in paths if path.stem.endswith("-quick") == quick]
    return [one for one in chosen if "timing" in one.parts]


def exponent(values: Mapping[int, float | None]) -> str:
    """Return the slope of log value over log nodes, or why there is none.

    Args:
        values: Values by number of nodes; None if it was left out.

    Returns:
        The slope, "overhead" if values hardly grow, or a dash for fewer than two sizes.

    Example:
        >>> exponent({10: 3.0, 20: 12.0, 40: 48.0}), exponent({10: 3.0, 20: 3.1}), exponent({})
        ('2.00', 'overhead', '–')
    """
    known = [(nodes, value) for nodes, value in sorted(values.items()) if value]
    if len(known) < 2:
        return DASH
    if known[-1][1] < MIN_GROWTH * known[0][1]:
        return OVERHEAD
    nodes, logs = np.log(known).T
    return f"{np.polyfit(nodes, logs, 1)[0]:.2f}"


def speed_parts(benchmarks: Sequence[Benchmark]) -> Iterator[Part]:
    """Yield the part of the report on speed."""
    yield "## Timing of pooling layers"
    yield TIMING_TEXT
    for one in benchmarks:
        yield f"### {one.device}"
        if one.path.with_suffix(".png").exists():
            yield f"![Benchmarks on {one.device}]({one.path.stem}.png)"
        for mode in MODES:
            layers = {name: times(one, mode, name) for name in one.find("timing", "layer")}
            sizes = sorted({nodes for layer in layers.values() for nodes in layer})
            rows = [[name, *(_ms(layer.get(n)) for n in sizes)] for name, layer in layers.items()]
            header = ["Layer", *(f"{n} nodes" for n in sizes)]
            yield Grid(f"{mode}, ms, {one.device}.", header, rows)
    yield "## Properties of pooling methods"
    yield PROPERTY_TEXT
    yield LAYER_TEXT
    rows = [
        [name, paper.time, paper.space, *("yes" if x in paper.has else "" for x in PROPERTY_NAMES)]
        for name, paper in PROPERTIES.items()
    ]
    header = ["Method", "Time O(·)", "Space O(·)", *PROPERTY_NAMES]
    yield Grid("Properties of pooling methods, as published.", header, rows)
    for one in benchmarks:
        rows = [
            [name, paper.layer, *properties(one, paper.layer)] for name, paper in PROPERTIES.items()
        ]
        header = ["Method", "Layer", "e of time", "e of memory", "Memory"]
        yield Grid(f"Measured on {one.device}.", header, rows)


def _ms(value: float | None) -> str:
    return DASH if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"
