"""The tables of a report: numbers as a reader wants to see them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.nn.architecture import TOKENS, Architecture
from haarpool.report.record import RunRecord, unit

METRICS = {
    "f1": "F1",
    "mae": "mean absolute error",
    "r2": "R²",
    "rmse": "root mean square error",
    "roc_auc": "ROC AUC",
}
MAX_CLASSES = 40  # of a confusion matrix; a larger one is no longer read


def number(value: float | None, decimals: int | None = None) -> str:
    """A number with four digits, or with as many decimals as asked for.

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
    """A metric in words.

    >>> title("mae"), title("balanced_accuracy")
    ('mean absolute error', 'balanced accuracy')
    """
    return METRICS.get(metric, metric.replace("_", " "))


def spread(metric: str, score: Mapping[str, Any]) -> str:
    """Mean ± standard deviation, both to the second digit of the latter; one value alone as it is.

    >>> spread("mae", {"mean": 42.914, "std": 1.2345, "each": [41.1, 42.9, 44.7]})
    '42.9 ± 1.2'
    >>> spread("accuracy", {"mean": 0.8421, "std": None, "each": [0.8421]})
    '84.21 %'
    """
    if score["mean"] is None:
        return number(None)
    factor, sign = unit(metric)
    mean, std = factor * score["mean"], factor * (score["std"] or 0)
    if len(score["each"]) < 2 or not math.isfinite(mean + std):
        return f"{number(mean)}{sign}"
    # Never more than four digits of the mean, also where all repeats are alike.
    scale = max(std, abs(mean) / 100) or 1
    decimals = min(max(1 - math.floor(math.log10(scale)), 0), 8)
    return f"{number(mean, decimals)} ± {number(std, decimals)}{sign}"


def show(value: Any) -> str:
    """Any value of a configuration in words.

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


def count(many: int, one: str, several: str = "") -> str:
    """How many of something.

    >>> count(1, "value"), count(2, "class", "classes")
    ('1 value', '2 classes')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def pairs(values: Mapping[str, Any], *leave_out: str) -> list[tuple[str, str]]:
    """Names and values as rows, in the order given."""
    shown = (name for name in values if name not in leave_out)
    return [(name.replace("_", " "), show(values[name])) for name in shown]


def blocks(record: RunRecord) -> list[tuple[str, str]]:
    """The architecture as a row of blocks, each with what it is, from input to output."""
    data, model = record.config["data"], record.config["model"]
    first = ("input", f"{count(data['width'], 'feature')} per node")
    last = ("output", count(len(data["classes"]), "class", "classes"))
    if record.is_regression:
        last = ("output", count(len(data["target_names"]), "value"))
    parts = Architecture.parse(model["arch"]).blocks
    middle = [(str(block), TOKENS[block.token].partition(",")[0]) for block in parts]
    return [first, *middle, last]


def repeats(record: RunRecord) -> list[list[str]]:
    """A row per repeat: its number, sizes of the parts, chosen epoch, the main score."""
    result = record.result
    metric, graphs = result["metric"], result["graphs"]
    columns = [range(1, record.repeats + 1), graphs["train"], graphs["validation"], graphs["test"]]
    rows = [[number(n) for n in row] for row in zip(*columns, result["best_epoch"], strict=True)]
    for part in ("validation", "test"):
        for row, value in zip(rows, result["scores"][metric][part]["each"], strict=True):
            row.append(spread(metric, {"mean": value, "std": None, "each": [value]}))
    return rows


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often class i was taken for class j.

    Attributes:
        names: of the C classes.
        counts: (C, C), true class by predicted class.
    """

    names: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, record: RunRecord) -> Confusion:
        """Over the test parts of all repeats together; graphs without label do not count."""
        names = [str(name) for name in record.config["data"]["classes"]]
        true, said = np.asarray(record.test.target), np.asarray(record.test.prediction)
        known = true >= 0
        counts = np.zeros((len(names), len(names)), np.int64)
        np.add.at(counts, (true[known].astype(int), said[known].astype(int)), 1)
        return cls(names, counts)

    @property
    def is_readable(self) -> bool:
        """Whether it is small enough for a table."""
        return len(self.names) <= MAX_CLASSES

    @property
    def shares(self) -> NDArray[np.float64]:
        """(C, C) the counts as shares of their row; 0 in a row without graphs."""
        rows = self.counts.sum(axis=1, keepdims=True)
        return np.asarray(self.counts / np.maximum(rows, 1))

    @property
    def most_frequent(self) -> float:
        """The share of the most frequent true class: what guessing it always would score."""
        return float(self.counts.sum(axis=1).max() / max(self.counts.sum(), 1))
