"""The content of a report: the files of a complete run as plain data."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._text import safe_cells
from haarpool._types import Ints
from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError
from haarpool.nn.strings.architecture import UnknownTokenError, parse_architecture
from haarpool.tasks import Figure, Names, Score, Task, find_task
from haarpool.training.results import small_test_part
from haarpool.training.run_folder import CONFIG, EXAMPLE_CHAIN, METRICS, RESULT, TEST, RunFolder


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for the test parts of all repeats, one after the other.

    Attributes:
        repeat: (n,) Repeat, from 0.
        graph: (n,) Number of the graph in the dataset.
        target: (n,) Classes, -1 without label, or (n, T) zeros and ones, or values, NaN without
            label.
        prediction: (n,) Classes, (n, T) probabilities, or (n, T) values.
    """

    repeat: Ints
    graph: Ints
    target: NDArray[Any]
    prediction: NDArray[Any]

    def __post_init__(self) -> None:
        """Check that the shapes fit together."""
        shapes = [np.shape(a) for a in (self.repeat, self.graph, self.target, self.prediction)]
        repeat, graph, target, prediction = shapes
        if not (repeat == graph == target[:1] and target == prediction):
            raise HaarPoolError(
                "repeat (n,), graph (n,), target and prediction of one shape (n,) or (n, T)",
                f"shapes {', '.join(map(str, shapes))}",
                "pass one row per test graph and repeat in each",
            )

    @classmethod
    def read(cls, folder: RunFolder, data: Mapping[str, Any]) -> Predictions:
        """Read `test.csv`.

        Args:
            folder: The run folder.
            data: Section "data" of its configuration: "task", "classes" and "target_names".
        """
        try:
            with open(folder.path / TEST, encoding="utf-8", newline="") as file:
                header, *rows = csv.reader(file)
            if header[:2] != ["repeat", "graph"] or not rows:
                raise ValueError("no columns repeat and graph, or no rows")
            repeat, graph = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2).T
            names = names_in(data)
            # Version 0.1.0 wrote the names as they are.
            plain = dict(zip(safe_cells(names.classes), names.classes, strict=True))
            cells = [[plain.get(cell, cell) for cell in row[2:]] for row in rows]
            return cls(repeat, graph, *find_task(data["task"]).read_test_rows(cells, names))
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            raise folder.damaged(TEST, error) from error


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A complete run.

    Attributes:
        config: Content of `config.json`: data, model, chain (None without chain), training,
            versions, command.
        epochs: Lines of `metrics.jsonl`, one per repeat and epoch: losses, and the validation score
            or None.
        result: Content of `result.json`: scores by metric and part, kept epochs, sizes of the
            parts.
        test: Predictions for the test parts.
        chain: Chain of one graph, which the report shows; None if there is none.
    """

    config: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any]
    test: Predictions
    chain: Chain | None = None

    @classmethod
    def read(cls, path: str | PathLike[str]) -> RunRecord:
        """Read the files of a complete run.

        Args:
            path: Folder that `haarpool train` wrote.
        """
        folder = RunFolder.open(path)
        if not folder.has(RESULT):
            raise HaarPoolError(
                f"a complete run in {path}",
                f"no {RESULT}",
                "finish the run with {resume}",
                resume=path,
            )
        config, result, epochs = folder.config(), folder.read_json(RESULT), folder.read_metrics()
        for name, check, *content in (
            (CONFIG, _check_config, config),
            (RESULT, _check_result, result, config),
            (METRICS, _check_epochs, epochs),
        ):
            try:
                check(*content)
            except UnknownTokenError:
                raise
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise folder.damaged(name, f"{type(error).__name__}: {error}") from error
        test = Predictions.read(folder, config["data"])
        return cls(config, epochs, result, test, _example_chain(folder))

    def __post_init__(self) -> None:
        """Check that the predictions fit to the configuration."""
        target, prediction = np.asarray(self.test.target), np.asarray(self.test.prediction)
        if not self.task.fits(target, prediction, self.names):
            raise HaarPoolError(
                "predictions of the classes or target names in the configuration",
                f"targets of shape {target.shape} for {self.config['data']['task']}",
                "use files of the same run",
            )

    @property
    def repeats(self) -> int:
        """Number of repeats."""
        return int(self.result["repeats"])

    @property
    def task(self) -> Task:
        """What is predicted."""
        name: str = self.config["data"]["task"]
        return find_task(name)

    @property
    def names(self) -> Names:
        """Names of what is predicted."""
        return names_in(self.config["data"])

    @cached_property
    def figure(self) -> Figure:
        """What is shown of the predictions."""
        test = self.test
        return self.task.figure(
            np.asarray(test.target), np.asarray(test.prediction), self.names, self.repeats
        )

    def score(self, name: str) -> Score:
        """Return the score of this name."""
        return next(one for one in self.task.scores if one.name == name)

    @property
    def best_epochs(self) -> list[list[int]]:
        """The kept epoch of each member of each repeat."""
        if members := self.result.get("members"):
            return [list(epochs) for epochs in members["best_epoch"]]
        return [[epoch] for epoch in self.result["best_epoch"]]

    @property
    def members(self) -> int:
        """Number of members of each repeat; runs of earlier versions have one."""
        return int(self.result.get("ensemble", 1))


def names_in(data: Mapping[str, Any]) -> Names:
    """Return the names of what is predicted in the section "data" of a configuration."""
    return Names(tuple(data["classes"]), tuple(data["target_names"]))


# ---------------------------------------------------------------------- checks of the files


def _check_config(config: Any) -> None:
    """Access everything that the report shows; any error means that the file is damaged."""
    data = config["data"]
    for name in ("name", "task", "classes", "target_names", "features"):
        len(data[name])
    for section in (data["summary"], config["model"], config["training"], config["versions"]):
        section.items()
    find_task(data["task"])
    parse_architecture(config["model"]["arch"])
    if config["chain"] is not None:
        config["chain"].items()
    config["command"].split()
    config["training"]["split"].split()


def _check_result(result: Any, config: Any) -> None:
    """Access everything that the report shows; any error means that the file is damaged."""
    task = find_task(config["data"]["task"])
    repeats = int(result["repeats"])
    parts = [result["graphs"][part] for part in ("train", "validation", "test")]
    scores = [score[part] for score in result["scores"].values() for part in ("validation", "test")]
    columns = [result["best_epoch"], *parts, *(score["each"] for score in scores)]
    if any(len(column) != repeats for column in columns) or repeats < 1:
        raise ValueError(f"lists that do not have {repeats} entries, one per repeat")
    small_test_part(result)
    for score in scores:
        float(score["mean"] or 0) + float(score["std"] or 0)
    result["best_epoch"][result["model_of_repeat"]]
    if unknown := set(result["scores"]) - {one.name for one in task.scores}:
        raise ValueError(f"scores of another task: {', '.join(sorted(unknown))}")
    if result["metric"] not in result["scores"]:
        raise ValueError(f"no scores for the metric {result['metric']!r}")
    for name in ("example_positions", "example_signal"):
        np.array(result.get(name) or [], np.float64)
    if members := result.get("members"):
        _check_members(members, repeats, result["ensemble"])
    for target in (result.get("targets") or {}).values():
        for one in task.headline:
            for part in ("validation", "test"):
                float(target[one.name][part]["mean"] or 0) + len(target[one.name][part]["each"])


def _check_members(members: Any, repeats: int, number: int) -> None:
    """Check the part of a result about the members of an ensemble."""
    parts = [score[part] for score in members["scores"].values() for part in ("validation", "test")]
    for column in [members["best_epoch"], *(part["each"] for part in parts)]:
        if len(column) != repeats or any(len(one) != number for one in column):
            raise ValueError(f"lists without {number} entries per repeat, one per member")
    for part in parts:
        float(part["mean"] or 0) + float(part["std"] or 0)


def _check_epochs(epochs: Any) -> None:
    """Access everything that the report shows; any error means that the file is damaged."""
    if not epochs:
        raise ValueError("no epoch")
    for line in epochs:
        for name in ("repeat", "epoch", "train_loss", "validation_loss"):
            float(line[name] if line[name] is not None else 0)


def _example_chain(folder: RunFolder) -> Chain | None:
    path = folder.path / EXAMPLE_CHAIN
    if not path.exists():
        return None
    try:
        return Chain.load(path)
    except HaarPoolError as error:
        remedy = "delete the file to leave the chain out of the report"
        raise HaarPoolError(error.expected, error.got, remedy) from error
