"""Intervals by the formula of Nadeau and Bengio, and paired differences."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from haarpool.experiments.statistics import Estimate, estimate, paired_difference


def lines(values, seeds=None, split=None, sizes=(80, 10, 10)):
    seeds = range(len(values)) if seeds is None else seeds
    return [
        {"value": value, "seed": seed, "split_hash": split or f"split {seed}", "sizes": sizes}
        for value, seed in zip(values, seeds, strict=True)
    ]


def test_without_overlap_it_is_the_interval_of_student():
    values = [0.7, 0.8, 0.75, 0.9, 0.6]
    ours = Estimate.of(values, overlap=0)
    low, high = ttest_1samp(values, 0).confidence_interval()
    assert ours.mean - ours.half == pytest.approx(low)
    assert ours.mean + ours.half == pytest.approx(high)


def test_overlapping_splits_widen_it():
    values = [0.7, 0.8, 0.75, 0.9, 0.6]
    plain, corrected = Estimate.of(values, 0), estimate(lines(values))
    assert corrected.half / plain.half == pytest.approx(math.sqrt((1 / 5 + 1 / 8) / (1 / 5)))
    # Trials on one split differ by their weights alone.
    assert estimate(lines(values, split="the same")) == plain


def test_one_split_has_no_interval():
    one = estimate(lines([0.5]))
    assert (one.mean, one.splits) == (0.5, 1)
    assert np.isnan([one.std, one.half]).all()
    assert not one.contains(0.5)


def test_differences_are_over_common_splits():
    ours = lines([0.9, 0.8, 0.7], seeds=[0, 1, 2])
    theirs = lines([0.5, 0.6, 0.1], seeds=[1, 2, 5])
    difference = paired_difference(ours, theirs)
    assert difference.splits == 2
    assert difference.mean == pytest.approx((0.3 + 0.1) / 2)
    assert paired_difference(ours, lines([0.5], seeds=[7])) is None
    assert paired_difference(ours, lines([0.5], seeds=[0], split="another")) is None
