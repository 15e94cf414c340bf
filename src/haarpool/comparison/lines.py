"""Results on disk: one JSON line per trial, in `<results>/<table>/<dataset>.jsonl`.

Only the process of the command writes. A line is written whole or, if the machine stops at that
moment, left out when the file is read; nothing that is finished is lost.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from haarpool._numbers import as_json
from haarpool._text import shorten
from haarpool.comparison.learners import Line
from haarpool.comparison.table import Table, Trial
from haarpool.errors import HaarPoolError

README = "README.md"  # of a report
Key = tuple[str, str, str, int]  # dataset, method, protocol, seed


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file; those that are no JSON objects are left out."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = []
    for one in text.splitlines():
        try:
            lines.append(json.loads(one))
        except ValueError:  # the machine stopped while it was written
            continue
    return [line for line in lines if isinstance(line, dict)]


def append_line(path: Path, line: Line) -> None:
    """Write a line at the end of a file; several commands may write to the same one."""
    text = json.dumps(as_json(line), ensure_ascii=False, allow_nan=False) + "\n"
    make_folder(path.parent)
    try:
        with open(path, "ab+") as file:
            if file.tell() and not _ends_a_line(path):
                text = "\n" + text
            file.write(text.encode())  # one write at the end of the file
    except OSError as error:
        raise _cannot_write(path, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder; an error says that it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def refuse_other_files(folder: Path, lines: Sequence[str], marks: Sequence[str], what: str) -> None:
    """Raise an error if a folder has files of others, which a report could overwrite.

    Args:
        folder: The folder; it may be new, empty, or have hidden files.
        lines: Patterns of what is in each folder of this kind.
        marks: Texts of which its README.md, if there is one, has one.
        what: What the folder is for.
    """
    if folder.is_file():
        raise HaarPoolError(f"a folder for {what}", f"the file {folder}", "choose a folder")
    there = sorted(path.name for path in folder.glob("[!.]*"))
    is_ours = any(any(folder.glob(pattern)) for pattern in lines)
    got = f"{folder}, which has {shorten(there, 3)}"
    if (page := folder / README).exists():
        text, got = page.read_text("utf-8", errors="replace"), f"{page}, which is not a report"
        is_ours = any(mark in text for mark in marks)
    if there and not is_ours:
        raise HaarPoolError(f"a folder for {what}", got, "choose another folder")


def _cannot_write(path: Path, error: OSError) -> HaarPoolError:
    return HaarPoolError(
        "a folder that can be written", f"{path} ({error})", "choose another folder"
    )


def _ends_a_line(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


class ResultLines:
    """The lines of a table.

    Args:
        folder: Folder of all results.
        table: Name of the table.
    """

    def __init__(self, folder: Path, table: str) -> None:
        self.folder = folder / table

    def read(self) -> list[Line]:
        """Return the lines of all datasets, in the order in which they were written.

        Lines that lack what every line has are left out: somebody changed them.
        """
        paths = sorted(self.folder.glob("*.jsonl"))
        return [line for path in paths for line in read_lines(path) if _is_whole(line)]

    def append(self, line: Line) -> None:
        """Write a line."""
        name = re.sub(r"[^\w .+-]", "_", line["dataset"])  # such as "/"
        append_line(self.folder / f"{name}.jsonl", line)


def _is_whole(line: Line) -> bool:
    """Return whether a line has what the report reads of it."""
    names = ("dataset", "method", "protocol", "status")
    if not all(isinstance(line.get(name), str) for name in names):
        return False
    if not (_is_number(line.get("seed"), int) and isinstance(line.get("config"), dict)):
        return False
    if not is_good(line):
        return bool(line["status"] == "failed")
    sizes, parts, scores = line.get("sizes"), line.get("parts", {}), line.get("scores", {})
    return (
        isinstance(line.get("metric"), str)
        and _is_number(line.get("value"))
        and isinstance(sizes, list)
        and len(sizes) == 3
        and all(_is_number(size, int) for size in sizes)
        and isinstance(parts, dict)
        and all(_is_number(score) for score in parts.values())
        and isinstance(scores, dict)
        and isinstance(scores.get("test", {}), dict)
        and isinstance(line.get("chain_hashes", {}), dict)
        and all(isinstance(line.get(x), str | None) for x in ("split_hash", "chain_hash"))
    )


def _is_number(value: Any, *types: type) -> bool:
    return type(value) in (types or (int, float)) and math.isfinite(value)


def current_lines(table: Table, lines: Iterable[Line]) -> dict[Key, Line]:
    """Return the line of each trial: the last one with the present settings.

    A failed one does not replace one that ended well. Lines with other settings do not count, for
    example those of another version or of the quick one.

    Args:
        table: The table.
        lines: Lines in the order in which they were written.
    """
    cells = {cell.key: cell for cell in table.cells}
    found: dict[Key, Line] = {}
    for line in lines:
        cell, is_ok = cells.get((line["dataset"], line["method"], line["protocol"])), is_good(line)
        lacks_parts = is_ok and not set(table.parts) <= set(line.get("parts", ()))
        if cell is None or lacks_parts or not cell.learner.has_settings(line["config"], cell):
            continue
        key = (*cell.key, line["seed"])
        if is_ok or key not in found or not is_good(found[key]):
            found[key] = line
    return found


def is_good(line: Line) -> bool:
    """Return whether a trial ended well."""
    return bool(line["status"] == "ok")


def missing_trials(
    table: Table, lines: Mapping[Key, Line], repeats: int, retry: bool
) -> list[Trial]:
    """Return the trials that have no line.

    Args:
        table: The table.
        lines: The lines that count, of `current_lines`.
        repeats: Number of trials of each cell.
        retry: Whether to try failed ones again.
    """
    return [
        trial
        for trial in table.trials(repeats)
        if (line := lines.get((*trial.cell.key, trial.seed))) is None
        or (retry and not is_good(line))
    ]
