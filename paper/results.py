"""The datasets of the paper with their results, for the tables and the figure of the pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from haarpool._numbers import DASH, mean_and_std
from haarpool.comparison.learners import Line, NetworkLearner
from haarpool.comparison.lines import ResultLines
from haarpool.comparison.report import Units
from haarpool.comparison.statistics import MIN_SPLITS, Estimate, estimate, paired_difference
from haarpool.comparison.table import REPEATS, Cell
from haarpool.tasks import SCORES
from paper.table_report import PaperReport
from paper.tables import Published, find_table

METRICS = {"table1": "accuracy", "triangles": "accuracy", "qm7": "mae"}
DEFAULT = "best"  # the row of `haarpool train` without settings
MIXTURE, NESTED = "best-mixture", "best-nested"
# What counts as our best network, if it is measured. On Table 1 the mixture, which was declared
# before it was run; nested selection was declared after its results were seen. On other tables
# nested selection, which was declared as our best before it was run.
OUR_BEST = (MIXTURE, NESTED, DEFAULT)
# What a peer may change in the network of HaarPool.
PEER_SETTINGS = {"arch", "tied", "pooling"}


class Experiment:
    """A dataset of the paper.

    Args:
        report: The report on its table.
        dataset: Its name.
    """

    def __init__(self, report: PaperReport, dataset: str) -> None:
        self.report, self.table, self.dataset = report, report.table, dataset
        self.metric, self.protocol = METRICS[self.table.name], self.table.cells[0].protocol
        self.cells = {
            cell.method: cell
            for cell in self.table.cells
            if (cell.dataset, cell.protocol) == (dataset, self.protocol)
        }
        self.methods = {row.name: row for row in self.table.rows}

    @property
    def units(self) -> Units:
        """How its results are shown."""
        return self.report.units(self.dataset)

    @property
    def name(self) -> str:
        """Name of the dataset for readers."""
        return "Triangles" if self.dataset == "TRIANGLES" else self.dataset

    @property
    def reference(self) -> str:
        """HaarPool as published."""
        return self.table.reference

    @property
    def peers(self) -> list[str]:
        """Methods with the layers, widths and training of HaarPool and another pooling."""
        haarpool = self.cells[self.reference]
        return [name for name, cell in self.cells.items() if is_peer(cell, haarpool)]

    @property
    def sign(self) -> int:
        """1 if high scores are good, -1 for errors."""
        return -1 if SCORES[self.metric].lower_is_better else 1

    def lines(self, method: str) -> list[Line]:
        """Return the lines of a method."""
        return self.report.ok(self.dataset, method, self.protocol)

    def result(self, method: str, part: str = "") -> Estimate:
        """Return the result of a method that is measured, in the units of the paper."""
        return self.units.scaled(estimate(self.lines(method), part))

    def measured(self, method: str, part: str = "") -> Estimate | None:
        """Return the result of a method; None with less than two splits."""
        return self.result(method, part) if len(self.lines(method)) > 1 else None

    def complete(self, method: str) -> Estimate | None:
        """Return the result of a method if it has all splits."""
        value = self.measured(method)
        return value if value and value.splits >= REPEATS else None

    def published(self, method: str) -> Published | None:
        """Return the number of the paper for a method."""
        return self.report.published(method, self.dataset)

    @property
    def target(self) -> Published:
        """The number of the paper for HaarPool, which all datasets have."""
        published = self.published(self.reference)
        assert published is not None
        return published

    def most_splits(self, methods: Iterable[str]) -> list[str]:
        """Return the methods that have the most splits."""
        counts = {method: len(self.lines(method)) for method in methods}
        most = max(counts.values(), default=0)
        return [method for method, count in counts.items() if count == most > 1]

    def best_peer(self) -> str | None:
        """Return the peer with the best mean test score, of those with the most splits."""
        peers = {peer: self.sign * self.result(peer).mean for peer in self.most_splits(self.peers)}
        return max(peers, key=peers.__getitem__, default=None)

    def best_of_ours(self) -> str | None:
        """Return the first of `OUR_BEST` that is measured; no result chooses it."""
        measured = self.most_splits(name for name in OUR_BEST if name in self.cells)
        return measured[0] if measured else None

    def gain(self, method: str, other: str, part: str = "") -> Estimate | None:
        """Return how far a method is ahead of another one on the same splits, positive if better.

        Args:
            method: The method.
            other: The other one.
            part: Part of the data that is scored; by default the test part.
        """
        difference = paired_difference(self.lines(method), self.lines(other), part)
        if difference is None or difference.splits < MIN_SPLITS:
            return None
        return self.units.scaled(difference._replace(mean=self.sign * difference.mean))


def is_peer(cell: Cell, haarpool: Cell) -> bool:
    """Return whether a cell has the network and training of HaarPool, with another pooling."""
    is_network = issubclass(cell.learner, NetworkLearner)
    if not is_network or "HP" in cell.settings["arch"].split("-"):
        return False
    own, others = (
        {name: value for name, value in one.settings.items() if name not in PEER_SETTINGS}
        for one in (cell, haarpool)
    )
    return own == others


def is_ours(method: str) -> bool:
    """Return whether a method is one of our best networks, with or without pooling."""
    return method.startswith(DEFAULT)


def read_report(results: Path, name: str) -> PaperReport:
    """Return the report on a table from its lines."""
    return PaperReport(find_table(name), ResultLines(results, name).read())


def read_experiments(results: Path) -> list[Experiment]:
    """Return the datasets of the paper."""
    return [
        Experiment(report, dataset)
        for name in METRICS
        for report in [read_report(results, name)]
        for dataset in report.table.datasets
    ]


def verdict(ours: Estimate, published: Published, sign: int) -> str:
    """Compare a published number with our result.

    A wide interval contains many numbers. So "reproduced" also needs a mean within two published
    standard deviations, where there are some; else it is "unclear".

    Args:
        ours: Our result.
        published: The published one.
        sign: 1 if high scores are good, -1 for errors.
    """
    distance = ours.mean - published.value
    if not ours.contains(published.value):
        return "better" if sign * distance > 0 else "not reached"
    is_close = published.std is None or abs(distance) <= 2 * published.std
    return "reproduced" if is_close else "unclear"


def spread(value: Estimate | None) -> str:
    """Format mean and standard deviation, and the number of splits if it is not ten."""
    if value is None:
        return DASH
    count = f" ({value.splits})" if value.splits != REPEATS else ""
    return mean_and_std(value.mean, value.std) + count
