"""Means over splits with their uncertainty.

The test parts of random splits differ, but their training parts overlap, so results of splits are
not independent, and the standard deviation over the root of their number is too small. Nadeau and
Bengio ("Inference for the Generalization Error", Machine Learning 52, 2003) correct the variance of
the mean of n splits:

    var = (1 / n + n_test / n_train) · s²

with the sample variance s² and the sizes of the parts. The 95 % interval is mean ± t · sqrt(var)
with the quantile 0.975 of Student's distribution with n - 1 degrees of freedom.

Trials of the same split, for example of published folds, are averaged first: n is the number of
different splits. Where all trials share one split, they differ only by their random weights: there
n is the number of trials, the correction is 0, and the interval says nothing about other splits.
One or two splits have no interval: their spread says next to nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from haarpool.comparison.learners import Line

MIN_SPLITS = 3  # of an interval


class Estimate(NamedTuple):
    """A mean over splits.

    Attributes:
        mean: The mean.
        std: Standard deviation between splits; NaN for one split.
        half: Half of the width of the interval, by default that of 95 %; NaN if there is none.
        splits: Number of different splits, or of trials where all share one split.
        trials: Number of trials; several trials of a split are averaged.
    """

    mean: float
    std: float
    half: float
    splits: int
    trials: int = 0

    @classmethod
    def of(cls, values: Sequence[float], overlap: float, confidence: float = 0.95) -> Estimate:
        """Compute the corrected estimate.

        Args:
            values: One value per split.
            overlap: n_test / n_train, or 0 for trials on one split.
            confidence: That of the interval.

        Example:
            >>> estimate = Estimate.of([1.0, 2.0, 3.0], overlap=1 / 8)
            >>> [round(number, 2) for number in estimate]
            [2.0, 1.0, 2.91, 3, 3]
        """
        n, mean = len(values), float(np.mean(values))
        std = float(np.std(values, ddof=1)) if n > 1 else float("nan")
        half = float("nan")
        if n >= MIN_SPLITS:
            half = float(student.ppf((1 + confidence) / 2, n - 1)) * std * (1 / n + overlap) ** 0.5
        return cls(mean, std, half, n, n)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        return self.mean - self.half, self.mean + self.half

    def contains(self, value: float) -> bool:
        """Return whether a value is not excluded; without an interval none is."""
        return not abs(value - self.mean) > self.half

    @property
    def is_constant(self) -> bool:
        """Whether all splits have the same value: the interval is a point, but for rounding."""
        return self.std <= 1e-9 * abs(self.mean) + 1e-15

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in other units, or with another sign."""
        size = abs(factor)
        return self._replace(mean=factor * self.mean, std=size * self.std, half=size * self.half)


def estimate(lines: Sequence[Line], part: str = "") -> Estimate:
    """Return the mean result of some trials of a cell.

    Args:
        lines: The lines of the trials.
        part: One of the parts that lines have scores of; by default the test part.
    """
    groups = _by_split(lines, by_seed=share_one_split(lines))
    values = [_mean(group, part) for group in groups.values()]
    return Estimate.of(values, _overlap(lines))._replace(trials=len(lines))


def paired_difference(
    lines: Sequence[Line], reference: Sequence[Line], part: str = "", confidence: float = 0.95
) -> Estimate | None:
    """Return the mean difference to another method over the splits that both have; None if none.

    Args:
        lines: Trials of a method.
        reference: Trials of the other method. Pairs have the same split; where all trials of both
            methods share one split, pairs have the same seed.
        part: As for `estimate`.
        confidence: That of the interval.
    """
    by_seed = share_one_split([*lines, *reference])
    ours, theirs = _by_split(lines, by_seed), _by_split(reference, by_seed)
    both = [split for split in ours if split in theirs]
    if not both:
        return None
    values = [_mean(ours[split], part) - _mean(theirs[split], part) for split in both]
    trials = min(sum(len(groups[split]) for split in both) for groups in (ours, theirs))
    overlap = _overlap([line for split in both for line in ours[split]])
    return Estimate.of(values, overlap, confidence)._replace(trials=trials)


def _split(line: Line) -> object:
    """Return what trials of the same split share; a line without a hash is a split of its own."""
    return line.get("split_hash") or line["seed"]


def share_one_split(lines: Sequence[Line]) -> bool:
    """Return whether all trials have the same split."""
    return len({_split(line) for line in lines}) == 1


def _by_split(lines: Sequence[Line], by_seed: bool) -> dict[object, list[Line]]:
    """Return the trials of each split, or of each seed."""
    groups = defaultdict(list)
    for line in lines:
        groups[line["seed"] if by_seed else _split(line)].append(line)
    return dict(groups)


def _mean(lines: Sequence[Line], part: str) -> float:
    return float(np.mean([line["parts"][part] if part else line["value"] for line in lines]))


def _overlap(lines: Sequence[Line]) -> float:
    if share_one_split(lines):
        return 0.0
    train, _, test = np.mean([line["sizes"] for line in lines], axis=0)
    return float(test / train)
