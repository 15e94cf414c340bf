"""The tables of a report: numbers as a reader wants to see them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.nn.architecture import TOKENS, Architecture
from haarpool.report.record import RunRecord

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


def spread(score: Mapping[str, Any]) -> str:
    """Mean ± standard deviation, both to the second digit of the latter; one value alone as it is.

    >>> spread({"mean": 0.84211, "std": 0.06132, "each": [0.78, 0.84, 0.90]})
    '0.842 ± 0.061'
    >>> spread({"mean": 42.91, "std": 0.0, "each": [42.91]})
    '42.91'
    """
    mean, std = score["mean"], score["std"]
    if len(score["each"]) < 2 or mean is None or std is None or not math.isfinite(std):
        return number(mean)
    decimals = 3 if std == 0 else min(max(1 - math.floor(math.log10(std)), 0), 8)
    return f"{number(mean, decimals)} ± {number(std, decimals)}"


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


def pairs(values: Mapping[str, Any], *leave_out: str) -> list[tuple[str, str]]:
    """Names and values as rows, in the order given."""
    shown = (name for name in values if name not in leave_out)
    return [(name.replace("_", " "), show(values[name])) for name in shown]


def blocks(record: RunRecord) -> list[tuple[str, str]]:
    """The architecture as a row of blocks, each with what it is, from input to output."""
    data, model = record.config["data"], record.config["model"]
    classes, values = len(data["classes"]), len(data["target_names"])
    first = ("input", f"{number(data['width'])} features per node")
    last = ("output", f"{values} values" if record.is_regression else f"{classes} classes")
    parts = Architecture.parse(model["arch"]).blocks
    middle = [(str(block), TOKENS[block.token].partition(",")[0]) for block in parts]
    return [first, *middle, last]


def repeats(record: RunRecord) -> list[list[str]]:
    """A row per repeat: its number, sizes of the parts, chosen epoch, the main score."""
    result = record.result
    score, graphs = result["scores"][result["metric"]], result["graphs"]
    columns = [range(1, record.repeats + 1), graphs["train"], graphs["validation"], graphs["test"]]
    columns += [result["best_epoch"], score["validation"]["each"], score["test"]["each"]]
    return [[number(value) for value in row] for row in zip(*columns, strict=True)]


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
