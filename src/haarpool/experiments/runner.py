"""Run the trials of a table that have no line yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from haarpool._validate import whole_number
from haarpool.datasets.locations import find_dataset
from haarpool.experiments.lines import Line, ResultLines, missing_trials
from haarpool.experiments.processes import Died, run_in_processes
from haarpool.experiments.table import Table, Trial
from haarpool.experiments.trainers import config_of, train_trial, versions
from haarpool.training.devices import find_device

MAX_JOBS = 256


class Summary(NamedTuple):
    """What a command did.

    Attributes:
        skipped: Trials that had a line.
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
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal.
    """

    jobs: int = 1
    device: str = "auto"
    root: str | None = None
    retry: bool = False
    progress: bool | None = None


def run_table(
    table: Table,
    folder: Path,
    repeats: int,
    options: RunOptions,
    show: Callable[[str], object] = print,
) -> Summary:
    """Train what is missing of a table; write a line as soon as a trial ends.

    Args:
        table: The table.
        folder: Folder of results.
        repeats: Number of trials of each cell.
        options: How they are run.
        show: Is called with a line of text about each trial.
    """
    whole_number("repeats", repeats)
    whole_number("n_jobs", options.jobs, 1, MAX_JOBS)
    results = ResultLines(folder, table.name)
    trials = missing_trials(table, results.read(), repeats, options.retry)
    summary = Summary(len(table.trials(repeats)) - len(trials), 0, 0)
    find_device(options.device)  # errors before the work
    for dataset in dict.fromkeys(trial.cell.dataset for trial in trials):
        find_dataset(dataset, options.root)
    train = partial(_train, root=options.root, device=options.device)
    hidden = None if options.progress is None else not options.progress
    jobs = min(options.jobs, len(trials)) or 1
    bar = tqdm(total=len(trials), desc=table.name, unit=" trials", disable=hidden, smoothing=0.1)
    with bar, closing(run_in_processes(train, trials, jobs, _is_failed)) as ended:
        for trial, result in ended:
            line = _line_of_dead(trial, result, options) if isinstance(result, Died) else result
            results.append(line)
            is_ok = line["status"] == "ok"
            summary = Summary(summary.skipped, summary.ok + is_ok, summary.failed + (not is_ok))
            bar.update()
            with tqdm.external_write_mode():
                show(describe_line(line))
    return summary


def _train(trial: Trial, root: str | None, device: str) -> Line:
    import torch

    torch.set_num_threads(1)
    return train_trial(trial, root, device)


def _is_failed(line: Line) -> bool:
    return bool(line["status"] != "ok")


def _line_of_dead(trial: Trial, died: Died, options: RunOptions) -> Line:
    cell = trial.cell
    return {
        "dataset": cell.dataset, "method": cell.method, "protocol": cell.protocol,
        "seed": trial.seed, "status": "failed",
        "reason": f"its process ended with code {died.exit_code} (-9: killed, often for memory)",
        "config": config_of(cell), "versions": versions(), "device": options.device,
    }  # fmt: skip


def describe_line(line: Line) -> str:
    """Return a line for the terminal."""
    name = f"{line['dataset']} {line['method']} {line['protocol']} {line['seed']}"
    if line["status"] != "ok":
        return f"{name}: failed, {line['reason']}"
    return f"{name}: {line['metric']} {line['value']:.4f} ({line['seconds']:.1f} s)"
