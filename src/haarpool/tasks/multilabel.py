"""Multilabel classification: several targets with the same two classes each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from haarpool._text import count
from haarpool._types import Floats, Ints
from haarpool.errors import HaarPoolError
from haarpool.tasks._figures import Figure, Panel
from haarpool.tasks._labels import MISSING, NO_NAMES, PARTS, Names, balanced
from haarpool.tasks._registry import register
from haarpool.tasks._scale import Scale
from haarpool.tasks._scores import ACCURACY, BALANCED_ACCURACY, F1, ROC_AUC, Score
from haarpool.tasks._task import Task

if TYPE_CHECKING:
    from torch import Tensor


@register("multilabel")
class Multilabel(Task):
    """T targets per graph: (n, T) zeros and ones, NaN without label.

    A network has a logit for each target; predictions are (n, T) probabilities of ones.
    """

    __slots__ = ()

    scores: ClassVar[tuple[Score, ...]] = (ROC_AUC, ACCURACY, BALANCED_ACCURACY, F1)
    headline: ClassVar[tuple[Score, ...]] = (ROC_AUC,)
    reads_classes = True
    classes = ("0", "1")

    def infers(self, num_targets: int, num_classes: int | None) -> bool:
        """Take several labels of two classes."""
        return num_targets > 1 and num_classes == 2

    def label_fields(
        self, labels: NDArray[Any], classes: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Check that there are two classes, and bring the labels into columns."""
        if len(classes) != 2:
            listed = ", ".join(classes[:6]) + (", ..." if len(classes) > 6 else "")
            raise HaarPoolError(
                f"two classes, the same in all of {', '.join(targets)}, for multilabel",
                f"{len(classes)}: {listed}",
                "choose other targets, or pass {task}",
                task="regression",
            )
        values = np.where(labels == MISSING, np.nan, labels).reshape(-1, len(targets))
        return super().label_fields(values, classes, targets)

    def check(self, targets: NDArray[Any], names: Names, dataset: str) -> None:
        """Raise an error if no target has both classes."""
        if not _has_both_classes(targets).any():
            raise HaarPoolError(
                f"a target of {dataset} with two classes",
                "only targets with one",
                "choose other targets",
            )

    def check_parts(
        self, targets: NDArray[Any], names: Names, splits: Sequence[Sequence[Ints]]
    ) -> str:
        """Say which targets lack a class in a part."""
        messages = []
        for part_name, parts in zip(PARTS, zip(*splits, strict=True), strict=True):
            both = [_has_both_classes(targets[part]) for part in parts if len(part)]
            if both and not np.all(both):
                listed = ", ".join(names.targets[t] for t in np.flatnonzero(~np.all(both, axis=0)))
                messages.append(f"a {part_name} part has graphs of one class only for {listed}")
        return "; ".join(messages)

    def _summary(self, labels: NDArray[Any], names: Names) -> dict[str, Any]:
        """Count the graphs of each class."""
        counts = np.bincount(labels.astype(np.int64), minlength=2)
        return dict(zip(names.classes, counts.tolist(), strict=True))

    def example_labels(self, rng: np.random.Generator, n: int) -> tuple[NDArray[Any], Names]:
        """Return zeros and ones."""
        return rng.integers(2, size=(n, 2)).astype(np.float64), Names(("no", "yes"), ("a", "b"))

    def loss(
        self, output: Tensor, target: Tensor, weight: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """Compute the binary cross entropy; weights are (2, T), those of zeros and ones.

        Example:
            >>> import torch
            >>> from haarpool.tasks import find_task
            >>> target = torch.tensor([[1.0, float("nan")]])
            >>> find_task("multilabel").loss(torch.tensor([[0.0, 9.0]]), target)
            tensor(0.6931)
        """
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits

        target = target.view_as(output).to(output.dtype)
        known = ~target.isnan()
        label = torch.where(known, target, 0.0)
        smooth = label + smoothing * (0.5 - label)
        error = binary_cross_entropy_with_logits(output, smooth, reduction="none")
        share = known.float()
        if weight is not None:
            share = share * torch.where(label > 0, weight[1], weight[0])
        # A smaller sum is zero: no label has a weight below the share of its class.
        return (share * error).sum() / share.sum().clamp(min=1e-12)

    def class_weights(self, targets: NDArray[Any], num_classes: int) -> Floats | None:
        """Return (2, T) weights of zeros and ones."""
        return balanced(np.stack([(targets == label).sum(axis=0) for label in (0, 1)]))

    def mass(self, targets: NDArray[Any], weights: Floats | None = None) -> Floats:
        """Return the sum of the weights of the known labels of each graph."""
        if weights is None:
            return super().mass(targets)
        of_labels = np.where(targets == 1, weights[1], weights[0])
        return np.asarray(np.where(self.known(targets), of_labels, 0).sum(axis=1))

    def to_predictions(self, output: Tensor, scale: Scale | None, names: Names) -> Floats:
        """Turn logits into probabilities of ones."""
        return output.double().sigmoid().numpy()

    def columns(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return for each target (n, 2) probabilities of its two classes, and the classes."""
        return [
            (np.stack([1 - p, p], axis=1), true.astype(np.int64))
            for p, true in super().columns(predicted, targets, names)
        ]

    def prediction_columns(self, names: Names) -> list[str]:
        """Return a column for each probability."""
        return [f"p({name})" for name in names.targets]

    def decide(self, predicted: Floats, classes: NDArray[Any], names: Names) -> NDArray[Any]:
        """Return the more probable class of each target."""
        return np.asarray(classes[(predicted > 0.5).astype(np.int64)])

    def describe(self, names: Names) -> str:
        """Name the targets."""
        return f"Multilabel classification of {', '.join(names.targets)}"

    def describe_output(self, names: Names) -> str:
        """Say how many probabilities there are."""
        return count(len(names.targets), "probability", "probabilities")

    def figure(
        self, target: NDArray[Any], prediction: NDArray[Any], names: Names, repeats: int
    ) -> Figure:
        """Return the ROC curve of each target over the test parts of all repeats together."""
        from sklearn.metrics import roc_curve  # imported late: it takes a second

        panels = []
        for name, true, predicted in zip(names.targets, target.T, prediction.T, strict=True):
            known = np.isfinite(true) & np.isfinite(predicted)
            curve = (np.zeros(0), np.zeros(0))
            if len(np.unique(true[known])) == 2:
                curve = roc_curve(true[known], predicted[known])[:2]
            panels.append(Panel(name, *curve))
        zero, one = names.classes
        return Figure(
            "ROC curve of each target"
            f"{f', over the {repeats} test parts together' if repeats > 1 else ''}: the share of "
            f"the graphs of class {one} that a threshold finds against the share of the graphs of "
            f"class {zero} that it takes for class {one}. On the dashed line predictions are "
            "random. A target with one class in the test graphs has no curve.",
            panels,
            label="ROC curve",
            axes=("false positives", "true positives"),
            is_curve=True,
        )


def _has_both_classes(targets: NDArray[Any]) -> NDArray[np.bool_]:
    """Return (T,) which of (n, T) targets have zeros and ones."""
    return np.asarray((targets == 0).any(axis=0) & (targets == 1).any(axis=0))
