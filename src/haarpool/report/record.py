"""The content of a report: the files of a complete run as plain data."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._text import safe_cells
from haarpool.chains.chain import Chain
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.tasks import Figure, Names, Score, Task, find_task
from haarpool.training.drawn_graphs import DrawnGraphs
from haarpool.training.results import small_test_part, statistics_of
from haarpool.training.run_folder import (
    CONFIG,
    DRAWN_GRAPHS,
    EXAMPLE_CHAIN,
    METRICS,
    RESULT,
    TEST,
    RunFolder,
    names_in,
)


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
        target: Labels of the test parts of all repeats, one after the other: (n,) classes, -1
            without label, or (n, T) zeros and ones, or values, NaN without label.
        prediction: Predictions for them: (n,) classes, (n, T) probabilities, or (n, T) values.
        chain: Chain of one graph, which the report shows; None if there is none.
        drawn: Graphs with targets and predictions at their nodes; None if there are none.
    """

    config: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any]
    target: NDArray[Any]
    prediction: NDArray[Any]
    chain: Chain | None = None
    drawn: DrawnGraphs | None = None

    @classmethod
    def read(cls, path: str | PathLike[str]) -> RunRecord:
        """Read the files of a complete run from its folder."""
        folder = RunFolder.open(path)
        folder.check_trained()
        folder.check_complete(RESULT)
        config, result, epochs = folder.config(), folder.read_json(RESULT), folder.read_metrics()
        for name, check, *content in (
            (CONFIG, partial(folder.check_registered, clustering=False)),
            (CONFIG, _check_config, config),
            (RESULT, _check_result, result, config),
            (METRICS, _check_epochs, epochs),
        ):
            try:
                check(*content)
            except HaarPoolError:
                raise
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise folder.damaged(name, f"{type(error).__name__}: {error}") from error
        test = read_test_part(folder, config["data"])
        return cls(config, epochs, result, *test, _example_chain(folder), _drawn_graphs(folder))

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
        return self.task.figure(self.target, self.prediction, self.names, self.result["repeats"])

    @property
    def parts_of(self) -> str:
        """What the parts of the splits consist of: "graphs", "signals" or "nodes"."""
        parts_of: str = self.result.get("parts_of", "graphs")
        return parts_of

    def score(self, name: str) -> Score:
        """Return the score of this name."""
        return next(one for one in self.task.scores if one.name == name)

    @property
    def best_epochs(self) -> list[list[int]]:
        """The kept epoch of each member of each repeat."""
        if members := self.result["members"]:
            return [list(epochs) for epochs in members["best_epoch"]]
        return [[epoch] for epoch in self.result["best_epoch"]]


def read_test_part(folder: RunFolder, data: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read `target` and `prediction` of `RunRecord` from `test.csv`; `data` is of `config.json`."""
    try:
        with open(folder.path / TEST, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        task: Task = find_task(data["task"])
        places = ["repeat", "graph", *["node"] * task.of_nodes]
        if header[: len(places)] != places or not rows:
            raise ValueError(f"no columns {', '.join(places)}, or no rows")
        np.array([row[: len(places)] for row in rows], np.int64)  # these columns are not shown
        names = names_in(data)
        # Version 0.1.0 wrote the names as they are.
        plain = dict(zip(safe_cells(names.classes), names.classes, strict=True))
        cells = [[plain.get(cell, cell) for cell in row[len(places) :]] for row in rows]
        return task.read_test_rows(cells, names)
    except HaarPoolError:
        raise
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise folder.damaged(TEST, error) from error


# ---------------------------------------------------------------------- checks of the files


def _check_config(config: Any) -> None:
    """Access everything that the report shows; any error means that the file is damaged."""
    data = config["data"]
    for name in ("name", "task", "classes", "target_names", "features"):
        len(data[name])
    for section in (data["summary"], config["model"], config["training"], config["versions"]):
        section.items()
    if config["chain"] is not None:
        config["chain"].items()
    for text in (config["command"], config["device"], config["training"]["split"]):
        text.split()
    config["training"]["monitor"], config["model"]["num_parameters"]


def _check_result(result: Any, config: Any) -> None:
    """Access everything that the report shows; any error means that the file is damaged."""
    task = find_task(config["data"]["task"])
    repeats, metric = result["repeats"], result["metric"]
    members, number = result["members"], result["ensemble"]
    small_test_part(result)
    result["folds"], result["example_graph"], result["seconds"]
    result["best_epoch"][result["model_of_repeat"]]
    if unknown := set(result["scores"]) - {one.name for one in task.scores}:
        raise ValueError(f"scores of another task: {', '.join(sorted(unknown))}")
    if metric not in result["scores"]:
        raise ValueError(f"no scores for the metric {metric!r}")
    for name in ("example_positions", "example_signal"):  # none in runs of earlier versions
        np.array(result.get(name) or [], np.float64)
    statistics = statistics_of(result["scores"])
    for target in (result["targets"] or {}).values():
        statistics += statistics_of({one.name: target[one.name] for one in task.headline})
    columns = [result["best_epoch"], *(result["graphs"][part] for part in Split._fields)]
    columns += [one["each"] for one in statistics]
    if any(len(column) != repeats for column in columns) or repeats < 1:
        raise ValueError(f"lists that do not have {repeats} entries, one per repeat")
    if members:
        of_members = statistics_of(members["scores"])
        for column in [members["best_epoch"], *(one["each"] for one in of_members)]:
            if [len(one) for one in column] != [number] * repeats:
                raise ValueError(f"lists without {number} entries per repeat, one per member")
        statistics += of_members
    for one in statistics:
        float(one["mean"] or 0) + float(one["std"] or 0)


def _check_epochs(epochs: Any) -> None:
    """Access everything that the report shows; any error means that the file is damaged."""
    if not epochs:
        raise ValueError("no epoch")
    for line in epochs:
        for name in ("repeat", "epoch", "member", "train_loss", "validation_loss"):
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


def _drawn_graphs(folder: RunFolder) -> DrawnGraphs | None:
    if not folder.has(DRAWN_GRAPHS):
        return None
    try:
        return DrawnGraphs.load(folder.path / DRAWN_GRAPHS)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        got = f"a damaged {DRAWN_GRAPHS} in {folder.path} ({error})".splitlines()[0]
        remedy = "delete the file to leave these pictures out of the report"
        raise HaarPoolError("graphs that the report draws", got, remedy) from error
