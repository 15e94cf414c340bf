"""Scores of predictions: classes and values, by scikit-learn where it agrees to the last digit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from haarpool._types import Floats, Task
from haarpool.datasets.graphs import MISSING
from haarpool.errors import HaarPoolError

# The first score of a task is its main score.
SCORES: dict[Task, tuple[str, ...]] = {
    "classification": ("accuracy", "balanced_accuracy", "f1", "roc_auc"),
    "regression": ("mae", "rmse", "r2"),
}
LOWER_IS_BETTER = frozenset({"mae", "rmse"})


def scores_of(task: Task, output: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """Compute all scores of a task.

    Args:
        task: "classification" or "regression".
        output: (n, C) probabilities of the classes, or (n, T) values in the units of the target.
        target: (n,) classes, -1 without label, or (n, T) values, NaN without label.
    """
    if task == "classification":
        return classification_scores(output, target)
    return regression_scores(output, target)


def main_score(task: Task, output: NDArray[Any], target: NDArray[Any]) -> float:
    """Compute the main score of a task alone, which is faster than `scores_of`.

    Args:
        task: "classification" or "regression".
        output: As in `scores_of`.
        target: As in `scores_of`.

    Example:
        >>> main_score("classification", np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))
        0.5
    """
    if task == "classification":
        return _accuracy(*_labelled_rows(output, target))
    return float(np.mean([_mae(*pair) for pair in _labelled_columns(output, target)]))


def classification_scores(probability: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """Compute accuracy, balanced accuracy, macro F1 and, for two classes, the area under the ROC.

    Balanced accuracy and F1 are means over the classes that occur in the target. The area is left
    out where the target has only one class.

    Args:
        probability: (n, C) probabilities of the classes.
        target: (n,) classes; a graph without label (-1) does not count.

    Example:
        >>> probability = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
        >>> classification_scores(probability, np.array([0, 1, 1]))  # doctest: +ELLIPSIS
        {'accuracy': 0.66..., 'balanced_accuracy': 0.75, 'f1': 0.66..., 'roc_auc': 1.0}
    """
    from sklearn.metrics import f1_score, recall_score  # imported late: it takes a second

    probability, target = _labelled_rows(probability, target)
    predicted, present = probability.argmax(axis=1), np.unique(target)
    # The mean recall, since balanced_accuracy_score warns about predicted classes that are missing
    # in the target.
    over_present: dict[str, Any] = {"labels": present, "average": "macro"}
    scores = {
        "accuracy": _accuracy(probability, target),
        "balanced_accuracy": float(recall_score(target, predicted, **over_present)),
        "f1": float(f1_score(target, predicted, **over_present)),
    }
    if probability.shape[1] == len(present) == 2:
        scores["roc_auc"] = _roc_auc(probability[:, 1], target == 1)
    return scores


def regression_scores(value: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """Compute mean absolute error, root mean squared error and R², each the mean over all targets.

    R² is NaN if the known values of a target are all the same, or only one.

    Args:
        value: (n, T) predictions in the units of the target.
        target: (n, T) values, NaN without label; a target without any label does not count.

    Example:
        >>> regression_scores(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]))
        ... # doctest: +ELLIPSIS
        {'mae': 1.0, 'rmse': 1.414..., 'r2': 0.11...}
    """
    columns = _labelled_columns(value, target)
    each = [(_mae(*pair), _rmse(*pair), _r2(*pair)) for pair in columns]
    return dict(zip(SCORES["regression"], np.mean(each, axis=0).tolist(), strict=True))


def _labelled_rows(output: NDArray[Any], target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    known = target != MISSING
    if not known.any():
        raise _no_labels()
    return output[known], target[known]


def _labelled_columns(value: NDArray[Any], target: NDArray[Any]) -> list[tuple[Floats, Floats]]:
    """For each target with a label, the predictions and the true values where these are known."""
    columns = zip(value.T.astype(np.float64), target.T.astype(np.float64), strict=True)
    pairs = [
        (predicted[k], true[k]) for predicted, true in columns if (k := np.isfinite(true)).any()
    ]
    if not pairs:
        raise _no_labels()
    return pairs


def _no_labels() -> HaarPoolError:
    return HaarPoolError("at least one graph with a label", "none", "pass graphs with labels")


def _accuracy(probability: NDArray[Any], target: NDArray[Any]) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(target, probability.argmax(axis=1)))


def _mae(predicted: Floats, true: Floats) -> float:
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(true, predicted))


def _rmse(predicted: Floats, true: Floats) -> float:
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(true, predicted))


def _r2(predicted: Floats, true: Floats) -> float:
    """Compute R²; r2_score differs in the last digit and gives 0 or 1 for constant values."""
    if true.min() == true.max():  # their variance may differ from 0 by rounding
        return math.nan
    return float(1 - ((predicted - true) ** 2).mean() / ((true - true.mean()) ** 2).mean())


def _roc_auc(score: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """Compute the share of pairs, one of each class, in the right order; ties count half.

    roc_auc_score integrates the curve instead and differs in the last digit.
    """
    count = positive.sum()
    pairs = rankdata(score)[positive].sum() - count * (count + 1) / 2
    return float(pairs / (count * (len(score) - count)))
