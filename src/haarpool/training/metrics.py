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
    "multilabel": ("roc_auc", "accuracy", "balanced_accuracy", "f1"),
    "regression": ("mae", "rmse", "r2"),
}
# The main score and those that people compare beside it.
HEADLINES: dict[str, tuple[str, ...]] = {
    "accuracy": ("accuracy", "roc_auc"),
    "roc_auc": ("roc_auc",),
    "mae": ("mae", "rmse"),
}
SHORT_NAMES = {"roc_auc": "ROC-AUC", "f1": "F1", "mae": "MAE", "rmse": "RMSE", "r2": "R²"}
LOWER_IS_BETTER = frozenset({"mae", "rmse"})


def scores_of(task: Task, output: NDArray[Any], target: NDArray[Any]) -> dict[str, float]:
    """Compute all scores of a task; those of several targets are means over the targets.

    Args:
        task: The task.
        output: (n, C) probabilities of the classes, (n, T) probabilities of ones, or (n, T) values
            in the units of the target.
        target: (n,) classes, -1 without label, or (n, T) zeros and ones, or values, NaN without
            label.

    Returns:
        Scores by name. A mean is over the targets for which the score is defined; it is NaN if
        there is none, and for R² if there is one target for which it is not defined.
    """
    if task == "classification":
        return classification_scores(output, target)
    each = [scores for scores in scores_of_targets(task, output, target) if scores]
    if not each:
        raise _no_labels()
    values = {name: [one[name] for one in each if name in one] for name in SCORES[task]}
    return {name: float(np.mean(v)) if v else math.nan for name, v in values.items()}


def scores_of_targets(
    task: Task, output: NDArray[Any], target: NDArray[Any]
) -> list[dict[str, float]]:
    """Compute the scores of each of several targets.

    Args:
        task: "multilabel" or "regression".
        output: (n, T) predictions, as in `scores_of`.
        target: (n, T) labels, as in `scores_of`.

    Returns:
        (T,) Scores by name; {} for a target without any label.

    Example:
        >>> output, target = np.array([[0.1, 0.2], [0.8, 0.4]]), np.array([[0.0, 0.0], [1.0, 0.0]])
        >>> [scores.get("roc_auc") for scores in scores_of_targets("multilabel", output, target)]
        [1.0, None]
    """
    score = _binary_scores if task == "multilabel" else _value_scores
    columns = zip(output.T.astype(np.float64), target.T.astype(np.float64), strict=True)
    return [
        score(predicted[known], true[known]) if (known := np.isfinite(true)).any() else {}
        for predicted, true in columns
    ]


def main_score(task: Task, output: NDArray[Any], target: NDArray[Any]) -> float:
    """Compute the main score of a task alone, which is faster than `scores_of`.

    Args:
        task: The task.
        output: As in `scores_of`.
        target: As in `scores_of`.

    Example:
        >>> main_score("classification", np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))
        0.5
    """
    if task == "classification":
        return _accuracy(*_labelled_rows(output, target))
    if task == "regression":
        return float(np.mean([_mae(*pair) for pair in _labelled_columns(output, target)]))
    pairs = [(p, true == 1) for p, true in _labelled_columns(output, target)]
    areas = [_roc_auc(p, positive) for p, positive in pairs if 0 < positive.sum() < len(positive)]
    return float(np.mean(areas)) if areas else math.nan


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


def _binary_scores(probability: Floats, target: Floats) -> dict[str, float]:
    """Compute the scores of (n,) probabilities of ones."""
    both = np.stack([1 - probability, probability], axis=1)
    return classification_scores(both, target.astype(np.int64))


def _value_scores(predicted: Floats, true: Floats) -> dict[str, float]:
    """Compute mean absolute error, root mean squared error and R².

    R² is NaN if the values are all the same, or only one.
    """
    return {
        "mae": _mae(predicted, true),
        "rmse": _rmse(predicted, true),
        "r2": _r2(predicted, true),
    }


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
