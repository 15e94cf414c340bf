"""What a report is made from: the files of a run as plain data."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.errors import HaarPoolError
from haarpool.training.run_folder import RESULT, TEST, RunFolder

SECTIONS = ("command", "data", "model", "chain", "training", "versions")


def unit(metric: str) -> tuple[float, str]:
    """What to multiply a metric by, and the sign behind it: accuracies are shown in per cent.

    >>> unit("accuracy"), unit("mae")
    ((100.0, ' %'), (1.0, ''))
    """
    return (100.0, " %") if metric.endswith("accuracy") else (1.0, "")


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the networks said on the test parts of all repeats, one after the other.

    Attributes:
        repeat: (n,) the repeat, from 0.
        graph: (n,) the number of the graph in the dataset.
        target: (n,) numbers of classes, -1 without label, or (n, T) values, NaN without label.
        prediction: of the same shape.
    """

    repeat: NDArray[np.int64]
    graph: NDArray[np.int64]
    target: NDArray[Any]
    prediction: NDArray[Any]

    def __post_init__(self) -> None:
        """Check that the arrays belong together."""
        shapes = [np.shape(a) for a in (self.repeat, self.graph, self.target, self.prediction)]
        repeat, graph, target, prediction = shapes
        if not (repeat == graph == target[:1] and target == prediction):
            raise HaarPoolError(
                "repeat (n,), graph (n,), target and prediction of one shape (n,) or (n, T)",
                f"shapes {', '.join(map(str, shapes))}",
                "pass one row per test graph and repeat in each",
            )


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A finished run.

    Attributes:
        config: what was asked for: data, model, chain (None without), training, versions, command.
        epochs: one entry per repeat and epoch: losses, and a validation score or None.
        result: scores by metric and part, the chosen epochs, the sizes of the parts.
        test: the predictions behind the test scores.
    """

    config: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any]
    test: Predictions

    @classmethod
    def read(cls, folder: RunFolder) -> RunRecord:
        """Read the files of a run."""
        config = folder.config()
        return cls(
            config,
            folder.read_metrics(),
            folder.read_json(RESULT),
            _read_predictions(folder, config["data"]),
        )

    def __post_init__(self) -> None:
        """Check what a report cannot do without."""
        if missing := [name for name in SECTIONS if name not in self.config]:
            raise HaarPoolError(
                f"a config with {', '.join(SECTIONS)}",
                f"none of {', '.join(missing)}",
                "read config.json of a finished run",
            )
        if not self.epochs:
            raise HaarPoolError("at least one epoch", "none", "read metrics.jsonl of a run")
        if (metric := self.result.get("metric")) not in (scores := self.result.get("scores", {})):
            raise HaarPoolError(
                "a result whose metric is one of its scores",
                f"metric {metric!r} and scores {list(scores)}",
                "read result.json of a finished run",
            )
        if not self._fits():
            raise HaarPoolError(
                "predictions of the classes or target names in the config",
                f"targets of shape {np.shape(self.test.target)} for {self.config['data']['task']}",
                "read both from the same run",
            )

    def _fits(self) -> bool:
        data, shape = self.config["data"], np.shape(self.test.target)
        if self.is_regression:
            return shape[1:] == (len(data["target_names"]),)
        said = np.asarray(self.test.prediction)
        known = np.maximum(said, self.test.target) < len(data["classes"])
        return len(shape) == 1 and bool((known & (said >= 0)).all())

    @property
    def repeats(self) -> int:
        """How often the network was trained."""
        return int(self.result["repeats"])

    @property
    def is_regression(self) -> bool:
        """Whether values are predicted, not classes."""
        return bool(self.config["data"]["task"] == "regression")


def _read_predictions(folder: RunFolder, data: Mapping[str, Any]) -> Predictions:
    """Read `test.csv`."""
    try:
        with open(folder.path / TEST, newline="", encoding="utf-8") as file:
            _, *rows = csv.reader(file)
        repeat, graph = (np.array([int(row[i]) for row in rows], np.int64) for i in (0, 1))
        if data["task"] == "classification":
            number = {str(name): c for c, name in enumerate(data["classes"])}
            target, prediction = (np.array([number[row[i]] for row in rows]) for i in (2, 3))
        else:
            values = np.array([[float(cell) for cell in row[2:]] for row in rows])
            target, prediction = np.split(values, 2, axis=1)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise folder.damaged(TEST, error) from error
    return Predictions(repeat, graph, target, prediction)
