"""The figure of a comparison: the mean of each method with its interval."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from haarpool._files import atomic_write
from haarpool.comparison.statistics import estimate

if TYPE_CHECKING:
    from haarpool.comparison.report import TableReport

COLOUR, FIRST = "#2b83c6", "#d55e00"  # after Okabe and Ito, for all kinds of sight


def draw_intervals(report: TableReport, path: Path) -> bool:
    """Draw a panel for each dataset; return False if there is nothing to draw.

    Args:
        report: The comparison.
        path: The PNG file to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    table = report.table
    datasets = [name for name in table.datasets if report.score(name) is not None]
    if not datasets:
        return False
    height = 1.2 + 0.3 * len(table.rows)
    figure = Figure(figsize=(3.2 + 4 * len(datasets), height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
    for axes, dataset in zip(panels, datasets, strict=True):
        score, units = report.score(dataset), report.units(dataset)
        assert score is not None
        for place, row in enumerate(table.rows):
            cells = [c for c in table.cells if (c.dataset, c.method) == (dataset, row.name)]
            for lines in (report.ok(*cell.key) for cell in cells):
                if lines:
                    value = units.scaled(estimate(lines))
                    half = None if math.isnan(value.half) else value.half
                    colour = FIRST if row.name == table.reference else COLOUR
                    axes.errorbar(
                        value.mean, place, xerr=half, fmt="o", color=colour, capsize=3, markersize=5
                    )
        axes.set_title(dataset, fontsize=11)
        axes.set_xlabel(f"test {score.title}{' [%]' * score.is_share}")
        axes.grid(axis="x", color="#80808040")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_yticks(range(len(table.rows)), [row.title for row in table.rows])
    panels[0].invert_yaxis()
    with atomic_write(path) as partial:
        figure.savefig(partial, dpi=130, format="png", metadata={"Software": None})
    return True
