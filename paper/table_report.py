"""The report on a table of the paper: published numbers, what pooling adds, and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from haarpool._numbers import DASH
from haarpool.comparison.document import Grid, Part
from haarpool.comparison.learners import Line
from haarpool.comparison.report import TableReport
from haarpool.comparison.statistics import Estimate, estimate, paired_difference
from haarpool.comparison.table import REPEATS, Row
from paper.figure import draw_history
from paper.tables import NO_POOLING, PaperTable, Published


class PaperReport(TableReport):
    """The report on a table of the paper.

    Args:
        table: The table.
        lines: Its lines.
        repeats: Number of splits that each cell should have.
        folder: Folder of the report, to which a figure is written; None leaves it out.
    """

    table: PaperTable
    beside_note = "; in brackets the published number"
    last_header = ("Published",)

    def __init__(
        self,
        table: PaperTable,
        lines: Sequence[Line],
        repeats: int = REPEATS,
        folder: Path | None = None,
    ) -> None:
        super().__init__(table, lines, repeats)
        self.folder = folder
        self.published_rows = {row.name: row.published for row in table.rows}

    def more(self) -> Iterator[Part]:
        """Yield what pooling adds, and a figure."""
        if (gains := self.pooling_gains()).rows:
            yield gains
        if self.folder is not None and (histories := self.histories()):
            name = f"{self.table.name}.png"
            draw_history(histories, self.folder / name)
            yield f"![Mean and standard deviation over the splits, epoch by epoch]({name})"

    def published(self, method: str, column: str) -> Published | None:
        """Return the published number of a method for a dataset or a part."""
        return self.table.published.get(self.published_rows[method], {}).get(column)

    def beside(self, row: Row, column: str) -> str:
        """Return the published number in brackets."""
        published = self.published(row.name, column)
        return f" [{published}]" if published else ""

    def last_columns(self, row: Row, dataset: str, lines: Sequence[Line]) -> Sequence[str]:
        """Return the published number, and where it is outside of our interval."""
        ours = self.units(dataset).scaled(estimate(lines))
        return [_compare(ours, self.published(row.name, dataset))]

    def pooling_gains(self) -> Grid:
        """Return the differences to the same networks without pooling."""
        rows = []
        for row in self.table.rows:
            for protocol in dict.fromkeys(cell.protocol for cell in self.table.cells):
                texts = []
                for dataset, part in self.columns:
                    lines = self.ok(dataset, row.name, protocol)
                    others = self.ok(dataset, row.name + NO_POOLING, protocol)
                    gain, score = paired_difference(lines, others, part), self.score(dataset)
                    sign = -1 if score is not None and score.lower_is_better else 1
                    texts.append(self.units(dataset).difference(gain and gain.scaled(sign)))
                if set(texts) != {DASH}:
                    rows.append([row.title, protocol, *texts])
        caption = (
            "What pooling adds: mean difference to the same without pooling over the same splits, "
            "and its 95 % interval; above zero, pooling is better. Nested selection without "
            "pooling chooses among networks without pooling, and may choose more or fewer of them."
        )
        header = ["Method", "Protocol", *(part or dataset for dataset, part in self.columns)]
        return Grid(caption, header, rows)

    def histories(self) -> dict[str, list[Line]]:
        """Return the trials to draw by the title of their method."""
        dataset, _, protocol = self.table.cells[0].key
        drawn = {
            self.titles[name]: [x for x in self.ok(dataset, name, protocol) if "history" in x]
            for name in self.table.history
            if name in self.titles
        }
        return {title: lines for title, lines in drawn.items() if lines}


def _compare(ours: Estimate, published: Published | None) -> str:
    """Format a published number, and say where it is outside of our interval."""
    if published is None:
        return DASH
    if math.isnan(ours.half) or ours.contains(published.value):
        return str(published)
    side = "above" if published.value > ours.mean else "below"
    return f"{published}, {side} our interval"
