"""The folder of a run: what is written there while it goes, and read when it goes on.

    config.json        everything needed to run it again, with versions and hashes
    split.json         which graphs trained, chose and tested; --split takes it
    metrics.jsonl      one line per epoch
    model.safetensors  the weights
    test.csv           predictions for the test part of every repeat
    result.json        the scores
    report.html        all of it to look at
    checkpoint.safetensors   only until the run is complete

No file holds a pickle, and none is ever half-written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from haarpool._files import write_text, written_whole
from haarpool.errors import HaarPoolError

FORMAT = 1  # of the folder; a version of haarpool reads its own and older ones
CONFIG, SPLIT, METRICS = "config.json", "split.json", "metrics.jsonl"
MODEL, TEST, RESULT, REPORT = "model.safetensors", "test.csv", "result.json", "report.html"
CHECKPOINT, LOCK = "checkpoint.safetensors", ".lock"


class RunFolder:
    """The files of a run, by name.

    Args:
        path: of the folder.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | PathLike[str], config: Mapping[str, Any], split: str) -> RunFolder:
        """A new run; a folder that holds something else is left alone."""
        cls.check_new(path)
        folder = cls(path)
        try:
            folder.path.mkdir(parents=True, exist_ok=folder.path.is_dir())
        except OSError as error:
            raise HaarPoolError(
                "a folder for the run", f"{folder.path} ({error})", "name another one with --out"
            ) from error
        folder.write_json(CONFIG, {"format": FORMAT} | dict(config))
        write_text(folder.path / SPLIT, split)
        return folder

    @staticmethod
    def check_new(path: str | PathLike[str]) -> None:
        """Raise if something lies where a new run shall go."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            resumable = (path / CHECKPOINT).exists()
            raise HaarPoolError(
                "a new folder for the run",
                f"{path}, which is there",
                f"go on with it: haarpool train --resume {path}"
                if resumable
                else "name another one with --out, or remove it",
            )

    @classmethod
    def open(cls, path: str | PathLike[str]) -> RunFolder:
        """The folder of an earlier run."""
        folder = cls(path)
        if not (folder.path / CONFIG).is_file():
            got = "a folder without config.json" if folder.path.is_dir() else "nothing there"
            raise HaarPoolError(
                f"the folder of a run at {folder.path}", got, "name one that `haarpool train` made"
            )
        version = folder.config().get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise HaarPoolError(
                f"a run of format {FORMAT} or older in {folder.path}",
                f"format {version}",
                "install a newer haarpool, or train again with this one",
            )
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in the same folder."""
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise HaarPoolError(
                "a run that nobody trains", f"{self.path}, which another process does", "wait"
            ) from None
        try:
            yield
        finally:
            lock.release()
            self.remove(LOCK)

    def config(self) -> dict[str, Any]:
        """What `config.json` says."""
        return self.read_json(CONFIG)

    def read_json(self, name: str) -> dict[str, Any]:
        """A file of ours."""
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError(f"{type(found).__name__} instead of names with values")
        except (OSError, ValueError) as error:
            raise self.damaged(name, error) from error
        return found

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a file of ours."""
        write_text(self.path / name, json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line to `metrics.jsonl`; it is on disk when this returns."""
        with open(self.path / METRICS, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`; one that was cut off is left out."""
        found = []
        path = self.path / METRICS
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return found

    def keep_lines(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Replace `metrics.jsonl` by these lines."""
        write_text(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in lines))

    def write_tensors(
        self, name: str, tensors: Mapping[str, Tensor], notes: Mapping[str, Any] | None = None
    ) -> None:
        """Tensors and notes in one file."""
        copies = {key: value.detach().clone() for key, value in tensors.items()}  # ties undone
        with written_whole(self.path / name) as partial:
            partial.write_bytes(save(copies, {"notes": json.dumps(notes or {})}))

    def read_tensors(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `write_tensors` wrote."""
        try:
            with safe_open(self.path / name, "pt") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
                return tensors, json.loads((file.metadata() or {}).get("notes", "{}"))
        except (OSError, ValueError, SafetensorError) as error:
            raise self.damaged(name, error) from error

    def remove(self, name: str) -> None:
        """A file that has had its day."""
        (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).is_file()

    def damaged(self, name: str, error: Exception | str) -> HaarPoolError:
        """The error for a file that is missing or broken."""
        return HaarPoolError(
            f"a whole {name} in {self.path}", f"{error}".splitlines()[0], "train again"
        )
