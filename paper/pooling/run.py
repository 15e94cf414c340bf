"""Train what is missing of the study, task by task: first the search, then what is reported."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from haarpool.cli.terminal import progress_option
from haarpool.comparison.lines import ResultLines
from haarpool.comparison.runner import Summary, run_table
from haarpool.comparison.table import Table
from haarpool.datasets import Graphs, find_dataset, read_graphs
from haarpool.datasets.locations import REMEDY
from haarpool.errors import HaarPoolError
from paper.pooling.data import prepare, read_task
from paper.pooling.methods import METHODS
from paper.pooling.shortcuts import SHORTCUTS
from paper.pooling.table import SEARCH, chosen_rates, final_table, search_table
from paper.pooling.tasks import TASKS, StudyTask, find_task


def choose(tasks: Sequence[str], methods: Sequence[str]) -> dict[StudyTask, list[str]]:
    """Return the methods of each task that are asked for; without names all of them.

    Args:
        tasks: Names of tasks.
        methods: Names of networks and of shortcuts.
    """
    known = (*METHODS, *SHORTCUTS)
    if unknown := [name for name in methods if name not in known]:
        expected = f"a method of the study: {', '.join(known)}"
        raise HaarPoolError(expected, unknown[0], "choose some of these")
    chosen = {}
    for task in map(find_task, tasks or TASKS):
        names = [x for x in (*task.methods, *task.shortcuts) if not methods or x in methods]
        if names:
            chosen[task] = names
    if not chosen:
        expected, got = "methods that one of the tasks has", ", ".join(methods)
        raise HaarPoolError(expected, got, "list them with --list")
    return chosen


def read(name: str) -> Graphs:
    """Read the dataset of a task."""
    dataset = find_task(name).dataset
    return read_graphs(dataset) if dataset else read_task(name)


def check(name: str) -> None:
    """Make the dataset of a task if it is not there, or raise an error, before the work."""
    dataset = find_task(name).dataset
    if dataset:
        if find_dataset(dataset) is None:
            got = "generated graphs of this name"
            raise HaarPoolError(f"the published dataset {dataset}", got, REMEDY)
    else:
        prepare(name)


def run_study(chosen: dict[StudyTask, list[str]], folder: Path, arguments: Namespace) -> Summary:
    """Train the missing trials.

    Args:
        chosen: Methods of each task.
        folder: Folder of results.
        arguments: Of the command: repeats, jobs, device, retry, quick, ...
    """
    done = [one for task, names in chosen.items() for one in _run(task, names, folder, arguments)]
    return Summary(*(sum(numbers) for numbers in zip(*done, strict=True)))


def _run(
    task: StudyTask, names: Sequence[str], folder: Path, arguments: Namespace
) -> Iterator[Summary]:
    quick = arguments.quick
    networks = [name for name in names if name in METHODS]

    def train(table: Table, repeats: int) -> Summary:
        return run_table(
            table, folder, repeats, read,
            jobs=arguments.jobs, device=arguments.device, retry=arguments.retry,
            check=check, progress=progress_option(arguments), show=partial(print, flush=True),
        )  # fmt: skip

    if networks:
        yield train(search_table(task, networks, quick=quick), 1)
    lines = ResultLines(folder, SEARCH).read()
    rates = chosen_rates(task, networks, lines, quick=quick)
    shortcuts = [name for name in names if name in SHORTCUTS]
    if rates or shortcuts:
        repeats = arguments.repeats or (2 if quick else task.seeds)
        yield train(final_table(task, rates, shortcuts, quick=quick), repeats)
