"""How good predictions are: scores of classes and of values, with numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Task

# The first one is the score of a task.
SCORES: dict[Task, tuple[str, ...]] = {
    "classification": ("accuracy", "balanced_accuracy", "f1", "roc_auc"),
    "regression": ("mae", "rmse", "r2"),
}
LOWER_IS_BETTER = frozenset({"mae", "rmse"})


def scores_of(task: Task, output: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """All scores of a task.

    Args:
        task: what is predicted.
        output: (n, C) probabilities of classes, or (n, T) values in the units of the target.
        target: (n,) classes, or (n, T) values, NaN where there is none.
    """
    if task == "classification":
        return classification_scores(output, target)
    return regression_scores(output, target)


def classification_scores(probability: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """Accuracy; its mean over classes; F1, mean over classes; area under the ROC curve of two.

    >>> classification_scores(np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]), np.array([0, 1, 1]))
    ... # doctest: +ELLIPSIS
    {'accuracy': 0.66..., 'balanced_accuracy': 0.75, 'f1': 0.66..., 'roc_auc': 1.0}
    """
    count = probability.shape[1]
    table = confusion(probability.argmax(1), target, count)
    hits, actual, predicted = table.diagonal(), table.sum(1), table.sum(0)
    there = actual > 0
    scores = {
        "accuracy": hits.sum() / len(target),
        "balanced_accuracy": (hits[there] / actual[there]).mean(),
        "f1": (2 * hits[there] / (actual + predicted)[there]).mean(),
    }
    if count == 2 and there.all():
        scores["roc_auc"] = _area(probability[:, 1], target == 1)
    return {name: float(value) for name, value in scores.items()}


def confusion(predicted: NDArray[Any], target: NDArray[Any], count: int) -> NDArray[np.int64]:
    """(count, count) how many graphs of class i are taken for class j."""
    return np.bincount(target * count + predicted, minlength=count**2).reshape(count, count)


def regression_scores(value: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """Mean absolute error, root of the mean squared error, R²; means over several targets.

    >>> regression_scores(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]))
    ... # doctest: +ELLIPSIS
    {'mae': 1.0, 'rmse': 1.414..., 'r2': 0.11...}
    """
    each = []
    for own, true in zip(value.T.astype(np.float64), target.T.astype(np.float64), strict=True):
        known = np.isfinite(true)
        if not known.any():
            continue
        error, spread = own[known] - true[known], true[known] - true[known].mean()
        square, total = (error**2).mean(), (spread**2).mean()
        r2 = 1 - square / total if total > 0 else np.nan  # one value, or all the same
        each.append((np.abs(error).mean(), np.sqrt(square), r2))
    means = dict(zip(SCORES["regression"], np.array(each).mean(axis=0).tolist(), strict=True))
    return {name: value for name, value in means.items() if np.isfinite(value)}


def _area(score: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """The share of pairs, one of each class, that the score puts in order; ties count half."""
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]
    n = positive.sum()
    wins = rank[positive].sum() - n * (n + 1) / 2
    return float(wins / (n * (len(score) - n)))
