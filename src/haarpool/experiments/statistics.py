"""Means over splits with their uncertainty.

The test parts of random splits differ, but their training parts overlap, so results of splits are
not independent, and the standard deviation over the root of their number is too small. Nadeau and
Bengio ("Inference for the Generalization Error", Machine Learning 52, 2003) correct the variance of
the mean of n splits:

    var = (1 / n + n_test / n_train) · s²

with the sample variance s² and the sizes of the parts. The 95 % interval is mean ± t · sqrt(var)
with the quantile 0.975 of Student's distribution with n - 1 degrees of freedom. Trials that share
one split differ only by their random weights: there the correction is 0, and the interval says
nothing about other splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from haarpool.experiments.lines import Line


class Estimate(NamedTuple):
    """A mean over splits.

    Attributes:
        mean: The mean.
        std: Standard deviation between splits; NaN for one split.
        half: Half of the width of the 95 % interval; NaN for one split.
        splits: Number of splits.
    """

    mean: float
    std: float
    half: float
    splits: int

    @classmethod
    def of(cls, values: Sequence[float], overlap: float) -> Estimate:
        """Compute the corrected estimate.

        Args:
            values: One value per split.
            overlap: n_test / n_train, or 0 for trials on one split.

        Example:
            >>> estimate = Estimate.of([1.0, 2.0, 3.0], overlap=1 / 8)
            >>> [round(number, 2) for number in estimate]
            [2.0, 1.0, 2.91, 3]
        """
        n, mean = len(values), float(np.mean(values))
        if n < 2:
            return cls(mean, float("nan"), float("nan"), n)
        std = float(np.std(values, ddof=1))
        half = float(student.ppf(0.975, n - 1)) * std * (1 / n + overlap) ** 0.5
        return cls(mean, std, half, n)

    def contains(self, value: float) -> bool:
        """Return whether a value is in the interval."""
        return abs(value - self.mean) <= self.half

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in other units."""
        return Estimate(factor * self.mean, factor * self.std, factor * self.half, self.splits)


def estimate(lines: Sequence[Line], part: str = "") -> Estimate:
    """Return the mean result of some trials of a cell.

    Args:
        lines: The lines of the trials.
        part: One of the parts that lines have scores of; by default the test part.
    """
    return Estimate.of([_value(line, part) for line in lines], _overlap(lines))


def paired_difference(
    lines: Sequence[Line], reference: Sequence[Line], part: str = ""
) -> Estimate | None:
    """Return the mean difference to another method over the splits that both have; None if none.

    Args:
        lines: Trials of a method.
        reference: Trials of the other method; pairs have the same seed and the same split.
        part: As for `estimate`.
    """
    others = {(line["seed"], line["split_hash"]): _value(line, part) for line in reference}
    both = [line for line in lines if (line["seed"], line["split_hash"]) in others]
    if not both:
        return None
    values = [_value(line, part) - others[line["seed"], line["split_hash"]] for line in both]
    return Estimate.of(values, _overlap(both))


def _value(line: Line, part: str) -> float:
    value: float = line["parts"][part] if part else line["value"]
    return value


def _overlap(lines: Sequence[Line]) -> float:
    if len({line["split_hash"] for line in lines}) == 1:
        return 0.0
    train, _, test = np.mean([line["sizes"] for line in lines], axis=0)
    return float(test / train)
