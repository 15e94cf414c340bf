"""What the intervals of a comparison allow to say, in words, and no more."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from haarpool._numbers import fixed
from haarpool._text import count
from haarpool.comparison.statistics import (
    MIN_SPLITS,
    Estimate,
    estimate,
    paired_difference,
    share_one_split,
)

if TYPE_CHECKING:
    from haarpool.comparison.report import TableReport


def conclusions(report: TableReport) -> list[str]:
    """Return sentences on a comparison: what failed, and what the differences allow to say.

    All m differences hold together with 95 % confidence: each has the interval of 1 - 0.05 / m
    (Bonferroni).

    Args:
        report: The comparison.
    """
    working = [cell for cell in report.table.cells if report.ok(*cell.key)]
    statements = sum(report.reference(cell) is not None for cell in working)
    texts, are_several = list[str](), False
    for dataset in report.table.datasets:
        texts += _failures(report, dataset)
        said = list(_statements(report, dataset, 1 - 0.05 / max(statements, 1)))
        are_several |= statements > 1 and bool(said)
        texts += said or _why_nothing(report, dataset)
        cells = [cell for cell in working if cell.dataset == dataset]
        if said and share_one_split([line for cell in cells for line in report.ok(*cell.key)]):
            texts.append(
                f"{dataset}: all trainings share one split; on another one this may be different."
            )
    if are_several:
        texts.append(
            f"These {statements} statements hold together with 95 % confidence (Bonferroni); each "
            "interval of the tables holds alone."
        )
    return texts


def _failures(report: TableReport, dataset: str) -> Iterator[str]:
    cells = [cell for cell in report.cells(dataset) if report.lines[cell.key]]
    if failed := [report.titles[cell.method] for cell in cells if not report.ok(*cell.key)]:
        yield f"{dataset}: all trainings failed of {'; '.join(failed)}: the table has the reasons."
    for cell in cells:
        if report.ok(*cell.key):
            yield from report.failures(cell, report.lines[cell.key])


def _statements(report: TableReport, dataset: str, confidence: float) -> Iterator[str]:
    """Yield statements on the methods by what they are compared with; none without intervals."""
    same = defaultdict[str, list[str]](list)
    for cell in report.cells(dataset):
        ours, reference = report.ok(*cell.key), report.reference(cell)
        if not ours or reference is None:
            continue
        theirs = report.ok(dataset, reference, cell.protocol)
        gain = paired_difference(ours, theirs, confidence=confidence)
        title, name = report.titles[cell.method], report.titles[reference]
        if gain is None or math.isnan(gain.half):
            if max(estimate(lines).splits for lines in (ours, theirs)) >= MIN_SPLITS:
                same[name].append(f"{title} (less than {MIN_SPLITS} common splits)")
        elif gain.is_constant:  # an interval without width says nothing about other splits
            same[name].append(f"{title} (the same difference on all splits)")
        elif gain.contains(0.0):
            same[name].append(title)
        else:
            yield f"{dataset}: {_say(report, dataset, title, gain)} than {name}."
    for name, titles in same.items():
        yield f"{dataset}: not told apart from {name}: {'; '.join(titles)}."


def _why_nothing(report: TableReport, dataset: str) -> Iterator[str]:
    cells = [cell for cell in report.cells(dataset) if report.ok(*cell.key)]
    splits = max((estimate(report.ok(*cell.key)).splits for cell in cells), default=0)
    if 0 < splits < MIN_SPLITS:
        why = f"no interval and no statement; these need {MIN_SPLITS} or more"
        yield f"{dataset}: {count(splits, 'split')}: {why}."
    elif cells:
        yield f"{dataset}: {report.titles[cells[0].method]} alone: nothing to compare it with."


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
