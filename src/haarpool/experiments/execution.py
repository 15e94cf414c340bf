"""Where a trial is trained: its device, and a folder from which it continues if it is killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from haarpool.training.run_folder import LOCK, RunFolder

UNFINISHED = "unfinished"  # folder of results with the checkpoints of trials that did not end


class Execution(NamedTuple):
    """Where a trial is trained.

    Attributes:
        device: Name of the device.
        folder: Folder of its checkpoints; None keeps none.
    """

    device: str
    folder: Path | None = None

    @property
    def is_resumed(self) -> bool:
        """Whether there are checkpoints."""
        return self.folder is not None and any(self.folder.glob("*/*.safetensors"))

    def checkpoints(self, name: str) -> RunFolder | None:
        """Return the folder of one of the trainings of the trial; None keeps no checkpoints."""
        if self.folder is None:
            return None
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return RunFolder(path)


@contextmanager
def open_execution(device: str, results: Path | None, identity: Any) -> Iterator[Execution]:
    """Keep checkpoints of a trial until it has ended, well or with an error of its own.

    They stay if the process is killed or interrupted. Another process that trains the same trial
    at this time keeps none.

    Args:
        device: Name of the device.
        results: Folder of results; None keeps no checkpoints.
        identity: Everything that decides on the result, as plain values: other settings or another
            version do not continue from these checkpoints.
    """
    if results is None:
        yield Execution(device)
        return
    digest = sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    folder = results / UNFINISHED / digest
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield Execution(device)
        return
    try:
        yield Execution(device, folder)
        shutil.rmtree(folder, ignore_errors=True)  # nothing reads it again
    finally:
        lock.release()


def remove_empty(results: Path) -> None:
    """Remove the folder of checkpoints if there are none."""
    with suppress(OSError):
        (results / UNFINISHED).rmdir()
