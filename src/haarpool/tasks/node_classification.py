"""Classification of nodes: each node has one of C classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from haarpool.tasks._labels import MISSING
from haarpool.tasks._registry import register
from haarpool.tasks._scores import ACCURACY, F1, Score
from haarpool.tasks.classification import Classification

if TYPE_CHECKING:
    from torch import Tensor


@register("node_classification")
class NodeClassification(Classification):
    """One of C classes per node: targets are (N,) numbers of classes, -1 without label."""

    __slots__ = ()

    of_nodes = True
    of_several = ""
    headline: ClassVar[tuple[Score, ...]] = (ACCURACY, F1)

    def loss(
        self, output: Tensor, target: Tensor, weight: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """Compute the cross entropy over the nodes with a label; weights are (C,)."""
        from torch.nn.functional import cross_entropy

        target = target.view(-1)
        total = cross_entropy(
            output,
            target,
            weight,
            ignore_index=MISSING,
            reduction="sum",
            label_smoothing=smoothing,
        )
        known = target != MISSING
        if weight is not None:  # what `cross_entropy` divides by
            return total / (weight[target.clamp(min=0)] * known).sum().clamp(min=1e-12)
        return total / known.sum().clamp(min=1)
