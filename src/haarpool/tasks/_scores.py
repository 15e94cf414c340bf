"""`Score`: what measures predictions, by scikit-learn where it agrees to the last digit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._numbers import DASH, measured
from haarpool._types import Floats

Compute = Callable[[NDArray[Any], NDArray[Any]], float | None]


@dataclass(frozen=True)
class Score:
    """A score of predictions.

    Attributes:
        name: Its name in `result.json`.
        compute: `f(predicted, true)` of n labelled graphs, as `Task.columns` has them; NaN where it
            is not defined, `None` where a mean over targets leaves the target out.
        title: Its name in a report; by default the name in words.
        short: Its name on the screen; by default the title.
        needs: What graphs need so that it is defined, for a report.
        is_share: Whether it is shown in per cent.
        lower_is_better: Whether it is an error.

    Example:
        >>> MAE.short, MAE.title, MAE.lower_is_better
        ('MAE', 'mean absolute error', True)
        >>> ACCURACY.compute(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))
        0.5
    """

    name: str
    compute: Compute
    title: str = ""
    short: str = ""
    needs: str = ""
    is_share: bool = False
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        """Fill in the names that are left out."""
        title = self.title or self.name.replace("_", " ")
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "short", self.short or title)

    def show(self, mean: float | None, std: float | None = None) -> str:
        """Return a score, or a mean and a standard deviation, as people read it.

        Example:
            >>> ACCURACY.show(0.8421), ACCURACY.show(0.8421, 0.0312), MAE.show(42.914, 1.2345)
            ('84.21 %', '84.2 ± 3.1 %', '42.9 ± 1.2')
        """
        factor, unit = self.unit
        if mean is None or math.isnan(mean):
            return DASH
        return measured(factor * mean, None if std is None else factor * std) + unit

    @property
    def unit(self) -> tuple[float, str]:
        """The factor and the unit to show it with."""
        return (100.0, " %") if self.is_share else (1.0, "")


def _metric(name: str, *, of_classes: bool = False, macro: bool = False) -> Compute:
    """Return a metric of scikit-learn: of values, or of the most probable classes.

    A macro metric is the mean over the classes that occur in the target.
    """

    def compute(predicted: NDArray[Any], true: NDArray[Any]) -> float:
        import sklearn.metrics  # imported late: it takes a second

        predicted = predicted.argmax(axis=1) if of_classes else predicted
        options = {"labels": np.unique(true), "average": "macro"} if macro else {}
        return float(getattr(sklearn.metrics, name)(true, predicted, **options))

    return compute


def _roc_auc(probability: NDArray[Any], target: NDArray[Any]) -> float | None:
    """Compute the share of pairs, one of each class, in the right order; ties count half.

    `roc_auc_score` integrates the curve instead and differs in the last digit.
    """
    if not probability.shape[1] == len(np.unique(target)) == 2:
        return None
    from scipy.stats import rankdata  # imported late: it takes a second

    positive = target == 1
    count = positive.sum()
    pairs = rankdata(probability[:, 1])[positive].sum() - count * (count + 1) / 2
    return float(pairs / (count * (len(target) - count)))


def _r2(predicted: Floats, true: Floats) -> float:
    """Compute R²; `r2_score` differs in the last digit and gives 0 or 1 for constant values."""
    if true.min() == true.max():  # their variance may differ from 0 by rounding
        return math.nan
    return float(1 - ((predicted - true) ** 2).mean() / ((true - true.mean()) ** 2).mean())


_classes = partial(_metric, of_classes=True)

ACCURACY = Score("accuracy", _classes("accuracy_score"), is_share=True)
# The mean recall, since `balanced_accuracy_score` warns about classes that the target lacks.
_recall = _classes("recall_score", macro=True)
BALANCED_ACCURACY = Score("balanced_accuracy", _recall, is_share=True)
F1 = Score("f1", _classes("f1_score", macro=True), "F1")
ROC_AUC = Score("roc_auc", _roc_auc, "ROC-AUC", needs="both classes")
_error = partial(Score, lower_is_better=True)
MAE = _error("mae", _metric("mean_absolute_error"), "mean absolute error", "MAE")
RMSE = _error("rmse", _metric("root_mean_squared_error"), "root mean square error", "RMSE")
R2 = Score("r2", _r2, "R²", needs="different values")

SCORES = {one.name: one for one in (ACCURACY, BALANCED_ACCURACY, F1, ROC_AUC, MAE, RMSE, R2)}
