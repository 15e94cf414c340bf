"""Run the trials of a table that have no line yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from haarpool._progress import ProgressOption, show_progress
from haarpool.comparison import check_amounts
from haarpool.comparison.checkpoints import remove_empty
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import (
    ResultLines,
    current_lines,
    is_good,
    make_folder,
    missing_trials,
)
from haarpool.comparison.processes import Died, run_in_processes
from haarpool.comparison.table import Table
from haarpool.comparison.trials import Load, TrialRunner, new_line
from haarpool.errors import python_words
from haarpool.training.devices import find_device


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


def run_table(
    table: Table,
    folder: Path,
    repeats: int,
    load: Load,
    *,
    jobs: int = 1,
    device: str = "auto",
    retry: bool = False,
    check: Callable[[str], object] = lambda dataset: None,
    progress: ProgressOption = None,
    show: Callable[[str], object] = print,
    words: Callable[..., str] = python_words,
) -> Summary:
    """Train what is missing of a table; write a line as soon as a trial ends.

    A trial that was killed continues from its last checkpoint.

    Args:
        table: The table.
        folder: Folder of results.
        repeats: Number of trials of each cell.
        load: Reads a dataset by its name.
        jobs: Number of processes, which share the cores or the GPU.
        device: Name of the device; no result depends on the other options.
        retry: Try failed trials again.
        check: Raises an error if a dataset that is needed cannot be read.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with a line of text every 30 seconds.
        show: Is called with a line of text about each trial.
        words: Writes parameters in the reasons of failed trials; it can be pickled.
    """
    check_amounts(repeats, jobs)
    results = ResultLines(folder, table.name)
    trials = missing_trials(table, current_lines(table, results.read()), repeats, retry)
    # Errors before the work.
    on_gpu = find_device(device).type != "cpu"
    for dataset in dict.fromkeys(trial.cell.dataset for trial in trials):
        check(dataset)
    make_folder(results.folder)
    count = {"ok": 0, "failed": 0}
    calls = run_in_processes(
        TrialRunner(load, device, folder, words),
        trials,
        min(jobs, len(trials)) or 1,
        # After an error of a GPU all further calls in the same process fail.
        is_broken=lambda line: on_gpu and not is_good(line),
    )
    bar = show_progress(progress, table.name, "trials", len(trials), smoothing=0.1, leave=True)
    with bar as update, closing(calls) as ended:
        for trial, result in ended:
            line = result
            if isinstance(result, Died):
                line = new_line(trial, device) | {"reason": f"its process {result}"}
            results.append(line)
            count[line["status"]] += 1
            update(1)
            with tqdm.external_write_mode():
                show(describe_line(line))
    remove_empty(folder)
    return Summary(len(table.trials(repeats)) - len(trials), **count)


def describe_line(line: Line) -> str:
    """Return a line for the terminal."""
    name = f"{line['dataset']} {line['method']} {line['protocol']} {line['seed']}"
    if not is_good(line):
        return f"{name}: failed, {line['reason']}"
    return f"{name}: {line['metric']} {line['value']:.4f} ({line.get('seconds') or 0:.1f} s)"
