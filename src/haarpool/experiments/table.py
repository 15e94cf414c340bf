"""What a table of the paper consists of. An experiment is data; nothing here trains.

A `Table` is a list of cells. A `Cell` says what is trained on which dataset. On one split it is a
`Trial`, and the result of a trial is one line of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from haarpool.errors import HaarPoolError

# The names of the tables are arguments of the shell, which imports nothing else.
TABLES = ("table1", "triangles", "qm7", "ablation")
FROM_BENCHMARK = ("timing", "properties")  # from the files of `haarpool bench`
# Rule of `make_splits` by protocol.
PROTOCOLS = {"random": "random", "10-fold": "kfold:10", "given": "given"}
REPEATS = 10
NO_POOLING = "-no-pooling"  # end of the name of a row that is another one without pooling
QUICK_REPEATS, QUICK_EPOCHS = 2, 3


class Method(NamedTuple):
    """A row of a table.

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
        return f"{self.value:.1f}{self.mark}" + (f" ± {self.std:.1f}" if self.std else "")


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        dataset: Name of the dataset.
        method: Name of the method.
        protocol: One of `PROTOCOLS`.
        settings: Settings of `RunConfig`, or parameters of another trainer.
        trainer: "network", "network_parts" for one with scores of all parts, or another name in
            `trainers.TRAINERS`.
    """

    dataset: str
    method: str
    protocol: str
    settings: Mapping[str, Any]
    trainer: str = "network"

    @property
    def is_network(self) -> bool:
        """Whether the settings are those of `RunConfig`."""
        return self.trainer.startswith("network")

    @property
    def networks(self) -> dict[str, Cell]:
        """Cells of the kinds of networks of a mixture, each with several members; {} for others."""
        if "networks" not in self.settings:
            return {}
        members = {"ensemble": self.settings["members"]}
        return {
            name: replace(self, settings={**settings, **members}, trainer="network")
            for name, settings in self.settings["networks"].items()
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
        methods: Its rows, in the order of the report.
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
    methods: Sequence[Method]
    cells: Sequence[Cell]
    reference: str
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    parts: Sequence[str] = ()
    history: Sequence[str] = ()
    quick: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that cells are unique and that their methods exist."""
        keys = [cell.key for cell in self.cells]
        assert len(set(keys)) == len(keys)
        assert {cell.method for cell in self.cells} == {method.name for method in self.methods}

    @property
    def datasets(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(cell.dataset for cell in self.cells))

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
            known = dict.fromkeys(getattr(cell, kind) for cell in self.cells)
            lower = {name.lower(): name for name in known}
            wanted = set()
            for name in names:
                if name.lower() not in lower:
                    raise HaarPoolError(
                        f"a {kind} of {self.name}: {', '.join(known)}", name, "choose some of these"
                    )
                wanted.add(lower[name.lower()])
            chosen = [cell for cell in chosen if not wanted or getattr(cell, kind) in wanted]
        if not chosen:
            raise HaarPoolError(
                f"a cell of {self.name}",
                "none with these datasets, methods and protocols",
                "list all cells",
            )
        kept = {cell.method for cell in chosen}
        rows = [method for method in self.methods if method.name in kept]
        return replace(self, cells=chosen, methods=rows)

    def shortened(self) -> Table:
        """Return the table with few epochs."""

        def short(cell: Cell) -> Mapping[str, Any]:
            few = {"epochs": QUICK_EPOCHS}
            if cell.networks:
                networks = cell.settings["networks"].items()
                short_networks = {name: {**one, **few} for name, one in networks}
                return {**cell.settings, "members": 2, "networks": short_networks}
            return {**cell.settings, **few} if cell.is_network else cell.settings

        cells = [replace(cell, settings=short(cell)) for cell in self.cells]
        return replace(self, cells=cells)

    def trials(self, repeats: int) -> list[Trial]:
        """Return all trials, in the order in which they are run."""
        return [Trial(cell, seed) for cell in self.cells for seed in range(repeats)]


def find_table(name: str) -> Table:
    """Return a table by its name."""
    from importlib import import_module

    table: Table = import_module(f"haarpool.experiments.{name}").TABLE
    return table
