"""Graphs drawn by target, prediction and error: the part of a report about values at nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from haarpool._types import Floats, Ints
from haarpool.report.record import RunRecord
from haarpool.report.svg import as_svg
from haarpool.training.drawn_graphs import MAX_EDGES, MAX_NODES, DrawnGraphs

MAX_TARGETS = 3
_WIDTH = 2.9  # inches of a panel
_DPI = 144  # of many dots; there are up to nine pictures
_GREY = "#9a9a9a"
_TITLES = ("target", "prediction", "error")
# Without the ends, which are as dark or as light as a page.
_VALUES = ListedColormap(colormaps["plasma"](np.linspace(0.12, 0.88, 256)))
_ERRORS = LinearSegmentedColormap.from_list("errors", ["#1f5fc4", "#bdbdbd", "#c8321f"])
# The colours of Okabe and Ito, which people with any colour vision tell apart; others share grey.
_CLASSES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_WRONG = "#d1350f"


class Map(NamedTuple):
    """A row of pictures of one graph.

    Attributes:
        name: Which graph, and which target of several.
        panels: Their SVG texts.
        titles: A title for each.
    """

    name: str
    panels: list[str]
    titles: Sequence[str]


def draw_maps(record: RunRecord) -> list[Map]:
    """Draw the graphs of a record: a row for each graph and target."""
    if record.drawn is None:
        return []
    return [*_maps(record, record.drawn)]


def legend(record: RunRecord) -> list[tuple[str, str]]:
    """Return names of classes with their colours; [] for values."""
    if record.drawn is None or record.drawn.target.ndim > 1:
        return []
    classes, (order, _) = record.names.classes, _class_colours(record.drawn)
    named = [(classes[c], colour) for c, colour in zip(order, _CLASSES, strict=False)]
    if len(order) > len(_CLASSES):
        named.append((f"{len(order) - len(_CLASSES)} other classes", _GREY))
    return named


def caption(record: RunRecord) -> str:
    """Say what the pictures show, or why there are none."""
    drawn, one = record.drawn, record.parts_of.removesuffix("s")
    if drawn is None:
        return (
            f"No graph is drawn: graphs with more than {MAX_NODES:,} nodes and runs of earlier "
            "versions have no pictures."
        )
    repeats = record.result["repeats"]
    of_repeat = f" of repeat {record.result['model_of_repeat'] + 1}" * (repeats > 1)
    text = f"Test {one}s{of_repeat}, evenly chosen by their number. "
    if record.parts_of == "nodes":
        text = f"All nodes; errors are those of the test nodes{of_repeat}, others are faint. "
    if drawn.target.ndim == 1:
        text += "Crosses mark nodes with a wrong class. "
    else:
        text += (
            "An error is the prediction minus the target. Arrows at a scale: the outermost 0.5 % "
            "of the nodes are beyond it. "
        )
    names = record.names.targets
    if drawn.target.ndim > 1 and len(names) > MAX_TARGETS:
        text += f"The first {MAX_TARGETS} of {len(names)} targets are drawn. "
    if (drawn.num_edges > MAX_EDGES).any():
        text += f"Edges are left out if there are more than {MAX_EDGES:,}. "
    return text.strip()


def _maps(record: RunRecord, drawn: DrawnGraphs) -> Iterator[Map]:
    one = "signal" if record.parts_of == "signals" else "graph"
    names = record.names.targets
    numbers = range(0 if drawn.target.ndim == 1 else min(len(names), MAX_TARGETS))
    scales = [_Scale.of(drawn, t) for t in numbers]
    owner = np.searchsorted(drawn.start, drawn.edges[0], "right") - 1
    for i, number in enumerate(drawn.numbers.tolist()):
        rows = slice(*drawn.start[i : i + 2].tolist())
        place = _Place(drawn.positions[rows], drawn.edges[:, owner == i] - drawn.start[i])
        name = "The graph" if record.parts_of == "nodes" else f"{one.capitalize()} {number}"
        is_test = drawn.is_test[rows]
        if drawn.target.ndim == 1:
            target, prediction = drawn.target[rows], drawn.prediction[rows]
            axes = _draw_classes(place, target, prediction, is_test, _class_colours(drawn)[1])
            yield Map(name, _svgs(axes, f"map{i}", name), _TITLES)
            continue
        for t, scale in enumerate(scales):
            target, prediction = drawn.target[rows, t], drawn.prediction[rows, t]
            named = f"{name}: {names[t]}" if len(names) > 1 else name
            axes = _draw_values(place, target, prediction, is_test, scale)
            yield Map(named, _svgs(axes, f"map{i}-{t}", named), _TITLES)


def _svgs(axes: Sequence[Axes], name: str, label: str) -> list[str]:
    pairs = enumerate(zip(axes, _TITLES, strict=True))
    return [
        as_svg(ax.figure.figure, f"{name}-{p}", f"{label}, {title}", dpi=_DPI)
        for p, (ax, title) in pairs
    ]


# ---------------------------------------------------------------------- one panel


class _Scale(NamedTuple):
    """What one target of all drawn graphs has in common: ranges, and where some are outside."""

    values: Normalize
    errors: Normalize
    extend_values: str
    extend_errors: str

    @classmethod
    def of(cls, drawn: DrawnGraphs, target: int) -> _Scale:
        true, predicted = drawn.target[:, target], drawn.prediction[:, target]
        values = np.concatenate([true, predicted])
        error = (predicted - true)[drawn.is_test]
        values, error = values[np.isfinite(values)], np.abs(error[np.isfinite(error)])
        if not len(error):
            error = np.zeros(1)
        low, high = np.quantile(values, [0.005, 0.995], method="inverted_cdf")
        most = np.quantile(error, 0.995, method="inverted_cdf") or 1.0
        below, above = values.min() < low, values.max() > high
        extend = ["neither", "min", "max", "both"][int(below) + 2 * int(above)]
        if low == high:
            low, high = low - 1, high + 1
        return cls(
            Normalize(low, high),
            Normalize(-most, most),
            extend,
            "both" if error.max() > most else "neither",
        )


class _Place(NamedTuple):
    """(n, 2) positions of the nodes of a graph, and (2, E) pairs of them."""

    position: Floats
    edges: Ints

    def panel(self, *, bar: bool) -> Axes:
        """Return axes with the edges; they have the shape of the graph."""
        low, size = self.position.min(axis=0), np.ptp(self.position, axis=0)
        margin = 0.03 * (size.max() or 1.0)
        low, size = low - margin, size + 2 * margin
        figure = Figure((_WIDTH, _height(size) + 0.5 * bar), layout="constrained")
        ax = figure.subplots()
        ax.set(xlim=(low[0], low[0] + size[0]), ylim=(low[1], low[1] + size[1]))
        ax.set_aspect("equal")
        ax.set_axis_off()
        lines = np.stack([self.position[self.edges[0]], self.position[self.edges[1]]], axis=1)
        width = float(np.clip(200 / max(len(lines), 1), 0.3, 1.2))
        style: dict[str, Any] = {"colors": _GREY, "alpha": 0.7, "zorder": 1}
        ax.add_collection(LineCollection([*lines], linewidths=width, **style))
        return ax

    def dots(
        self, ax: Axes, chosen: NDArray[Any], colours: Any, scale: float = 1.0, **style: Any
    ) -> None:
        """Draw some nodes; many of them leave less space between them than few."""
        number = len(self.position)
        share = np.interp(np.log10(max(number, 1)), [2, 4], [0.1, 0.5])
        height = _height(np.ptp(self.position, axis=0))
        area = float(share * 72**2 * _WIDTH * height / max(number, 60))
        x, y = self.position[chosen].T
        # Without smooth edges of dots the pictures of many of them are a third as large.
        shape = {"linewidths": 0, "zorder": 2, "antialiased": number <= 2000} | style
        ax.scatter(x, y, max(scale * area, 0.25), colours, **shape)


def _height(size: Floats) -> float:
    """Return the height of a panel for a graph of this (width, height)."""
    return _WIDTH * float(np.clip(size[1] / (size[0] or 1.0), 0.3, 1.3))


def _draw_values(
    place: _Place,
    target: Floats,
    prediction: Floats,
    is_test: NDArray[np.bool_],
    scale: _Scale,
) -> list[Axes]:
    error = np.where(is_test, prediction - target, np.nan)
    axes = []
    for values, norm, colours, extend in (
        (target, scale.values, _VALUES, scale.extend_values),
        (prediction, scale.values, _VALUES, scale.extend_values),
        (error, scale.errors, _ERRORS, scale.extend_errors),
    ):
        ax, known = place.panel(bar=True), np.isfinite(values)
        place.dots(ax, ~known, _GREY, 0.3)
        # Extremes on top.
        nodes = np.flatnonzero(known)[np.argsort(np.abs(norm(values[known]) - 0.5), kind="stable")]
        place.dots(ax, nodes, colours(norm(values[nodes])))
        _add_bar(ax, norm, colours, extend)
        axes.append(ax)
    return axes


def _add_bar(ax: Axes, norm: Normalize, colours: Colormap, extend: str) -> None:
    bar = ax.figure.figure.colorbar(
        ScalarMappable(norm, colours),
        ax=ax,
        orientation="horizontal",
        extend=extend,
        fraction=0.06,
        pad=0.02,
        shrink=0.85,
        aspect=28,
    )
    bar.outline.set_visible(False)
    bar.ax.locator_params(nbins=5)
    bar.ax.tick_params(labelsize=8, length=2)


def _draw_classes(
    place: _Place, target: Ints, prediction: Ints, is_test: NDArray[np.bool_], colours: Floats
) -> list[Axes]:
    axes = []
    for classes in (target, prediction):
        ax, known = place.panel(bar=False), classes >= 0
        place.dots(ax, ~known, _GREY, 0.3)
        place.dots(ax, known, colours[classes[known]].tolist())
        axes.append(ax)
    ax = place.panel(bar=False)
    scored = is_test & (target >= 0)
    wrong = scored & (prediction != target)
    place.dots(ax, ~scored, _GREY, 0.3, alpha=0.5)
    place.dots(ax, scored & ~wrong, _GREY, 0.7)
    place.dots(ax, wrong, _WRONG, 1.6, marker="x", linewidths=1.0, zorder=3)
    return [*axes, ax]


def _class_colours(drawn: DrawnGraphs) -> tuple[list[int], NDArray[Any]]:
    """Return the classes by their number of nodes, and (C,) colours; of many, most are grey."""
    values = np.concatenate([drawn.target, drawn.prediction])
    counts = np.bincount(values[values >= 0].astype(int))
    order = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c]]
    shown = sorted(order[: len(_CLASSES)])
    colours = np.full(len(counts), _GREY, dtype=object)
    for colour, c in zip(_CLASSES, shown, strict=False):
        colours[c] = colour
    return shown + order[len(_CLASSES) :], colours
