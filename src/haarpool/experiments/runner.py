"""Run the trials of a table that have no line yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from haarpool._progress import ProgressOption, show_progress
from haarpool._validate import whole_number
from haarpool.datasets.locations import REMEDY, find_dataset
from haarpool.errors import HaarPoolError
from haarpool.experiments.checkpoints import remove_empty
from haarpool.experiments.lines import (
    Key,
    Line,
    ResultLines,
    current_lines,
    is_good,
    make_folder,
    missing_trials,
)
from haarpool.experiments.processes import Died, run_in_processes
from haarpool.experiments.table import TABLES, Table, Trial, find_table
from haarpool.experiments.trials import TrialRunner, new_line
from haarpool.training.devices import find_device

MAX_JOBS, MAX_REPEATS = 256, 1000


class Summary(NamedTuple):
    """What a command did.

    Attributes:
        skipped: Trials that had a line, here or in another row.
        ok: Trials that ended well.
        failed: Trials that failed.
    """

    skipped: int
    ok: int
    failed: int


class RunOptions(NamedTuple):
    """How trials are run; no result depends on it but by the device.

    Attributes:
        jobs: Number of processes, which share the cores or the GPU.
        device: Name of the device.
        root: Folder of datasets.
        retry: Try failed trials again.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with a line of text every 30 seconds.
    """

    jobs: int = 1
    device: str = "auto"
    root: str | None = None
    retry: bool = False
    progress: ProgressOption = None


def run_table(
    table: Table,
    folder: Path,
    repeats: int,
    options: RunOptions,
    show: Callable[[str], object] = print,
) -> Summary:
    """Train what is missing of a table; write a line as soon as a trial ends.

    A trial that was killed continues from its last checkpoint.

    Args:
        table: The table.
        folder: Folder of results.
        repeats: Number of trials of each cell.
        options: How they are run.
        show: Is called with a line of text about each trial.
    """
    whole_number("repeats", repeats, 1, MAX_REPEATS)
    whole_number("n_jobs", options.jobs, 1, MAX_JOBS)
    results = ResultLines(folder, table.name)
    trials = missing_trials(table, current_lines(table, results.read()), repeats, options.retry)
    summary = Summary(len(table.trials(repeats)) - len(trials), 0, 0)
    trials, known = _split_known(trials, folder)
    # Errors before the work.
    device = find_device(options.device)
    for dataset in dict.fromkeys(trial.cell.dataset for trial in trials):
        _check_dataset(dataset, options.root)
    make_folder(results.folder)
    for line in known:
        results.append(line)
        show(f"{describe_line(line)}, copied from {line['copied_from']}")
    summary = summary._replace(skipped=summary.skipped + len(known))
    train = TrialRunner(options.device, options.root, folder)
    jobs = min(options.jobs, len(trials)) or 1
    shown = show_progress(
        options.progress, table.name, "trials", len(trials), smoothing=0.1, leave=True
    )

    def is_broken(line: Line) -> bool:
        return device.type != "cpu" and not is_good(line)

    with shown as update, closing(run_in_processes(train, trials, jobs, is_broken)) as ended:
        for trial, result in ended:
            line = result
            if isinstance(result, Died):
                line = new_line(trial, options.device) | {"reason": f"its process {result}"}
            results.append(line)
            is_ok = is_good(line)
            summary = Summary(summary.skipped, summary.ok + is_ok, summary.failed + (not is_ok))
            update(1)
            with tqdm.external_write_mode():
                show(describe_line(line))
    remove_empty(folder)
    return summary


def _check_dataset(dataset: str, root: str | None) -> None:
    """Raise an error if a dataset is not there; generated graphs are not those of the paper."""
    if find_dataset(dataset, root) is None:
        raise HaarPoolError(
            f"the published dataset {dataset}", "generated graphs of this name", REMEDY
        )


def _split_known(trials: list[Trial], folder: Path) -> tuple[list[Trial], list[Line]]:
    """Return the trials that must be trained, and lines of those that another row has trained.

    The default network, for example, is a row of Table 1 and of the ablation.
    """
    others = [
        (table, current_lines(table, ResultLines(folder, table.name).read()))
        for table in map(find_table, TABLES)
    ]
    rest, known = [], []
    for trial in trials:
        line = next((line for one in others if (line := _line_of_twin(trial, *one))), None)
        if line is None:
            rest.append(trial)
        else:
            known.append(line | {"method": trial.cell.method})
    return rest, known


def _line_of_twin(trial: Trial, table: Table, lines: dict[Key, Line]) -> Line | None:
    """Return the line of a cell of a table that trains the same, if it ended well."""
    for cell in table.cells:
        if replace(cell, method=trial.cell.method) == trial.cell:
            line = lines.get((*cell.key, trial.seed))
            if line is not None and is_good(line):
                return line | {"copied_from": f"{table.name}/{cell.method}"}
    return None


def describe_line(line: Line) -> str:
    """Return a line for the terminal."""
    name = f"{line['dataset']} {line['method']} {line['protocol']} {line['seed']}"
    if not is_good(line):
        return f"{name}: failed, {line['reason']}"
    return f"{name}: {line['metric']} {line['value']:.4f} ({line.get('seconds') or 0:.1f} s)"
