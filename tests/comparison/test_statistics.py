"""Intervals by the formula of Nadeau and Bengio, and paired differences."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from haarpool.comparison.statistics import Estimate, estimate, paired_difference


def lines(values, seeds=None, split=None, sizes=(80, 10, 10), folds=None):
    seeds = range(len(values)) if seeds is None else seeds
    return [
        {"value": value, "seed": seed, "sizes": sizes}
        | {"split_hash": split or f"split {seed % folds if folds else seed}"}
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


def test_trials_of_the_same_split_are_averaged():
    values = [0.7, 0.8, 0.75, 0.9, 0.6, 0.72, 0.84, 0.71, 0.86, 0.58]  # each of five folds twice
    means = np.reshape(values, (2, 5)).mean(axis=0)
    expected = Estimate.of(means.tolist(), overlap=1 / 8)
    averaged = estimate(lines(values, folds=5))
    assert averaged[:3] == pytest.approx(expected[:3])
    assert (averaged.splits, averaged.trials) == (5, 10)
    assert averaged.scaled(100)[3:] == (5, 10)
    assert estimate(lines(values))[3:] == (10, 10)
    assert estimate(lines(values, split="the same"))[3:] == (10, 10)


def test_lines_without_a_hash_are_splits_of_their_own():
    ours, values = lines([0.7, 0.8, 0.9]), [0.7, 0.8, 0.9]
    ours[0]["split_hash"] = None
    del ours[1]["split_hash"]
    assert estimate(ours) == Estimate.of(values, overlap=1 / 8)
    assert paired_difference(ours, ours).splits == 3


def test_one_or_two_splits_have_no_interval_and_exclude_nothing():
    one, two = estimate(lines([0.5])), estimate(lines([0.5, 0.7]))
    assert (one.mean, one.splits) == (0.5, 1)
    assert np.isnan([one.std, one.half, two.half]).all()
    assert two.std == pytest.approx(0.02**0.5)
    assert one.contains(0.9)
    assert two.contains(0.9)


def test_equal_values_but_for_rounding_are_constant():
    assert Estimate.of([0.9 - 0.8, 0.8 - 0.7, 0.5 - 0.4], 0).is_constant
    assert Estimate.of([0.0] * 3, 0).is_constant
    assert not Estimate.of([0.1, 0.1, 0.11], 0).is_constant


def test_differences_are_over_common_splits():
    ours = lines([0.9, 0.8, 0.7], seeds=[0, 1, 2])
    theirs = lines([0.5, 0.6, 0.1], seeds=[1, 2, 5])
    difference = paired_difference(ours, theirs)
    assert difference.splits == 2
    assert difference.mean == pytest.approx((0.3 + 0.1) / 2)
    assert paired_difference(ours, lines([0.5], seeds=[7])) is None
    assert paired_difference(ours, lines([0.5], seeds=[0], split="another")) is None
    assert paired_difference(ours, []) is paired_difference([], ours) is None


def test_differences_of_splits_with_several_trials():
    ours = lines([0.9, 0.8, 0.7, 0.7], folds=2)  # means 0.8 and 0.75
    theirs = lines([0.5, 0.6, 0.7], folds=2)  # means 0.6 and 0.6
    difference = paired_difference(ours, theirs)
    assert difference[:2] == pytest.approx(Estimate.of([0.2, 0.15], overlap=1 / 8)[:2])
    assert (difference.splits, difference.trials) == (2, 3)
    one_fold = paired_difference(ours, lines([0.5, 0.7], seeds=[0, 2], folds=2))
    assert (one_fold.mean, one_fold.splits) == (pytest.approx(0.2), 1)


def test_differences_on_one_split_have_pairs_of_seeds():
    ours = lines([0.9, 0.8, 0.7, 0.8], split="published")
    theirs = lines([0.5, 0.7, 0.7], seeds=[1, 2, 3], split="published")
    difference = paired_difference(ours, theirs)
    assert difference[:3] == pytest.approx(Estimate.of([0.3, 0.0, 0.1], overlap=0)[:3])
    assert (difference.splits, difference.trials) == (3, 3)
    assert paired_difference(ours, lines([0.5], split="another")) is None
