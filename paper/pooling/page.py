"""Write the tables of docs/what_pooling_is_for.md from the lines of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.common import write_tables
from haarpool._numbers import DASH
from haarpool.comparison.document import markdown_table
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import ResultLines
from haarpool.comparison.report import TableReport
from haarpool.comparison.statistics import estimate
from haarpool.comparison.table import Cell, Row
from haarpool.errors import HaarPoolError
from paper.pooling import STUDY
from paper.pooling.methods import METHODS
from paper.pooling.table import SEARCH, chosen_rates, final_table
from paper.pooling.tasks import TASKS, StudyTask

PAGES = (Path("docs/what_pooling_is_for.md"),)


class StudyReport(TableReport):
    """The report on a task of the study.

    Args:
        task: The task.
        folder: Folder of results.
    """

    shows_protocol = False

    def __init__(self, task: StudyTask, folder: Path) -> None:
        self.task = task
        search = ResultLines(folder, SEARCH).read()
        self.rates = chosen_rates(task, task.methods, search)
        lines = [x for x in ResultLines(folder, STUDY).read() if x["dataset"] == task.name]
        super().__init__(final_table(task, self.rates), lines, task.seeds)
        self.last_header = (*task.parts.values(), "Rate", "Reach, hops", "Weights", "Seconds")

    def last_columns(self, row: Row, dataset: str, lines: Sequence[Line]) -> list[str]:
        """Return the mean scores of parts, the learning rate, reach, weights and mean time."""
        units, texts = self.units(dataset), []
        # A part is a score of its own, or a part of the data by the main score.
        lines = [line | {"parts": line["scores"]["test"] | line.get("parts", {})} for line in lines]
        for part in self.task.parts:
            there = all(part in line["parts"] for line in lines)
            texts.append(units.mean_and_std(estimate(lines, part)) if there else DASH)
        seconds = sum(line["training_seconds"] for line in lines) / len(lines)
        weights = lines[0].get("num_parameters")
        rate = f"{self.rates[row.name]:g}" if row.name in METHODS else DASH
        far = [line["reach"] for line in lines if "reach" in line]
        hops = f"{far[0]:.1f}" if far else DASH
        return [*texts, rate, hops, f"{weights:,}" if weights else DASH, f"{seconds:,.0f}"]

    def without_result(self, cell: Cell) -> Iterator[list[str]]:
        """Yield the reason of a method that failed on every split."""
        if lines := self.lines[cell.key]:
            yield [self.titles[cell.method], f"failed: {lines[0]['reason']}"]

    def table_of_task(self) -> str:
        """Return the table as Markdown."""
        grid = self.details(self.task.name)
        width = len(grid.header)
        rows = [[*row, *[""] * (width - len(row))] for row in grid.rows]
        return markdown_table([list(grid.header), *rows])


def write_page(folder: Path) -> list[Path]:
    """Write the tables of all tasks that have lines; return the pages.

    Args:
        folder: Folder of results.
    """
    tables = {}
    if missing := [str(page) for page in PAGES if not page.exists()]:
        raise HaarPoolError("the page of the study", f"no {missing[0]}", "write its text first")
    for name, task in TASKS.items():
        report = StudyReport(task, folder)
        if any(report.lines.values()):
            tables[name] = report.table_of_task()
    write_tables(tables, PAGES)
    return list(PAGES)
