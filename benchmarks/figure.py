"""The figure of the benchmarks, drawn from the lines of the JSON file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.results import JsonLine
from haarpool._files import atomic_write

_COLOURS = {
    "HaarPooling, haar": "#c0392b",
    "HaarPooling, vertex": "#e67e22",
    "SortAggregation": "#e377c2",
    "TopKPooling": "#1f4e79",
    "SAGPooling": "#3b8ed0",
    "ASAPooling": "#76c1ec",
    "EdgePooling": "#7f8c8d",
    "DiffPool": "#8e44ad",
    "EigenPooling": "#27ae60",
}
_WAYS = {"captured": "#c0392b", "plain": "#3b8ed0", "compiled": "#8e9aa5"}


def draw(lines: Sequence[JsonLine], machine: Mapping[str, Any], path: Path) -> None:
    """Draw the parts that the lines belong to.

    Args:
        lines: Lines as `Measurement.as_json` returns them.
        machine: What `describe_machine` returned.
        path: The PNG file to write.
    """
    timed = [
        x for x in lines if x["case"] and (x["part"] == "memory" or x["median_ms"] is not None)
    ]
    panels = [
        (panel, chosen)
        for part, panel in _PANELS.items()
        if (chosen := [line for line in timed if line["part"] == part])
    ]
    rows = max((len(panels) + 1) // 2, 1)
    figure = Figure(figsize=(11, 4.2 * rows), layout="constrained")
    for number, (panel, chosen) in enumerate(panels, 1):
        panel(figure.add_subplot(rows, 2, number), chosen)
    figure.suptitle(
        f"{machine.get('gpu') or machine['processor']}, torch {machine['torch']}", fontsize=10
    )
    with atomic_write(path) as partial:
        figure.savefig(partial, format="png", dpi=130)


def _draw_timing(axes: Axes, lines: Sequence[JsonLine]) -> None:
    """Draw ms over nodes per layer, forward only."""
    forward = [line for line in lines if line["case"]["mode"] == "forward"]
    curves = defaultdict(list)
    for line in forward:
        curves[line["case"]["layer"], line["case"]["way"]].append(line)
    for (layer, way), points in curves.items():
        label = f"{layer}{', captured' * (way == 'captured')}"
        style = "o-" if way == "eager" else "o--"
        _plot(axes, points, "median_ms", style, label=label, color=_COLOURS[layer])
    _finish(axes, "one pooling layer, forward, 50 graphs", "nodes per graph", "ms")
    nodes = sorted({line["case"]["nodes"] for line in forward})
    axes.set_xticks(nodes, [f"{n:,}" for n in nodes])
    axes.minorticks_off()


def _draw_transforms(axes: Axes, lines: Sequence[JsonLine]) -> None:
    """Draw copies over nodes per map, 64 columns."""
    main = ("clusters of 4", 64)
    chosen = [x for x in lines if (x["case"]["chain"], x["case"]["columns"]) == main]
    for name in ("adjoint", "forward_transform", "compress", "expand"):
        points = [x for x in chosen if x["case"]["map"] == name]
        _plot(axes, points, "value", "o-", label=name)
    _finish(axes, "transforms, clusters of 4, 64 columns", "nodes", "copies of x")


def _draw_training(axes: Axes, lines: Sequence[JsonLine]) -> None:
    """Draw ms per step as bars."""
    tokens = list(dict.fromkeys(x["case"]["pooling"] for x in lines))
    ways = [way for way in _WAYS if any(x["case"]["way"] == way for x in lines)]
    for number, way in enumerate(ways):
        points = [x for x in lines if x["case"]["way"] == way]
        offset = 0.8 * (number - (len(ways) - 1) / 2) / len(ways)
        where = [tokens.index(x["case"]["pooling"]) + offset for x in points]
        heights = [x["median_ms"] for x in points]
        axes.bar(where, heights, 0.8 / len(ways), label=way, color=_WAYS[way])
    axes.set_xticks(range(len(tokens)), tokens, fontsize=7)
    dataset = lines[0]["case"]["dataset"]
    axes.set_title(f"a training step, {dataset}, 32 graphs", fontsize=10)
    axes.set_ylabel("ms")
    axes.legend(fontsize=7, frameon=False)


def _draw_memory(axes: Axes, lines: Sequence[JsonLine]) -> None:
    """Draw the peak memory as horizontal bars, of layers at the largest size."""
    largest = max((x["case"]["nodes"] for x in lines if "layer" in x["case"]), default=0)
    chosen = [x for x in lines if "map" in x["case"] or x["case"]["nodes"] == largest]
    known = [line for line in chosen if line["value"] is not None][::-1]
    names = [
        case.get("layer") or f"{case['map']}, {case['chain']}"
        for case in (line["case"] for line in known)
    ]
    axes.barh(names, [line["value"] for line in known], color="#3b8ed0")
    axes.tick_params(axis="y", labelsize=7)
    axes.set_xscale("symlog")
    axes.set_title("peak memory beyond the input", fontsize=10)
    axes.set_xlabel("times the size of x")


def _plot(axes: Axes, points: Sequence[JsonLine], key: str, style: str, **options: Any) -> None:
    """Draw a value of some lines over the number of nodes."""
    nodes, values = [x["case"]["nodes"] for x in points], [x[key] for x in points]
    axes.plot(nodes, values, style, markersize=3, **options)


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=10)
    legend = axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, handlelength=3)
    legend.set_frame_on(False)


_PANELS: Mapping[str, Callable[[Axes, Sequence[JsonLine]], None]] = {
    "timing": _draw_timing,
    "transforms": _draw_transforms,
    "training": _draw_training,
    "memory": _draw_memory,
}
