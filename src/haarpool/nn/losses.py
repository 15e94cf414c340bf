"""Losses of the tasks, each a mean over the labels that are known."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from haarpool._types import Task


def task_loss(
    task: Task,
    output: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute the loss of outputs of a network.

    Cross entropy for "classification", binary cross entropy for "multilabel", mean squared error
    for "regression".

    Args:
        task: The task.
        output: (B, C) scores of classes, (B, T) logits of targets with two classes, or (B, T)
            values.
        target: (B,) classes, (B, T) zeros and ones, or (B, T) values; NaN is a missing value.
        weight: (C,) weights of the classes, or (2, T) weights of zeros and ones of each target.
        label_smoothing: Share of the target that is spread over all classes.

    Example:
        >>> target = torch.tensor([[1.0, float("nan")]])
        >>> task_loss("multilabel", torch.tensor([[0.0, 9.0]]), target)
        tensor(0.6931)
    """
    if task == "classification":
        return cross_entropy(output, target.view(-1), weight, label_smoothing=label_smoothing)
    target = target.view_as(output).to(output.dtype)
    known = ~target.isnan()
    if task == "regression":
        error = torch.where(known, output - target, 0.0).square()
        return error.sum() / known.sum().clamp(min=1)
    label = torch.where(known, target, 0.0)
    smooth = label + label_smoothing * (0.5 - label)
    error = binary_cross_entropy_with_logits(output, smooth, reduction="none")
    share = known.float()
    if weight is not None:
        share = share * torch.where(label > 0, weight[1], weight[0])
    # A smaller sum is zero: no label has a weight below the share of its class.
    return (share * error).sum() / share.sum().clamp(min=1e-12)
