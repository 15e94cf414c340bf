"""What a table of the paper consists of. An experiment is data; nothing here trains.

A `Table` is a list of cells. A `Cell` says what is trained on which dataset. On one split it is a
`Trial`, and the result of a trial is one line of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple

from haarpool._numbers import mean_and_std
from haarpool.errors import HaarPoolError

# The names of the tables are arguments of the shell, which imports nothing else.
TABLES = ("table1", "triangles", "qm7", "ablation")
FROM_BENCHMARK = ("timing", "properties")  # from the files of `haarpool bench`
# Rule of `make_splits` by protocol.
PROTOCOLS = {"random": "random", "10-fold": "kfold:10", "given": "given"}
REPEATS = 10
NO_POOLING = "-no-pooling"  # end of the name of a row that is another one without pooling
QUICK_REPEATS, QUICK_EPOCHS = 2, 3


class Row(NamedTuple):
    """A row of a table: a method.

    Attributes:
        name: Its name for the shell and the lines.
        title: Its name in the report.
        note: What a reader must know about it, for example where it differs from its paper.
        published: Row of the published table that it repeats; "" if there is none.
    """

    name: str
    title: str
    note: str = ""
    published: str = ""


class Published(NamedTuple):
    """A published number.

    Attributes:
        value: The number, in the units of the paper: per cent for accuracies.
        std: Its standard deviation, or None.
        mark: Mark in the table, for example "*".
    """

    value: float
    std: float | None = None
    mark: str = ""

    def __str__(self) -> str:
        return mean_and_std(self.value, self.std, mark=self.mark)


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        dataset: Name of the dataset.
        method: Name of the row.
        protocol: One of `PROTOCOLS`.
        settings: Settings of `RunConfig`, or parameters of another learner.
        learner: "network", or another name in `learners.LEARNERS`.
        with_parts: Score also the training part, and test graphs by size.
    """

    dataset: str
    method: str
    protocol: str
    settings: Mapping[str, Any]
    learner: str = "network"
    with_parts: bool = False

    @property
    def is_network(self) -> bool:
        """Whether the settings are those of `RunConfig`."""
        return self.learner == "network"

    @property
    def networks(self) -> dict[str, Cell]:
        """Cells of the kinds of networks of a mixture, each with several members; {} for others."""
        members = {"ensemble": self.settings.get("members")}
        return {
            name: replace(self, settings={**settings, **members}, learner="network")
            for name, settings in self.settings.get("networks", {}).items()
        }

    @property
    def mixture_settings(self) -> dict[str, Any]:
        """Settings of a mixture beside its kinds of networks, such as "final_networks"."""
        of_kinds = ("networks", "members")
        return {name: value for name, value in self.settings.items() if name not in of_kinds}

    @property
    def key(self) -> tuple[str, str, str]:
        """Dataset, method and protocol, which are unique in a table."""
        return self.dataset, self.method, self.protocol

    def shortened(self) -> Cell:
        """Return the cell with few epochs."""
        few = {"epochs": QUICK_EPOCHS}
        if self.networks:
            networks = {name: {**one, **few} for name, one in self.settings["networks"].items()}
            return replace(self, settings={**self.settings, "members": 2, "networks": networks})
        return replace(self, settings={**self.settings, **few}) if self.is_network else self


class Trial(NamedTuple):
    """A cell on one split.

    Attributes:
        cell: The cell.
        seed: Number of the split, which is the same for all methods: the repeat of the run.
    """

    cell: Cell
    seed: int


@dataclass(frozen=True)
class Table:
    """A table of the paper, measured.

    Attributes:
        name: One of `TABLES`.
        title: Its title in the report.
        text: How it is measured, in a few sentences.
        rows: Its rows, in the order of the report.
        cells: What is trained, in the order in which it is run.
        reference: The method that the others are compared with.
        published: Published numbers by row of the paper and dataset.
        parts: Names of scores in a line that are columns of the table; by default datasets are.
        history: Methods whose loss and validation score over the epochs are drawn.
        quick: Methods of the small version, which has the first dataset and the first protocol.
    """

    name: str
    title: str
    text: str
    rows: Sequence[Row]
    cells: Sequence[Cell]
    reference: str
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    parts: Sequence[str] = ()
    history: Sequence[str] = ()
    quick: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that cells are unique and that their rows exist."""
        assert len({cell.key for cell in self.cells}) == len(self.cells)
        assert {cell.method for cell in self.cells} == {row.name for row in self.rows}

    @property
    def datasets(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(cell.dataset for cell in self.cells))

    def with_cells(self, cells: Sequence[Cell]) -> Table:
        """Return the table with some cells and their rows."""
        kept = {cell.method for cell in cells}
        return replace(self, cells=cells, rows=[row for row in self.rows if row.name in kept])

    def select(
        self,
        datasets: Iterable[str] = (),
        methods: Iterable[str] = (),
        protocols: Iterable[str] = (),
    ) -> Table:
        """Return the table with the cells of some datasets, methods and protocols; none means all.

        Args:
            datasets: Names of datasets, in any case.
            methods: Names of methods.
            protocols: Names of protocols.
        """
        chosen = list(self.cells)
        for kind, names in (("dataset", datasets), ("method", methods), ("protocol", protocols)):
            known = {getattr(cell, kind).lower(): getattr(cell, kind) for cell in self.cells}
            wanted = {name.lower(): name for name in names}
            if unknown := [name for lower, name in wanted.items() if lower not in known]:
                expected = f"a {kind} of {self.name}: {', '.join(known.values())}"
                raise HaarPoolError(expected, unknown[0], "choose some of these")
            if wanted:
                chosen = [cell for cell in chosen if getattr(cell, kind).lower() in wanted]
        if not chosen:
            raise HaarPoolError(
                f"a cell of {self.name}",
                "none with these datasets, methods and protocols",
                "list all cells",
            )
        return self.with_cells(chosen)

    def shortened(self) -> Table:
        """Return the table with few epochs."""
        return replace(self, cells=[cell.shortened() for cell in self.cells])

    def trials(self, repeats: int) -> list[Trial]:
        """Return all trials, in the order in which they are run."""
        return [Trial(cell, seed) for cell in self.cells for seed in range(repeats)]


def find_table(name: str) -> Table:
    """Return a table by its name."""
    table: Table = import_module(f"haarpool.experiments.{name}").TABLE
    return table


def replace_pooling(arch: str, pooling: str = "", readout: str = "") -> str:
    """Return an architecture with another pooling and the same convolutions and linear layers.

    Args:
        arch: Architecture with HP.
        pooling: Token that takes the place of each HP; "" leaves it out.
        readout: Token of a global readout before the linear layers; "" for a pooling that leaves
            one node per graph.

    Example:
        >>> replace_pooling("2GC8-HP-GC8-HP-FC8", "SP", "AP"), replace_pooling("GC8-HP-FC8", "EIG")
        ('2GC8-SP-GC8-SP-AP-FC8', 'GC8-EIG-FC8')
    """
    blocks = [pooling if block == "HP" else block for block in arch.split("-")]
    end = next((i for i, block in enumerate(blocks) if "FC" in block), len(blocks))
    return "-".join(filter(None, [*blocks[:end], readout, *blocks[end:]]))
