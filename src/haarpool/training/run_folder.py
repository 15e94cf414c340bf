"""The folder of a run and its files.

    config.json              all settings, versions and hashes: everything needed to repeat the run
    split.json               the graphs of each part; `split=` takes this file
    metrics.jsonl            one line per epoch
    model.safetensors        the weights, with a digest
    test.csv                 predictions for the test part of every repeat
    result.json              the scores
    example_chain.npz        the chain that the report shows
    report.html              the report
    checkpoint.safetensors, member-REPEAT-MEMBER.safetensors   only until the run is complete

No file holds a pickle. Every file is replaced in one step, so none is ever half-written. torch is
imported for weights only, so that the shell finds a wrong folder at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from haarpool._files import atomic_write, write_text
from haarpool.errors import HaarPoolError
from haarpool.tasks import Names, is_registered

if TYPE_CHECKING:
    from torch import Tensor

    from haarpool.haar.chain_tensors import TensorDict

FORMAT = 2  # of the folder
CONFIG, SPLIT, METRICS = "config.json", "split.json", "metrics.jsonl"
MODEL, TEST, RESULT, REPORT = "model.safetensors", "test.csv", "result.json", "report.html"
EXAMPLE_CHAIN, CHECKPOINT, LOCK = "example_chain.npz", "checkpoint.safetensors", ".lock"
MEMBER = "member-{}-{}.safetensors"


class RunFolder:
    """The files of a run by name.

    Args:
        path: Path of the folder.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        config: Mapping[str, Any],
        split: str,
        *,
        numbered: bool = False,
    ) -> RunFolder:
        """Create the folder of a new run.

        Args:
            path: Path of the folder; it must be new or empty.
            config: Content of `config.json`.
            split: Content of `split.json`.
            numbered: Create the first of the folders PATH-1, PATH-2, ... that does not exist.
        """
        if not numbered:
            cls.check_new(path)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            paths = (f"{path}-{n}" for n in count(1)) if numbered else iter([path])
            claimed = (cls(one) for one in paths if cls(one)._claim(may_exist=not numbered))
            folder = next(claimed, None)
        except OSError as error:
            raise HaarPoolError(
                "a folder for the run", f"{path} ({error.strerror})", "choose another folder"
            ) from error
        if folder is None:
            raise HaarPoolError(
                "a new folder for the run",
                f"{path}, which another process has just taken",
                "choose another folder",
            )
        folder.write_json(CONFIG, {"format": FORMAT} | dict(config))
        write_text(folder.path / SPLIT, split)
        return folder

    def _claim(self, *, may_exist: bool) -> bool:
        """Create the folder with an empty `config.json`; of several processes one gets True."""
        try:
            self.path.mkdir(exist_ok=may_exist)
            (self.path / CONFIG).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    @staticmethod
    def check_new(path: str | PathLike[str]) -> None:
        """Raise an error if the folder of a new run already holds files."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            remedy = "choose another folder, or remove it"
            if (path / CHECKPOINT).exists():
                remedy = "finish that run with {resume}"
            elif (path / CONFIG).exists() and not any((path / n).exists() for n in (RESULT, MODEL)):
                remedy = "choose another folder: another process may have started a run in it"
            raise HaarPoolError(
                "a new folder for the run", f"{path}, which exists", remedy, resume=path
            )

    @classmethod
    def open(cls, path: str | PathLike[str]) -> RunFolder:
        """Open the folder of an earlier run."""
        folder = cls(path)
        if not (folder.path / CONFIG).is_file():
            got = "a folder without config.json" if folder.path.is_dir() else "no folder"
            raise HaarPoolError(
                f"a run folder at {folder.path}",
                got,
                "name a folder that {train_run} wrote",
                train_run=...,
            )
        version = folder.config().get("format")
        if version != FORMAT:
            raise HaarPoolError(
                f"a run of format {FORMAT} in {folder.path}",
                f"format {version}",
                "install a newer version of haarpool, or train again with this one",
            )
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder: only one process may train in it."""
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise HaarPoolError(
                "a run folder that no other process uses",
                f"{self.path}, which is locked by another process",
                "wait until it ends",
            ) from None
        try:
            yield
        finally:
            lock.release()
            self.remove(LOCK)

    def config(self) -> dict[str, Any]:
        """Read `config.json`."""
        return self.read_json(CONFIG)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON file."""
        try:
            data = json.loads((self.path / name).read_text(encoding="utf-8"))
            if not isinstance(data, dict):
                raise ValueError(f"{type(data).__name__} instead of names with values")
        except (OSError, ValueError) as error:
            raise self.damaged(name, error) from error
        return data

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a JSON file."""
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(self.path / name, text + "\n")

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        """Append a line to `metrics.jsonl`."""
        with open(self.path / METRICS, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read the lines of `metrics.jsonl`; an incomplete last line is left out."""
        path = self.path / METRICS
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        result = []
        for number, line in enumerate(lines, start=1):
            try:
                result.append(json.loads(line))
            except ValueError as error:
                if line.endswith(b"\n"):  # it is complete
                    raise self.damaged(METRICS, f"line {number}: {error}") from error
        return result

    def write_metrics(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Replace the lines of `metrics.jsonl`."""
        write_text(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in lines))

    def write_tensors(
        self, name: str, tensors: Mapping[str, Tensor], notes: Mapping[str, Any] | None = None
    ) -> None:
        """Write tensors, JSON notes and a digest of both to one file."""
        from safetensors.torch import save

        copies = {key: value.detach().clone() for key, value in tensors.items()}  # unties weights
        text = json.dumps(notes or {})
        metadata = {"notes": text, "digest": _digest(copies, text)}
        with atomic_write(self.path / name) as partial:
            partial.write_bytes(save(copies, metadata))

    def read_tensors(self, name: str) -> tuple[TensorDict, dict[str, Any]]:
        """Read what `write_tensors` wrote, and check its digest."""
        try:
            with safe_open(self.path / name, "pt") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
                metadata = file.metadata() or {}
            text = metadata.get("notes", "{}")
            if metadata.get("digest") != _digest(tensors, text):
                raise ValueError("the content differs from what was written")
            return tensors, json.loads(text)
        except (OSError, ValueError, SafetensorError) as error:
            raise self.damaged(name, error) from error

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.path / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return (self.path / name).is_file()

    def check_complete(self, name: str = MODEL) -> None:
        """Raise an error if the run does not have a file that a complete run has."""
        if not self.has(name):
            raise HaarPoolError(
                f"a complete run in {self.path}",
                f"a run without {name}",
                "finish the run with {resume}",
                resume=self.path,
            )

    def check_trained(self) -> None:
        """Raise an error if an estimator saved the folder: that trains on data in memory."""
        data = self.config().get("data")
        if isinstance(data, dict) and data.get("read") == {}:
            raise HaarPoolError(
                f"a run of {{train_run}} in {self.path}",
                "a model that an estimator saved, without its data and test part",
                "train with {train_run}",
                train_run=...,
            )

    def check_registered(self, *, clustering: bool = True) -> None:
        """Raise an error if the task, a layer or the clustering of the run is not registered.

        Args:
            clustering: Whether the clustering is needed, too.
        """
        from haarpool.chains.clustering import clusterings
        from haarpool.nn.strings.architecture import UnknownTokenError, parse_architecture

        config = self.config()
        task, chain, missing = config["data"]["task"], config["chain"] or {}, ""
        try:
            parse_architecture(config["model"]["arch"])
        except UnknownTokenError as error:
            missing = f"all layers of {error.got}"
        if not is_registered(task):
            missing = f"the task {task!r}"
        if clustering and "method" in chain and chain["method"] not in clusterings():
            missing = f"the clustering {chain['method']!r}"
        if missing:
            raise HaarPoolError(
                f"{missing}, which the run in {self.path} needs",
                "a name that is not registered",
                "install the package, or import the module, that registers it",
            )

    def damaged(self, name: str, error: Exception | str) -> HaarPoolError:
        """Return the error for a missing or damaged file."""
        return HaarPoolError(
            f"an undamaged {name} in {self.path}", f"{error}".splitlines()[0], "train again"
        )


def names_in(data: Mapping[str, Any]) -> Names:
    """Return the names of what is predicted, from the section "data" of `config.json`."""
    return Names(tuple(data["classes"]), tuple(data["target_names"]))


def _digest(tensors: Mapping[str, Tensor], notes: str) -> str:
    state = sha256(notes.encode())
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().contiguous().numpy()
        state.update(f"{name} {array.dtype} {array.shape}".encode())
        state.update(array.tobytes())
    return state.hexdigest()
