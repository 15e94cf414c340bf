"""The figure of README.md: accuracy of all methods on the datasets of Table 1."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from haarpool._files import atomic_write
from haarpool.comparison.statistics import Estimate

# After Okabe and Ito, for all kinds of sight. These three and the grey have a contrast of at
# least 3 on white and on the dark background of GitHub; the background is transparent.
COLOURS = {"haarpool": "#d55e00", "ours": "#009e73", "peer": "#2b83c6"}
INK, FAINT, PANEL = "#7a7f85", "#80808040", "#80808012"
DOTTED = {"linestyle": (0, (1, 3)), "linewidth": 1, "zorder": 0}
SHIFT = 0.32  # of an own recipe, down from its row
GAP = 0.6  # between kinds of rows


class Point(NamedTuple):
    """A method on a dataset.

    Attributes:
        value: Its result in per cent.
        recipe: That of its authors' recipe.
        published: The published number.
    """

    value: Estimate | None
    recipe: Estimate | None
    published: float | None


class FigureRow(NamedTuple):
    """A method.

    Attributes:
        title: Its name.
        kind: A key of `COLOURS`.
        points: Its points by dataset; all rows have the same datasets.
    """

    title: str
    kind: str
    points: Mapping[str, Point]


def digest(rows: Sequence[FigureRow]) -> str:
    """Return a hash of what is drawn, which the file of the figure contains."""
    drawn = [
        (row.title, row.kind, dataset, *(_text(value) for value in point[:2]), point.published)
        for row in rows
        for dataset, point in row.points.items()
    ]
    return hashlib.sha256(repr(drawn).encode()).hexdigest()


def _text(value: Estimate | None) -> str:
    return f"{value.mean:.3f} {value.half:.3f}" if value else ""


def draw_scores(rows: Sequence[FigureRow], path: Path) -> None:
    """Draw a panel per dataset: means with 95 % intervals, and published numbers as hollow marks.

    Args:
        rows: The methods, from top to bottom.
        path: The PNG file to write.
    """
    heights = _heights(rows)
    figure = Figure(
        figsize=(11, 0.9 + 0.24 * (1 - heights[-1])),
        layout=ConstrainedLayoutEngine(wspace=0.03),
        facecolor="none",
    )
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(rows[0].points), sharey=True)
    for axes, dataset in zip(panels, rows[0].points, strict=True):
        for row, height in zip(rows, heights, strict=True):
            _draw(axes, row.points[dataset], height, COLOURS[row.kind])
        # The published number of the first row, HaarPool, to compare all others with.
        axes.axvline(rows[0].points[dataset].published, color=COLOURS["haarpool"], **DOTTED)
        _finish(axes, dataset)
    panels[0].set_yticks(heights, [row.title for row in rows])
    panels[0].set_ylim(heights[-1] - 0.7, 0.6)
    figure.legend(
        handles=_legend(rows), loc="outside lower center", ncols=4, frameon=False, fontsize=9,
        labelcolor=INK,
    )  # fmt: skip
    with atomic_write(path) as partial:
        figure.savefig(
            partial, dpi=130, format="png",
            metadata={"Software": None, "Description": digest(rows)},
        )  # fmt: skip


def _heights(rows: Sequence[FigureRow]) -> list[float]:
    heights = [0.0]
    for before, row in pairwise(rows):
        heights.append(heights[-1] - 1 - GAP * (row.kind != before.kind))
    return heights


def _draw(axes: Axes, point: Point, height: float, colour: str) -> None:
    for value, mark, y in ((point.value, "o", height), (point.recipe, "s", height - SHIFT)):
        if value:
            axes.errorbar(
                value.mean, y, xerr=value.half, fmt=mark, color=colour,
                markersize=5 if mark == "o" else 4, elinewidth=1.2,
            )  # fmt: skip
    if point.published is not None:
        axes.plot(point.published, height, "D", mfc="none", mec=colour, markersize=6)


def _finish(axes: Axes, dataset: str) -> None:
    axes.set_facecolor(PANEL)
    axes.margins(x=0.1)
    axes.set_title(dataset, fontsize=10, color=INK)
    axes.tick_params(colors=INK, labelcolor=INK, length=0, labelsize=9)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[5, 10]))
    for side in axes.spines.values():
        side.set_visible(False)


def _legend(rows: Sequence[FigureRow]) -> list[Line2D]:
    def entry(mark: str, label: str, **style: Any) -> Line2D:
        return Line2D([], [], color=INK, marker=mark, linestyle="none", label=label, **style)

    entries = [entry("o", "test accuracy in %, mean and 95 % interval")]
    if any(point.recipe for row in rows for point in row.points.values()):
        entries.append(entry("s", "by the recipe of its authors", markersize=5))
    return [*entries, entry("D", "published; dotted: HaarPool", mfc="none")]
