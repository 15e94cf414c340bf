"""The tables of the paper, and what they have beside what every comparison has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import NamedTuple, Self

from haarpool._numbers import mean_and_std
from haarpool.comparison.learners import NetworkLearner
from haarpool.comparison.table import Cell, Table
from haarpool.comparison.table import Row as PlainRow
from haarpool.errors import HaarPoolError

TABLES = ("table1", "triangles", "qm7", "ablation")
FROM_BENCHMARK = ("timing", "properties")  # from the files of `python -m benchmarks`
NO_POOLING = "-no-pooling"  # end of the name of a row that is another one without pooling
QUICK_REPEATS, QUICK_EPOCHS = 2, 3


@dataclass(frozen=True)
class Row(PlainRow):
    """A method, and the row of the published table that it repeats.

    Attributes:
        published: Name of this row; "" if there is none.
    """

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


@dataclass(frozen=True, kw_only=True)
class PaperTable(Table):
    """A table of the paper, measured.

    Attributes:
        published: Published numbers by row of the paper and dataset.
        history: Methods whose loss and validation score over the epochs are drawn.
        quick: Methods of the small version, which has the first dataset and the first protocol.
    """

    rows: Sequence[Row]
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    history: Sequence[str] = ()
    quick: Sequence[str] = ()

    def with_cells(self, cells: Sequence[Cell]) -> Self:
        """Return the table with some cells and their rows."""
        kept = {cell.method for cell in cells}
        return replace(self, cells=cells, rows=[row for row in self.rows if row.name in kept])

    def select(
        self,
        datasets: Iterable[str] = (),
        methods: Iterable[str] = (),
        protocols: Iterable[str] = (),
    ) -> Self:
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

    def shortened(self) -> PaperTable:
        """Return the table with few epochs."""
        return replace(self, cells=[_shortened(cell) for cell in self.cells])


def _shortened(cell: Cell) -> Cell:
    few = {"epochs": QUICK_EPOCHS}
    if "networks" in cell.settings:
        networks = {name: {**one, **few} for name, one in cell.settings["networks"].items()}
        return replace(cell, settings={**cell.settings, "members": 2, "networks": networks})
    is_network = issubclass(cell.learner, NetworkLearner)
    return replace(cell, settings={**cell.settings, **few}) if is_network else cell


def find_table(name: str) -> PaperTable:
    """Return a table by its name."""
    table: PaperTable = import_module(f"paper.{name}").TABLE
    return table


def all_tables() -> Iterator[PaperTable]:
    """Yield all tables."""
    yield from map(find_table, TABLES)


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
