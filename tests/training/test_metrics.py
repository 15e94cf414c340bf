import numpy as np
import pytest
from sklearn import metrics

from haarpool.training.metrics import scores_of


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_classes_as_scikit_learn_counts_them(classes):
    rng = np.random.default_rng(classes)
    target = rng.integers(0, classes, 200)
    probability = rng.dirichlet(np.ones(classes), 200)
    probability = np.round(probability, 1)  # ties
    scores = scores_of("classification", probability, target)
    predicted = probability.argmax(1)
    assert np.isclose(scores["accuracy"], metrics.accuracy_score(target, predicted))
    assert np.isclose(
        scores["balanced_accuracy"], metrics.balanced_accuracy_score(target, predicted)
    )
    assert np.isclose(scores["f1"], metrics.f1_score(target, predicted, average="macro"))
    assert ("roc_auc" in scores) == (classes == 2)
    if classes == 2:
        assert np.isclose(scores["roc_auc"], metrics.roc_auc_score(target, probability[:, 1]))


def test_one_class_in_a_small_part():
    scores = scores_of("classification", np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]))
    assert scores["accuracy"] == scores["balanced_accuracy"] == 0.5
    assert "roc_auc" not in scores


def test_values_as_scikit_learn_measures_them():
    rng = np.random.default_rng(0)
    target, value = rng.standard_normal((2, 50, 3))
    scores = scores_of("regression", value, target)
    assert np.isclose(scores["mae"], metrics.mean_absolute_error(target, value))
    assert np.isclose(scores["rmse"], metrics.root_mean_squared_error(target, value))
    assert np.isclose(scores["r2"], metrics.r2_score(target, value))


def test_what_is_not_defined_is_not_told():
    assert set(scores_of("regression", np.ones((1, 1)), np.zeros((1, 1)))) == {"mae", "rmse"}


def test_missing_values_are_left_out():
    target, value = np.array([[1.0, 5.0], [2.0, np.nan], [np.nan, 7.0]]), np.zeros((3, 2))
    scores = scores_of("regression", value, target)
    assert scores["mae"] == np.mean([1.5, 6.0])
