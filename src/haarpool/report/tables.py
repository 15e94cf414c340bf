"""The tables of a report: numbers and settings as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from haarpool._numbers import DASH, mean_and_std
from haarpool.datasets.splits import PARTS
from haarpool.nn.strings.architecture import parse_architecture
from haarpool.report.record import RunRecord
from haarpool.tasks import Score
from haarpool.training.results import num_defined, statistics_of


def number(value: float | None) -> str:
    """Format a number with four digits; None and NaN give a dash.

    Example:
        >>> number(0.84210526), number(188), number(43471.0), number(None)
        ('0.8421', '188', '43,471', '–')
    """
    if value is None or math.isnan(value):
        return DASH
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def spread(score: Score, statistics: Mapping[str, Any]) -> str:
    """Format mean ± standard deviation, both to the second digit of the standard deviation.

    Args:
        score: The score.
        statistics: "mean" and "std" over the repeats; a single repeat has no ±.

    Example:
        >>> from haarpool.tasks import SCORES
        >>> spread(SCORES["mae"], {"mean": 42.914, "std": 1.2345})
        '42.9 ± 1.2'
        >>> spread(SCORES["accuracy"], {"mean": 0.8421, "std": None})
        '84.21 %'
    """
    if statistics["mean"] is None:
        return number(None)
    factor, sign = score.unit
    mean, std = factor * statistics["mean"], factor * (statistics["std"] or 0)
    if statistics["std"] is None or not math.isfinite(mean + std):
        return f"{number(mean)}{sign}"
    # At most four digits of the mean, even if all repeats have the same score.
    scale = max(std, abs(mean) / 100) or 1
    decimals = min(max(1 - math.floor(math.log10(scale)), 0), 8)
    return f"{mean_and_std(mean, std, decimals)}{sign}"


def show(value: Any) -> str:
    """Format any value of a configuration.

    Example:
        >>> show({"C": 12, "N": 3.5}), show([1, 2]), show(True), show([]), show("MUTAG")
        ('C: 12, N: 3.5', '1, 2', 'yes', '–', 'MUTAG')
    """
    if isinstance(value, Mapping | list | tuple) and not value:
        return DASH
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {show(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(show, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if value is None or isinstance(value, int | float) else str(value)


def pairs(values: Mapping[str, Any], *leave_out: str) -> list[tuple[str, str]]:
    """Return names and formatted values as rows, without some names."""
    names = (name for name in values if name not in leave_out)
    return [(name.replace("_", " "), show(values[name])) for name in names]


def blocks(record: RunRecord) -> list[tuple[str, str]]:
    """Return the blocks of the network from input to output, each with a description."""
    data, model = record.config["data"], record.config["model"]
    first = ("input", data["features"])
    last = ("output", record.task.describe_output(record.names))
    return [first, *parse_architecture(model["arch"]).parts(), last]


def repeats(record: RunRecord) -> list[list[str]]:
    """Return a row per repeat: its number, sizes of the parts, kept epoch, main score."""
    result = record.result
    metric, graphs = result["metric"], result["graphs"]
    columns = [range(1, result["repeats"] + 1), *(graphs[part] for part in PARTS)]
    rows = [[number(n) for n in row] for row in zip(*columns, strict=True)]
    for row, epochs in zip(rows, record.best_epochs, strict=True):
        row.append(", ".join(map(number, epochs)))
    for part in ("validation", "test"):
        for row, value in zip(rows, result["scores"][metric][part]["each"], strict=True):
            row.append(spread(record.score(metric), {"mean": value, "std": None}))
    return rows


def targets(record: RunRecord) -> list[list[str]]:
    """Return a row per target: its name, the scores of `target_columns`, and in how many repeats.

    A score is the mean over the repeats whose test part defines it.
    """
    metric, rows = record.result["metric"], []
    for target, scores in record.result["targets"].items():
        cells = [spread(one, scores[one.name][part]) for one, part in target_columns(record)]
        rows.append([target, *cells, number(num_defined(scores[metric]["test"]))])
    return rows


def all_defined(scores: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether all scores are defined in the parts of all repeats."""
    return all(num_defined(one) == len(one["each"]) for one in statistics_of(scores))


def target_columns(record: RunRecord) -> list[tuple[Score, str]]:
    """Return the scores and parts that the table of targets shows."""
    return [(one, part) for one in record.task.headline for part in ("test", "validation")]
