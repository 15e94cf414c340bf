"""From a trial to its line: train on one split, and say what came out."""

from __future__ import annotations

import math
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

import haarpool
from haarpool._versions import TRIAL, find_versions
from haarpool.comparison.checkpoints import open_checkpoints
from haarpool.comparison.learners import Learner, Line
from haarpool.comparison.table import Cell, Trial
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split, make_splits, num_folds
from haarpool.errors import HaarPoolError, python_words
from haarpool.training.devices import num_threads

SCHEMA = 1  # version of the lines

Load = Callable[[str], Graphs]  # reads a dataset by its name


class TrialRunner:
    """Trains trials one after the other, on one thread.

    It keeps the dataset and the learner of the last trial, since the trials of a cell follow each
    other.

    Args:
        load: Reads a dataset by its name; for several processes it can be pickled.
        device: Name of the device.
        results: Folder of results. A trial that was killed continues from its checkpoints there; by
            default there are none.
        words: Writes parameters in the reasons of failed trials.
    """

    def __init__(
        self,
        load: Load,
        device: str,
        results: Path | None = None,
        words: Callable[..., str] = python_words,
    ) -> None:
        self.load, self.device, self.results, self.words = load, device, results, words
        self._dataset: tuple[str, Graphs, str] | None = None
        self._learner: tuple[Cell, Learner] | None = None

    def __call__(self, trial: Trial) -> Line:
        """Train a trial and return its line; an error becomes a line with its reason."""
        cell, start, line = trial.cell, time.perf_counter(), new_line(trial, self.device)
        try:
            graphs, line["data_hash"] = self._read(cell.dataset)
            line["task"] = graphs.task
        except Exception as error:  # the other trials still run
            return line | failure(error, self.words)
        identity = [cell.key, trial.seed, line["config"], line["versions"], self.device]
        identity.append(line["data_hash"])
        with open_checkpoints(self.results, identity) as checkpoints, num_threads(1):
            if checkpoints:
                line["resumed"] = True  # so `seconds` are those since it was resumed
            try:
                splits = splits_of(trial, graphs)
                line["split_hash"] = splits[trial.seed].digest()
                line["sizes"] = [len(part) for part in splits[trial.seed]]
                line |= self._learner_of(cell, graphs).train(trial.seed, splits, checkpoints)
                if math.isfinite(line["value"]):
                    line["status"] = "ok"
                else:
                    line["reason"] = f"{line['metric']} of the test part is {line['value']}"
            except Exception as error:
                line |= failure(error, self.words)
        line["seconds"] = round(time.perf_counter() - start, 2)
        return line

    def _read(self, dataset: str) -> tuple[Graphs, str]:
        if self._dataset is None or self._dataset[0] != dataset:
            self._dataset = self._learner = None  # before the next one takes memory
            graphs = self.load(dataset)
            self._dataset = dataset, graphs, data_hash(graphs)
        return self._dataset[1:]

    def _learner_of(self, cell: Cell, graphs: Graphs) -> Learner:
        if self._learner is None or self._learner[0] != cell:
            self._learner = None
            self._learner = cell, cell.learner(cell, graphs, self.device)
        return self._learner[1]


def new_line(trial: Trial, device: str) -> Line:
    """Return the line of a trial that did not end; what is measured is `None`."""
    cell = trial.cell
    return {
        "schema": SCHEMA, "dataset": cell.dataset, "data_hash": None, "method": cell.method,
        "protocol": cell.protocol, "seed": trial.seed, "status": "failed", "reason": None,
        "problem": None, "task": None,
        "metric": None, "value": None, "validation": None, "epoch": None, "split_hash": None,
        "chain_hash": None, "seconds": None, "config": cell.learner.config(cell),
        "versions": _versions(cell.learner), "device": device,
    }  # fmt: skip


def failure(error: Exception, words: Callable[..., str] = python_words) -> Line:
    """Return what a line says about an error: a text, and what it has in common with others.

    Args:
        error: The error.
        words: How the text writes parameters.
    """
    text = error.in_words(words) if isinstance(error, HaarPoolError) else str(error)
    text = " ".join(text.split())[:300]
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    problem = f"{kind} in {frames[-1].name}" if frames else kind
    if isinstance(error, HaarPoolError):  # what was passed may differ
        problem = f"expected {error.expected}; {error.remedy}"
    return {"reason": f"{kind}: {text}" if text else kind, "problem": problem}


def data_hash(graphs: Graphs) -> str:
    """Return a short hash of a dataset."""
    return graphs.digest()[:16]


@cache
def _versions(learner: type[Learner]) -> dict[str, str]:
    """Return the versions of everything that the numbers depend on, and a hash of the source."""
    found = find_versions(*TRIAL)
    names = {haarpool.__name__, learner.__module__.partition(".")[0]}
    folders = [Path(str(sys.modules[name].__file__)).parent for name in sorted(names)]
    return {name: one for name, one in found.items() if one} | {"source": source_digest(*folders)}


def source_digest(*folders: Path) -> str:
    """Return a hash of the Python files of packages, which change between two versions."""
    digest = sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def splits_of(trial: Trial, graphs: Graphs) -> list[Split]:
    """Return the splits up to that of a trial: the same for all methods and numbers of repeats."""
    rule, seed = trial.cell.split_rule, trial.cell.settings.get("seed", 0)
    if Path(rule).is_file():
        splits = make_splits(rule, graphs)
        return [splits[i % len(splits)] for i in range(trial.seed + 1)]
    repeats = trial.seed // (num_folds(rule, graphs) or 1) + 1
    return make_splits(rule, graphs, seed, repeats)
