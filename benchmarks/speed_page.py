"""Write the tables of docs/speed.md.

    python -m benchmarks.speed_page

Everything is made from the files of `python -m benchmarks` in results/.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from benchmarks.common import write_tables
from benchmarks.layers import MODES
from benchmarks.results import Benchmark, JsonLine
from haarpool._numbers import DASH
from haarpool.comparison.document import markdown_table

PAGES = (Path("docs/speed.md"),)
TRANSFORMS = ("adjoint", "forward_transform", "compress", "expand")
CHAINS = {
    "clusters of 4": "clusters of 4",
    "the same, nodes shuffled": "shuffled",
    "pairs": "pairs",
    "one cluster": "one cluster",
}
SIZES = {"cuda": 4_000_000, "cpu": 1_000_000}  # nodes of the graph that is transformed
COLUMNS = 64
LARGEST = 16_000_000
HAAR = {"Haar domain": "HaarPooling, haar", "vertex domain": "HaarPooling, vertex"}
# Rows for other layers: forward + backward of the one that the others are compared with alone.
OTHERS = {
    "TopKPooling": MODES,
    **dict.fromkeys(
        ("SAGPooling", "ASAPooling", "DiffPool", "EigenPooling", "EdgePooling"), ("forward",)
    ),
}
MEMORY = (*HAAR.values(), "SortAggregation", "TopKPooling", "SAGPooling", "DiffPool", "ASAPooling")
WAYS = {"captured": "captured, as `haarpool train` does", "plain": "plain"}


def find(measured: Benchmark, part: str, key: str, **case: object) -> dict[Any, JsonLine]:
    """Return the lines of a part that have a value, by one key of their cases."""
    lines = measured.find(part, key, **case)
    return {name: line for name, line in lines.items() if line["value"] is not None}


def layer_table(measured: Benchmark) -> str:
    """Return times of one pooling layer in ms, and of Haar layers beside TopKPooling."""
    rows = list(_haar_rows(measured))
    for layer, modes in OTHERS.items():
        for mode in modes:
            lines = find(measured, "timing", "nodes", layer=layer, mode=mode, way="eager")
            rows.append((f"{layer}, {mode}", {n: ms(one) for n, one in lines.items()}))
    sizes = sorted({nodes for _, texts in rows for nodes in texts})
    header = ["nodes per graph", *(f"{nodes:,}" for nodes in sizes)]
    return markdown_table(
        [header, *([name, *(texts.get(n, "") for n in sizes)] for name, texts in rows)]
    )


def _haar_rows(measured: Benchmark) -> Iterator[tuple[str, dict[int, str]]]:
    for domain, layer in HAAR.items():
        for mode in MODES:
            for way, name in (("eager", f"HaarPooling, {domain}, {mode}"), ("captured", "")):
                lines = find(measured, "timing", "nodes", layer=layer, mode=mode, way=way)
                texts = {n: f"{ms(one)} ({one['value']:.1f})" for n, one in lines.items()}
                yield name or "the same, captured", texts


def eager_table(measured: Benchmark) -> str:
    """Return microseconds of layers called from Python: forward / forward and backward."""
    layers = measured.find("eager", "layer")
    rows = []
    for layer in layers:
        modes = [find(measured, "eager", "nodes", layer=layer, mode=mode) for mode in MODES]
        sizes = list(modes[0])
        rows.append([layer, *(" / ".join(us(mode[n]) for mode in modes) for n in sizes)])
    return markdown_table([["nodes per graph", *(f"{n:,}" for n in sizes)], *rows])


def transform_table(measured: Benchmark, nodes: int) -> str:
    """Return times of transforms of one graph in copies of the signal."""
    columns = {name: (nodes, chain) for name, chain in CHAINS.items()}
    if find(measured, "transforms", "map", nodes=LARGEST):
        columns[f"{LARGEST:,} nodes, clusters of 4"] = (LARGEST, "clusters of 4")
    rows = [["", *columns], *([f"`{name}`"] for name in TRANSFORMS)]
    for size, chain in columns.values():
        lines = find(measured, "transforms", "map", nodes=size, columns=COLUMNS, chain=chain)
        for name, row in zip(TRANSFORMS, rows[1:], strict=True):
            row.append(f"{lines[name]['value']:.2f}")
    return markdown_table(rows)


def training_table(measured: Benchmark) -> str:
    """Return times of a training step in ms, a column per pooling."""
    rows = {way: find(measured, "training", "pooling", way=way) for way in WAYS}
    rows = {way: lines for way, lines in rows.items() if lines}
    poolings = list(rows["plain"])
    texts = [
        [WAYS[way], *(ms(lines[name]) if name in lines else "" for name in poolings)]
        for way, lines in rows.items()
    ]
    return markdown_table([["", *poolings], *texts])


def memory_table(measured: Benchmark) -> str:
    """Return the peak memory of a layer and its backward pass in sizes of x."""
    peaks = {name: find(measured, "memory", "nodes", layer=name) for name in MEMORY}
    largest = max(nodes for lines in peaks.values() for nodes in lines)
    texts = [three_digits(lines[largest]["value"]) for lines in peaks.values()]
    return markdown_table([["", *peaks], [f"{largest:,} nodes", *texts]])


def host_sentence(results: Path) -> str:
    """Say how much time of Python a layer needs."""
    rows = json.loads((results / "host_time.json").read_text())["results"]
    ratios = {row["name"]: row["value"] for row in rows}
    kinds = ("HaarPooling, haar", "HaarPooling, haar, new batch")
    same, new = (ratios[f"{k}, 30 nodes, forward + backward, over index_add_"] for k in kinds)
    return (
        "Without a GPU the time of the host can be measured alone "
        "(`python -m benchmarks --only host_time`):\n"
        f"forward and backward of HaarPooling take {same:.1f} times as long as those of "
        f"`index_add_`\non three nodes, and {new:.1f} times with a new batch."
    )


def growth_sentence(measured: Benchmark) -> str:
    """Say how the time of a transform grows with the number of nodes."""
    line = next(line for line in measured.lines if line["unit"] == "exponent")
    return f"Time of `adjoint` grows with nodes^{line['value']:.2f} ({line['name']})."


def three_digits(value: float | None, least: int = 2) -> str:
    """Format a positive number with about three digits, with `least` decimals below 1."""
    if value is None:
        return DASH
    decimals = least if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"


def ms(line: JsonLine) -> str:
    """Format the median time of a line."""
    return three_digits(line["median_ms"], least=3)


def us(line: JsonLine) -> str:
    """Format the median time of a line in microseconds."""
    return f"{1000 * line['median_ms']:,.0f}"


def make_tables(results: Path) -> dict[str, str]:
    """Return the tables and sentences of the page by their marks."""
    gpu, processor = (Benchmark.read(results / f"bench-{device}.json") for device in SIZES)
    eager = {"layers called from Python on a processor": eager_table(processor)}
    if "eager" in gpu.parts:
        eager["layers called from Python on a GPU"] = eager_table(gpu)
    return eager | {
        "layers on a GPU": layer_table(gpu),
        "transforms on a GPU": transform_table(gpu, SIZES["cuda"]),
        "training steps on a GPU": training_table(gpu),
        "memory on a GPU": memory_table(gpu),
        "growth on a GPU": growth_sentence(gpu),
        "time of the host": host_sentence(results),
        "transforms on a processor": transform_table(processor, SIZES["cpu"]),
        "training steps on a processor": training_table(processor),
    }


def main() -> None:
    """Write the tables."""
    write_tables(make_tables(RESULTS), PAGES)


if __name__ == "__main__":
    main()
