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
from haarpool.experiments.table import Cell, Table, Trial

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

    def read(self) -> dict[Key, Line]:
        """Return the lines of all datasets; of several for the same trial the last one.

        A failed trial does not replace one that ended well with the same settings.
        """
        lines: dict[Key, Line] = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    line = json.loads(text)
                    key = (line["dataset"], line["method"], line["protocol"], line["seed"])
                except (ValueError, KeyError, TypeError):
                    continue  # incomplete: the machine stopped while it was written
                if not _failed_again(line, lines.get(key)):
                    lines[key] = line
        return lines

    def append(self, line: Line) -> None:
        """Write a line; several commands may write to the same file."""
        text = json.dumps(_finite(line), ensure_ascii=False, allow_nan=False) + "\n"
        path = self.folder / f"{line['dataset']}.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(path, "ab+") as file:
                if file.tell() and not _ends_a_line(path):
                    text = "\n" + text
                file.write(text.encode())  # one write at the end of the file
        except OSError as error:
            raise HaarPoolError(
                "a folder that can be written", f"{path} ({error})", "choose another folder"
            ) from error


def _failed_again(line: Line, before: Line | None) -> bool:
    """Return whether a failed line follows one that ended well with the same settings."""
    if before is None or (before.get("status"), line.get("status")) != ("ok", "failed"):
        return False
    return bool(before.get("config") == line.get("config"))


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


def missing_trials(table: Table, lines: dict[Key, Line], repeats: int, retry: bool) -> list[Trial]:
    """Return the trials that have no line with the present settings.

    Args:
        table: The table.
        lines: The lines that are there.
        repeats: Number of trials of each cell.
        retry: Whether to try failed ones again.
    """
    return [
        trial
        for trial in table.trials(repeats)
        if (line := lines.get((*trial.cell.key, trial.seed))) is None
        or not has_settings(line, trial.cell)
        or (retry and line["status"] != "ok")
    ]


def has_settings(line: Line, cell: Cell) -> bool:
    """Return whether a line was made with the settings of a cell.

    Settings that an older version did not have, or that a line leaves out, count as their defaults.
    """
    made = line["config"]
    if not isinstance(made, Mapping):
        return False
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
    except (HaarPoolError, TypeError):
        return False


def network_config(cell: Cell) -> Any:
    """Return the `RunConfig` of a cell; a trial is one repeat of it.

    `haarpool train` with these settings and several repeats trains the same networks.
    """
    from haarpool.experiments.table import PROTOCOLS
    from haarpool.training.config import RunConfig

    return RunConfig(**{**cell.settings, "split": PROTOCOLS[cell.protocol]})


def only(lines: Iterable[Line], status: str) -> list[Line]:
    """Return the lines with a status."""
    return [line for line in lines if line["status"] == status]
