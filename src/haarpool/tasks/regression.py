"""Regression: one or several real values per graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints
from haarpool.errors import HaarPoolError
from haarpool.tasks._figures import Figure, Panel
from haarpool.tasks._labels import NO_NAMES, Names
from haarpool.tasks._registry import register
from haarpool.tasks._scale import Scale
from haarpool.tasks._scores import MAE, R2, RMSE, Score
from haarpool.tasks._task import Task

if TYPE_CHECKING:
    from torch import Tensor

MAX_DOTS = 20_000  # of a picture; more take seconds to draw and show the same


@register("regression")
class Regression(Task):
    """T values per graph: (n, T), NaN without label.

    A network has an output for each value; predictions are in the units of the targets.
    """

    __slots__ = ()

    scores: ClassVar[tuple[Score, ...]] = (MAE, RMSE, R2)
    headline: ClassVar[tuple[Score, ...]] = (MAE, RMSE)
    scale: ClassVar[type[Scale] | None] = Scale
    is_linear = True

    def infers(self, num_targets: int, num_classes: int | None) -> bool:
        """Take values."""
        return num_classes is None

    def check_parts(
        self, targets: NDArray[Any], names: Names, splits: Sequence[Sequence[Ints]]
    ) -> str:
        """Raise an error if a target has no value in a training part."""
        for train, *_ in splits:
            for t in np.flatnonzero(~self.known(targets[train]).any(axis=0))[:1]:
                raise HaarPoolError(
                    f"a value of {names.targets[t]!r} in every training part",
                    "a training part without one",
                    "leave this target out",
                )
        return ""

    def loss(
        self, output: Tensor, target: Tensor, weight: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """Compute the mean squared error."""
        import torch

        target = target.view_as(output).to(output.dtype)
        known = ~target.isnan()
        error = torch.where(known, output - target, 0.0).square()
        return error.sum() / known.sum().clamp(min=1)

    def estimator_score(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> float:
        """Return R², averaged over targets; the main score of a subclass that does not have it."""
        if R2 not in self.scores:
            return super().estimator_score(predicted, targets, names)
        return self.score(predicted, targets, names)[R2.name]

    def figure(
        self, target: NDArray[Any], prediction: NDArray[Any], names: Names, repeats: int
    ) -> Figure:
        """Return the predictions against the true values, one panel per target."""
        panels, most = [], 0
        for name, true, predicted in zip(names.targets, target.T, prediction.T, strict=True):
            known = np.isfinite(true) & np.isfinite(predicted)
            most = max(most, int(known.sum()))
            step = -(-int(known.sum()) // MAX_DOTS) or 1
            panels.append(Panel(name, true[known][::step], predicted[known][::step]))
        some = f" (some of {most:,}, evenly chosen)" if most > MAX_DOTS else ""
        return Figure(
            f"Each dot is a test {self.unit}{some}"
            f"{f' of one of the {repeats} repeats' if repeats > 1 else ''}. A prediction on the "
            "dashed line is exact; the distance to the line is the error.",
            panels,
            label="prediction against true value",
            axes=("true value", "prediction"),
        )
