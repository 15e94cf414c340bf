"""The tables of a task: the trials that choose learning rates, and those that are reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from haarpool.comparison.learners import Line
from haarpool.comparison.lines import current_lines, is_good
from haarpool.comparison.table import Cell, Row, Table
from haarpool.tasks import find_score
from haarpool.training.presets import BEST
from paper.pooling import STUDY
from paper.pooling.learners import SearchLearner, StudyCell, StudyLearner
from paper.pooling.methods import GRID, METHODS, graph_arch, with_levels
from paper.pooling.peers import register_peers
from paper.pooling.shortcuts import SHORTCUTS
from paper.pooling.tasks import StudyTask

SEARCH = f"{STUDY}-search"  # folder of the lines of the search
QUICK_EPOCHS = 2
GIVEN = "given"  # the splits are those of the datasets


def settings(task: StudyTask, method: str, rate: float, *, quick: bool = False) -> dict[str, Any]:
    """Return the settings of a network on a task.

    Args:
        task: The task.
        method: Name of the network.
        rate: Its learning rate.
        quick: Train a few epochs.
    """
    register_peers()
    one = METHODS[method]
    chosen = {**BEST, "threads": 1, **task.settings, "lr": rate, "chain": dict(one.chain)}
    arch = one.arch if task.of_nodes else graph_arch(one.arch)
    chosen["arch"] = arch if task.levels is None else with_levels(arch, task.levels)
    chosen["epochs"] = QUICK_EPOCHS if quick else one.longer * chosen["epochs"]
    return chosen


def search_table(task: StudyTask, methods: Iterable[str], *, quick: bool = False) -> Table:
    """Return the trials of the grid, one for each learning rate, on the first split.

    Args:
        task: The task.
        methods: Names of networks.
        quick: Train a few epochs.
    """
    cells = [
        StudyCell(
            task.name, _point(method, rate), GIVEN,
            settings(task, method, rate, quick=quick), SearchLearner,
            large=task.large,
        )
        for method in methods
        for rate in GRID
    ]  # fmt: skip
    rows = [Row(cell.method, cell.method) for cell in cells]
    return Table(
        name=SEARCH, title=task.title, text=task.text, rows=rows, cells=cells,
        reference=cells[0].method,
    )  # fmt: skip


def _point(method: str, rate: float) -> str:
    return f"{method} lr={rate:g}"


def chosen_rates(
    task: StudyTask, methods: Iterable[str], lines: Sequence[Line], *, quick: bool = False
) -> dict[str, float]:
    """Return the learning rate of each method with the best validation score.

    Methods of which a trial of the grid is missing, or failed otherwise than by divergence, are
    left out. A learning rate that diverged is not chosen.

    Args:
        task: The task.
        methods: Names of networks.
        lines: Lines of the search.
        quick: Whether they are those of a few epochs.
    """
    methods = list(methods)
    found = current_lines(search_table(task, methods, quick=quick), lines) if methods else {}
    rates = {}
    for method in methods:
        tried = {rate: found.get((task.name, _point(method, rate), GIVEN, 0)) for rate in GRID}
        if not all(line and (is_good(line) or diverged(line)) for line in tried.values()):
            continue
        scores = {
            rate: (-1 if find_score(line["metric"]).lower_is_better else 1) * line["validation"]
            for rate, line in tried.items()
            if line is not None and is_good(line)
        }
        if scores:
            rates[method] = max(scores, key=scores.__getitem__)
    return rates


def diverged(line: Line) -> bool:
    """Return whether a trial failed because its loss was not finite."""
    return "finite validation loss" in str(line["reason"])


def final_table(
    task: StudyTask,
    rates: Mapping[str, float],
    shortcuts: Sequence[str] | None = None,
    *,
    quick: bool = False,
) -> Table:
    """Return the trials that are reported: networks with their learning rates, and shortcuts.

    Args:
        task: The task.
        rates: Learning rate of each network.
        shortcuts: Names of shortcuts; `None` for all of the task.
        quick: Train a few epochs.
    """
    cells: list[Cell] = [
        StudyCell(
            task.name,
            name,
            GIVEN,
            settings(task, name, rate, quick=quick),
            StudyLearner,
            large=task.large,
        )
        for name, rate in rates.items()
    ]
    cells += [
        StudyCell(task.name, name, GIVEN, {}, SHORTCUTS[name])
        for name in (task.shortcuts if shortcuts is None else shortcuts)
    ]
    rows = [Row(cell.method, _title(cell.method), _note(cell.method)) for cell in cells]
    return Table(
        name=STUDY,
        title=task.title,
        text=task.text,
        rows=rows,
        cells=cells,
        reference=task.reference,
    )


def _title(name: str) -> str:
    return METHODS[name].title if name in METHODS else SHORTCUTS[name].title


def _note(name: str) -> str:
    return METHODS[name].note if name in METHODS else str(SHORTCUTS[name].__doc__)
