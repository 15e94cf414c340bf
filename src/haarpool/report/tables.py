"""The tables of a report: numbers and settings as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.nn.strings.architecture import parse_architecture
from haarpool.report.record import RunRecord
from haarpool.training import results
from haarpool.training.metrics import HEADLINES
from haarpool.training.results import num_defined

METRICS = {
    "f1": "F1",
    "mae": "mean absolute error",
    "r2": "R²",
    "rmse": "root mean square error",
    "roc_auc": "ROC-AUC",
}
MAX_CLASSES = 40  # of a confusion matrix; a larger one is unreadable


def unit(metric: str) -> tuple[float, str]:
    """Return the factor and the unit to show a metric with: accuracies are shown in per cent.

    Example:
        >>> unit("accuracy"), unit("mae")
        ((100.0, ' %'), (1.0, ''))
    """
    return (100.0, " %") if metric.endswith("accuracy") else (1.0, "")


def number(value: float | None, decimals: int | None = None) -> str:
    """Format a number with four digits, or with a fixed number of decimals.

    Args:
        value: The number; None and NaN give a dash.
        decimals: Number of decimals.

    Example:
        >>> number(0.84210526), number(188), number(43471.0), number(None), number(1.5, 2)
        ('0.8421', '188', '43,471', '–', '1.50')
    """
    if value is None or math.isnan(value):
        return "–"
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def title(metric: str) -> str:
    """Return the readable name of a metric.

    Example:
        >>> title("mae"), title("balanced_accuracy")
        ('mean absolute error', 'balanced accuracy')
    """
    return METRICS.get(metric, metric.replace("_", " "))


def spread(metric: str, score: Mapping[str, Any]) -> str:
    """Format mean ± standard deviation, both to the second digit of the standard deviation.

    Args:
        metric: Name of the metric.
        score: "mean" and "std" over the repeats; a single repeat has no ±.

    Example:
        >>> spread("mae", {"mean": 42.914, "std": 1.2345})
        '42.9 ± 1.2'
        >>> spread("accuracy", {"mean": 0.8421, "std": None})
        '84.21 %'
    """
    if score["mean"] is None:
        return number(None)
    factor, sign = unit(metric)
    mean, std = factor * score["mean"], factor * (score["std"] or 0)
    if score["std"] is None or not math.isfinite(mean + std):
        return f"{number(mean)}{sign}"
    # At most four digits of the mean, even if all repeats have the same score.
    scale = max(std, abs(mean) / 100) or 1
    decimals = min(max(1 - math.floor(math.log10(scale)), 0), 8)
    return f"{number(mean, decimals)} ± {number(std, decimals)}{sign}"


def show(value: Any) -> str:
    """Format any value of a configuration.

    Example:
        >>> show({"C": 12, "N": 3.5}), show([1, 2]), show(True), show([]), show("MUTAG")
        ('C: 12, N: 3.5', '1, 2', 'yes', '–', 'MUTAG')
    """
    if isinstance(value, Mapping | list | tuple) and not value:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {show(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(show, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if value is None or isinstance(value, int | float) else str(value)


def count(amount: int, singular: str, plural: str = "") -> str:
    """Format an amount of something.

    Args:
        amount: How many.
        singular: Word for one of them.
        plural: Word for several; by default the singular with an s.

    Example:
        >>> count(1, "value"), count(2, "class", "classes")
        ('1 value', '2 classes')
    """
    return f"{amount:,} {singular if amount == 1 else plural or singular + 's'}"


def pairs(values: Mapping[str, Any], *leave_out: str) -> list[tuple[str, str]]:
    """Return names and formatted values as rows.

    Args:
        values: Values by name.
        *leave_out: Names to leave out.
    """
    names = (name for name in values if name not in leave_out)
    return [(name.replace("_", " "), show(values[name])) for name in names]


def blocks(record: RunRecord) -> list[tuple[str, str]]:
    """Return the blocks of the network from input to output, each with a description."""
    data, model = record.config["data"], record.config["model"]
    first = ("input", data["features"])
    last = ("output", count(len(data["classes"]), "class", "classes"))
    if record.task == "regression":
        last = ("output", count(len(data["target_names"]), "value"))
    elif record.task == "multilabel":
        last = ("output", count(len(data["target_names"]), "probability", "probabilities"))
    return [first, *parse_architecture(model["arch"]).parts(), last]


def repeats(record: RunRecord) -> list[list[str]]:
    """Return a row per repeat: its number, sizes of the parts, kept epoch, main score."""
    result = record.result
    metric, graphs = result["metric"], result["graphs"]
    columns = [range(1, record.repeats + 1), graphs["train"], graphs["validation"], graphs["test"]]
    rows = [[number(n) for n in row] for row in zip(*columns, strict=True)]
    for row, epochs in zip(rows, record.best_epochs, strict=True):
        row.append(", ".join(map(number, epochs)))
    for part in ("validation", "test"):
        for row, value in zip(rows, result["scores"][metric][part]["each"], strict=True):
            row.append(spread(metric, {"mean": value, "std": None}))
    return rows


def targets(record: RunRecord) -> list[list[str]]:
    """Return a row per target: its name, the scores of `target_columns`, and in how many repeats.

    A score is the mean over the repeats whose test part defines it.
    """
    metric, rows = record.result["metric"], []
    for target, scores in record.result["targets"].items():
        cells = [spread(name, scores[name][part]) for name, part in target_columns(metric)]
        rows.append([target, *cells, number(num_defined(scores[metric]["test"]))])
    return rows


def all_defined(scores: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether all scores are defined in the parts of all repeats."""
    parts = [score[part] for score in scores.values() for part in ("validation", "test")]
    return all(num_defined(part) == len(part["each"]) for part in parts)


def scored_targets(record: RunRecord) -> str:
    """Return for how many targets the main score is defined."""
    return results.scored_targets(record.result)


def small_test_part(record: RunRecord) -> str:
    """Return a sentence about a test part with too few graphs; "" if all have enough."""
    text = results.small_test_part(record.result)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def target_columns(metric: str) -> list[tuple[str, str]]:
    """Return the scores and parts that the table of targets shows, for a main score.

    Example:
        >>> target_columns("roc_auc")
        [('roc_auc', 'test'), ('roc_auc', 'validation')]
    """
    return [(name, part) for name in HEADLINES[metric] for part in ("test", "validation")]


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix of the test predictions.

    Attributes:
        names: Names of the C classes.
        counts: (C, C) number of graphs by true class (rows) and predicted class (columns).
    """

    names: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, record: RunRecord) -> Confusion:
        """Count the test parts of all repeats together, without graphs that have no label."""
        names = [str(name) for name in record.config["data"]["classes"]]
        true, predicted = np.asarray(record.test.target), np.asarray(record.test.prediction)
        known = true >= 0
        counts = np.zeros((len(names), len(names)), np.int64)
        np.add.at(counts, (true[known].astype(int), predicted[known].astype(int)), 1)
        return cls(names, counts)

    @property
    def is_readable(self) -> bool:
        """True if it is small enough for a table."""
        return len(self.names) <= MAX_CLASSES

    @property
    def shares(self) -> NDArray[np.float64]:
        """(C, C) counts divided by the sum of their row; 0 in a row without graphs."""
        rows = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(self.counts / np.maximum(rows, 1))

    @property
    def most_frequent(self) -> float:
        """Share of the most frequent true class: the accuracy of always predicting it."""
        return float(self.counts.sum(axis=1).max() / max(int(self.counts.sum()), 1))
