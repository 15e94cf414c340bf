"""The tables of a report: numbers and settings as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haarpool._numbers import DASH, number
from haarpool.datasets.splits import Split
from haarpool.nn.strings.architecture import parse_architecture
from haarpool.report.record import RunRecord
from haarpool.tasks import Score
from haarpool.training.results import num_defined


def spread(score: Score, statistics: Mapping[str, Any]) -> str:
    """Return the mean and standard deviation of a score; a single repeat has no ±."""
    return score.show(statistics["mean"], statistics["std"])


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
    columns = [range(1, result["repeats"] + 1), *(graphs[part] for part in Split._fields)]
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


def undefined(record: RunRecord) -> list[Score]:
    """Return the scores that are not defined in the parts of all repeats."""
    scores = record.result["scores"]
    return [
        record.score(name)
        for name, parts in scores.items()
        if any(num_defined(one) < len(one["each"]) for one in parts.values())
    ]


def target_columns(record: RunRecord) -> list[tuple[Score, str]]:
    """Return the scores and parts that the table of targets shows."""
    return [(one, part) for one in record.task.headline for part in ("test", "validation")]
