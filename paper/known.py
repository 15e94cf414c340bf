"""Trials of the same settings in several rows are trained once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from haarpool.comparison.lines import ResultLines, current_lines, is_good, missing_trials
from haarpool.comparison.runner import describe_line
from paper.tables import PaperTable, all_tables


def copy_known(table: PaperTable, folder: Path, repeats: int, *, retry: bool = False) -> None:
    """Copy lines of other rows, in any table, for trials that are missing.

    Args:
        table: The table.
        folder: Folder of results.
        repeats: Number of trials of each cell.
        retry: Whether failed trials are missing, too.
    """
    results = ResultLines(folder, table.name)
    missing = missing_trials(table, current_lines(table, results.read()), repeats, retry)
    others = [
        (cell, lines, f"{other.name}/{cell.method}")
        for other in all_tables()
        for lines in [current_lines(other, ResultLines(folder, other.name).read())]
        for cell in other.cells
    ]
    for trial in missing:
        for cell, lines, source in others:
            line = lines.get((*cell.key, trial.seed))
            is_same = replace(cell, method=trial.cell.method) == trial.cell
            if is_same and line is not None and is_good(line):
                line = line | {"method": trial.cell.method, "copied_from": source}
                results.append(line)
                print(f"{describe_line(line)}, copied from {source}", flush=True)
                break
