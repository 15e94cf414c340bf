"""What is compared. A comparison is data; nothing here trains.

A `Table` is a list of cells. A `Cell` says what is trained on which dataset. On one split it is a
`Trial`, and the result of a trial is one line of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from haarpool.comparison.learners import Learner, NetworkLearner

REPEATS = 10


@dataclass(frozen=True)
class Row:
    """A row of a table: a method.

    Attributes:
        name: Its name for the shell and the lines.
        title: Its name in the report.
        note: What a reader must know about it, for example where it differs from its paper.
        reference: Name of the method that `haarpool compare` compares it with; "" for the first.
    """

    name: str
    title: str
    note: str = ""
    reference: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        dataset: Name of the dataset.
        method: Name of the row.
        protocol: Rule of `make_splits`; "10-fold" is "kfold:10".
        settings: Settings of `RunConfig`, or parameters of another learner.
        learner: The class that trains it.
        folds: Number of trials of a repeat.
    """

    dataset: str
    method: str
    protocol: str
    settings: Mapping[str, Any]
    learner: type[Learner] = NetworkLearner
    folds: int = 1

    @property
    def key(self) -> tuple[str, str, str]:
        """Dataset, method and protocol, which are unique in a table."""
        return self.dataset, self.method, self.protocol

    @property
    def split_rule(self) -> str:
        """The rule of `make_splits`."""
        return "kfold:10" if self.protocol == "10-fold" else self.protocol


class Trial(NamedTuple):
    """A cell on one split.

    Attributes:
        cell: The cell.
        seed: Number of the split, which is the same for all methods: the repeat of the run.
    """

    cell: Cell
    seed: int


@dataclass(frozen=True, kw_only=True)
class Table:
    """Methods that are compared on the same splits.

    Attributes:
        name: Name of the folder of its lines.
        title: Its title in the report.
        text: How it is measured, in a few sentences.
        rows: Its rows, in the order of the report.
        cells: What is trained, in the order in which it is run.
        reference: The method that the others are compared with.
        parts: Names of scores in a line that are columns of the table; by default datasets are.
    """

    name: str
    title: str
    text: str
    rows: Sequence[Row]
    cells: Sequence[Cell]
    reference: str
    parts: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that cells are unique and that their rows exist."""
        assert len({cell.key for cell in self.cells}) == len(self.cells)
        assert {cell.method for cell in self.cells} == {row.name for row in self.rows}

    @property
    def datasets(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(cell.dataset for cell in self.cells))

    def trials(self, repeats: int) -> list[Trial]:
        """Return all trials, in the order in which they are run."""
        return [Trial(cell, seed) for cell in self.cells for seed in range(repeats * cell.folds)]
