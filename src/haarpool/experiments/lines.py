"""Results on disk: one JSON line per trial, in `<results>/<table>/<dataset>.jsonl`.

Only the process of the command writes. A line is written whole or, if the machine stops at that
moment, left out when the file is read; nothing that is finished is lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from haarpool.errors import HaarPoolError
from haarpool.experiments.table import PROTOCOLS, Cell, Table, Trial

Line = dict[str, Any]
Key = tuple[str, str, str, int]  # dataset, method, protocol, seed


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

        Lines that are damaged are left out: the machine stopped while they were written, or
        somebody changed them.
        """
        texts = [
            text
            for path in sorted(self.folder.glob("*.jsonl"))
            for text in path.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
        return [line for line in map(_parse, texts) if line is not None]

    def make_folder(self) -> None:
        """Make the folder of the lines, so that an error comes before the work."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def append(self, line: Line) -> None:
        """Write a line; several commands may write to the same file."""
        text = json.dumps(_finite(line), ensure_ascii=False, allow_nan=False) + "\n"
        path = self.folder / f"{line['dataset']}.jsonl"
        self.make_folder()
        try:
            with open(path, "ab+") as file:
                if file.tell() and not _ends_a_line(path):
                    text = "\n" + text
                file.write(text.encode())  # one write at the end of the file
        except OSError as error:
            raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> HaarPoolError:
    return HaarPoolError(
        "a folder that can be written", f"{path} ({error})", "choose another folder"
    )


def _parse(text: str) -> Line | None:
    """Return a line, or None if something is missing that every line has."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    names = ("dataset", "method", "protocol", "status")
    if not isinstance(line, dict) or not all(isinstance(line.get(name), str) for name in names):
        return None
    is_whole = _is_number(line.get("seed"), int) and isinstance(line.get("config"), dict)
    is_known = line["status"] == "failed" or (line["status"] == "ok" and _has_result(line))
    return line if is_whole and is_known else None


def _has_result(line: Line) -> bool:
    """Return whether a line that ended well has what the report reads of it."""
    sizes, parts, scores = line.get("sizes"), line.get("parts", {}), line.get("scores", {})
    hashes = [line.get("split_hash"), line.get("chain_hash")]
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
        and all(one is None or isinstance(one, str) for one in hashes)
    )


def _is_number(value: Any, *types: type) -> bool:
    return type(value) in (types or (int, float)) and math.isfinite(value)


def _ends_a_line(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _finite(value: Any) -> Any:
    """Return a JSON value with null for numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        cell = cells.get((line["dataset"], line["method"], line["protocol"]))
        if cell is None or not has_settings(line, cell) or _lacks_parts(line, table):
            continue
        key = (*cell.key, line["seed"])
        if line["status"] == "ok" or key not in found or found[key]["status"] != "ok":
            found[key] = line
    return found


def _lacks_parts(line: Line, table: Table) -> bool:
    return line["status"] == "ok" and not set(table.parts) <= set(line.get("parts", ()))


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
        or (retry and line["status"] != "ok")
    ]


def has_settings(line: Line, cell: Cell) -> bool:
    """Return whether a line was made with the settings of a cell.

    Settings that an older version did not have, or that a line leaves out, count as their defaults.
    """
    made = line["config"]
    if networks := cell.networks:
        others = cell.mixture_settings
        return (
            made.keys() == networks.keys() | others.keys()
            and all(made[name] == value for name, value in others.items())
            and all(_is_same_network(made[name], one) for name, one in networks.items())
        )
    return _is_same_network(made, cell) if cell.is_network else bool(made == dict(cell.settings))


def _is_same_network(made: Mapping[str, Any], cell: Cell) -> bool:
    from haarpool.training.config import RunConfig

    try:
        config, asked = RunConfig.from_json(made), network_config(cell)
        same_chains = config.recipe() == asked.recipe()
        return same_chains and bool(replace(config, chain={}) == replace(asked, chain={}))
    except (HaarPoolError, TypeError, AttributeError):
        return False


def network_config(cell: Cell) -> Any:
    """Return the `RunConfig` of a cell; a trial is one repeat of it.

    `haarpool train` with these settings and several repeats trains the same networks.
    """
    from haarpool.training.config import RunConfig

    return RunConfig(**{**cell.settings, "split": PROTOCOLS[cell.protocol]})


def only(lines: Iterable[Line], status: str) -> list[Line]:
    """Return the lines with a status."""
    return [line for line in lines if line["status"] == status]
