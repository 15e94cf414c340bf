import math

import numpy as np
import pytest
from sklearn import metrics

from haarpool.tasks import Task, find_task
from helpers.errors import error_with


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_classification_scores_agree_with_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    target = rng.integers(0, classes, 200)
    probability = rng.dirichlet(np.ones(classes), 200)
    probability = np.round(probability, 1)  # ties
    scores = find_task("classification").score(probability, target)
    predicted = probability.argmax(1)
    assert scores["accuracy"] == metrics.accuracy_score(target, predicted)
    assert np.isclose(
        scores["balanced_accuracy"], metrics.balanced_accuracy_score(target, predicted)
    )
    assert scores["f1"] == metrics.f1_score(target, predicted, average="macro")
    assert ("roc_auc" in scores) == (classes == 2)
    if classes == 2:
        assert np.isclose(scores["roc_auc"], metrics.roc_auc_score(target, probability[:, 1]))


def test_one_class_in_the_target():
    scores = find_task("classification").score(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]))
    assert scores["accuracy"] == scores["balanced_accuracy"] == 0.5
    assert scores["f1"] == 2 / 3
    assert "roc_auc" not in scores


def test_roc_auc_counts_ties_as_half():
    probability = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    assert find_task("classification").score(probability, np.array([0, 1, 1]))["roc_auc"] == 0.75


def test_regression_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    target, value = rng.standard_normal((2, 50, 3))
    scores = find_task("regression").score(value, target)
    assert np.isclose(scores["mae"], metrics.mean_absolute_error(target, value))
    assert np.isclose(scores["rmse"], metrics.root_mean_squared_error(target, value))
    assert np.isclose(scores["r2"], metrics.r2_score(target, value))


@pytest.mark.parametrize("target", [[[3.0]], [[3.0], [3.0]], [[3.0], [np.nan]]])
def test_r2_of_constant_values_is_nan(target):
    scores = find_task("regression").score(np.ones((len(target), 1)), np.array(target))
    assert scores["mae"] == scores["rmse"] == 2
    assert math.isnan(scores["r2"])


def test_missing_values_are_left_out():
    target, value = np.array([[1.0, 5.0], [2.0, np.nan], [np.nan, 7.0]]), np.zeros((3, 2))
    assert find_task("regression").score(value, target)["mae"] == np.mean([1.5, 6.0])
    unlabelled = np.column_stack([target, np.full(3, np.nan)])
    assert find_task("regression").score(np.zeros((3, 3)), unlabelled)["mae"] == np.mean([1.5, 6.0])


def test_missing_classes_are_left_out():
    probability, target = np.eye(2)[[0, 1, 0]], np.array([0, -1, 1])
    labelled = find_task("classification").score(probability[::2], target[::2])
    assert find_task("classification").score(probability, target) == labelled


@pytest.mark.parametrize("function", [Task.score, Task.main_score])
def test_no_labels_are_an_error(function):
    values, classes = find_task("regression"), find_task("classification")
    with error_with("at least one graph with a label, got none", "pass graphs with labels"):
        function(values, np.zeros((2, 1)), np.full((2, 1), np.nan))
    with error_with("at least one graph with a label"):
        function(classes, np.zeros((2, 2)), np.array([-1, -1]))
    with error_with("at least one graph with a label"):
        function(classes, np.zeros((0, 2)), np.zeros(0, np.int64))


def test_main_score_is_the_first_score():
    rng = np.random.default_rng(0)
    for task, target in (
        ("classification", rng.integers(0, 3, 30)),
        ("regression", rng.standard_normal((30, 3))),
    ):
        output = rng.random((30, 3))
        scores = find_task(task).score(output, target)
        assert find_task(task).main_score(output, target) == next(iter(scores.values()))


@pytest.mark.parametrize(("value", "count"), [(0.1, 3), (0.3, 10), (-3.7, 3), (1e-300, 7)])
def test_r2_of_equal_values_is_not_defined_whatever_rounding_says(value, count):
    true = np.full((count, 1), value)
    assert np.isnan(find_task("regression").score(true + 1, true)["r2"])


# ---------------------------------------------------------------------- several targets


def several_targets():
    rng = np.random.default_rng(0)
    probability = np.round(rng.random((60, 4)), 1)  # ties
    target = rng.integers(0, 2, (60, 4)).astype(float)
    target[rng.random((60, 4)) < 0.3] = np.nan
    return probability, target


def test_scores_of_several_targets_agree_with_scikit_learn():
    probability, target = several_targets()
    each = find_task("multilabel").score_targets(probability, target)
    for t, scores in enumerate(each):
        known = np.isfinite(target[:, t])
        true, p = target[known, t], probability[known, t]
        assert np.isclose(scores["roc_auc"], metrics.roc_auc_score(true, p))
        assert np.isclose(scores["accuracy"], metrics.accuracy_score(true, p > 0.5))
        assert np.isclose(
            scores["balanced_accuracy"], metrics.balanced_accuracy_score(true, p > 0.5)
        )
    means = find_task("multilabel").score(probability, target)
    assert tuple(means) == tuple(one.name for one in find_task("multilabel").scores)
    for name, value in means.items():
        assert np.isclose(value, np.mean([scores[name] for scores in each]))
    assert find_task("multilabel").main_score(probability, target) == means["roc_auc"]


def test_a_target_of_one_class_is_left_out_of_the_mean():
    probability, target = several_targets()
    without = find_task("multilabel").score(probability[:, 1:], target[:, 1:])
    target[:, 0] = np.where(np.isfinite(target[:, 0]), 1.0, np.nan)
    scores = find_task("multilabel").score(probability, target)
    assert "roc_auc" not in find_task("multilabel").score_targets(probability, target)[0]
    assert scores["roc_auc"] == without["roc_auc"]
    assert scores["roc_auc"] == find_task("multilabel").main_score(probability, target)
    assert scores["accuracy"] != without["accuracy"]  # which one class is enough for
    target[:, 0] = np.nan
    assert find_task("multilabel").score_targets(probability, target)[0] == {}
    assert find_task("multilabel").score(probability, target) == without


def test_without_any_target_of_two_classes_the_area_is_not_defined():
    probability, target = several_targets()
    target[:] = 1
    assert np.isnan(find_task("multilabel").main_score(probability, target))
    scores = find_task("multilabel").score(probability, target)
    assert np.isnan(scores["roc_auc"])
    assert np.isfinite(scores["accuracy"])
    for score in (find_task("multilabel").score, find_task("multilabel").main_score):
        with error_with("at least one graph with a label"):
            score(probability, np.full_like(target, np.nan))
