"""Checkpoints of a trial, from which it continues if its process is killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from haarpool.training.run_folder import LOCK, RunFolder

UNFINISHED = "unfinished"  # folder of results with the checkpoints of trials that did not end


class Checkpoints:
    """The checkpoints of a trial.

    Args:
        path: Their folder; None keeps none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    def __bool__(self) -> bool:
        """Return whether there are some."""
        return self.path is not None and any(self.path.glob("*/*.safetensors"))

    def folder(self, name: str) -> RunFolder | None:
        """Return the folder of one of the trainings of the trial; None keeps no checkpoints."""
        if self.path is None:
            return None
        path = self.path / name
        path.mkdir(exist_ok=True)
        return RunFolder(path)


@contextmanager
def open_checkpoints(results: Path | None, identity: Any) -> Iterator[Checkpoints]:
    """Keep checkpoints of a trial until it has ended, well or with an error of its own.

    They stay if the process is killed or interrupted. Another process that trains the same trial
    at this time keeps none.

    Args:
        results: Folder of results; None keeps no checkpoints.
        identity: Everything that decides on the result, as plain values: other settings or another
            version do not continue from these checkpoints.
    """
    if results is None:
        yield Checkpoints()
        return
    digest = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    path = results / UNFINISHED / digest
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield Checkpoints()
        return
    try:
        yield Checkpoints(path)
        shutil.rmtree(path, ignore_errors=True)  # nothing reads it again
    finally:
        lock.release()


def remove_empty(results: Path) -> None:
    """Remove the folder of checkpoints if there are none."""
    with suppress(OSError):
        (results / UNFINISHED).rmdir()
