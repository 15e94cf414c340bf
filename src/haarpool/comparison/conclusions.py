"""What the intervals of a comparison allow to say, in words, and no more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from haarpool._numbers import fixed
from haarpool._text import count
from haarpool.comparison.lines import is_good
from haarpool.comparison.statistics import Estimate, paired_difference, share_one_split

if TYPE_CHECKING:
    from haarpool.comparison.report import TableReport


def conclusions(report: TableReport) -> list[str]:
    """Return sentences on a comparison.

    All statements hold together with 95 % confidence: each has the interval of 1 - 0.05 / m for m
    statements (Bonferroni).

    Args:
        report: The comparison.
    """
    table = report.table
    statements = max(len(table.cells) - len(table.datasets), 1)
    texts = [
        text
        for dataset in table.datasets
        for text in _of_dataset(report, dataset, 1 - 0.05 / statements)
    ]
    if statements > 1 and any("better" in text or "told apart" in text for text in texts):
        texts.append(
            f"These {statements} statements hold together with 95 % confidence (Bonferroni); each "
            "interval of the tables holds alone."
        )
    return texts


def _of_dataset(report: TableReport, dataset: str, confidence: float) -> Iterator[str]:
    table, titles = report.table, report.titles
    cells = [cell for cell in table.cells if cell.dataset == dataset]
    failed = [titles[c.method] for c in cells if not report.ok(*c.key) and report.lines[c.key]]
    if failed:
        yield f"{dataset}: all trainings failed of {', '.join(failed)}; see the reasons above."
    (reference,) = (cell for cell in cells if cell.method == table.reference)
    theirs = report.ok(*reference.key)
    if len(theirs) < 2:
        number = count(len(theirs), "training")
        yield f"{dataset}: {number} of {titles[reference.method]}: no interval, nothing to say."
        return
    apart, same = list[str](), list[str]()
    for cell in cells:
        ours = report.ok(*cell.key)
        if cell == reference or not ours:
            continue
        gain = paired_difference(ours, theirs, confidence=confidence)
        if gain is None or math.isnan(gain.half):
            same.append(f"{titles[cell.method]} (less than two splits)")
        elif gain.contains(0.0):
            same.append(titles[cell.method])
        else:
            apart.append(_say(report, dataset, titles[cell.method], gain))
    name = titles[reference.method]
    for text in apart:
        yield f"{dataset}: {text} than {name}."
    if same:
        yield f"{dataset}: not told apart from {name}: {', '.join(same)}."
    lines = [line for cell in cells for line in report.lines[cell.key] if is_good(line)]
    if share_one_split(lines):
        yield f"{dataset}: all trainings share one split; on another one this may be different."


def _say(report: TableReport, dataset: str, title: str, gain: Estimate) -> str:
    """Say how much better or worse a method is."""
    score, units = report.score(dataset), report.units(dataset)
    assert score is not None
    sign = -1 if score.lower_is_better else 1
    word = "better" if sign * gain.mean > 0 else "worse"
    size, decimals = units.scaled(gain.scaled(math.copysign(1, gain.mean))), units.decimals(gain)
    low, high = (fixed(one, decimals) for one in size.interval)
    unit = "points" if score.is_share else f"in {score.short}"
    return f"{title} is {fixed(size.mean, decimals)} {unit} ({low} to {high}) {word}"
