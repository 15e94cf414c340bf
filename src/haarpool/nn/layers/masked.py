"""Batch norm over the first rows of a batch, for padded minibatches."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import BatchNorm


def _is_on_gpu(x: Tensor) -> bool:
    return x.is_cuda


@cache
def _fused() -> Any:
    """Return the batch norm in Triton, or None without Triton."""
    try:
        from haarpool.nn.layers.masked_triton import MaskedNorm
    except ImportError:
        return None
    return MaskedNorm


def masked_norm(norm: BatchNorm, x: Tensor, num_real: Tensor | None) -> Tensor:
    """Apply a batch norm of PyG to all rows, or with the statistics of the first ones."""
    if num_real is not None:
        return batch_norm(norm.module, x, num_real)
    result: Tensor = norm(x)
    return result


def batch_norm(norm: torch.nn.BatchNorm1d, x: Tensor, num_real: Tensor) -> Tensor:
    """Apply a batch norm whose statistics are those of the first rows.

    One row has no variance: the running statistics take its place, as in the batch norm of PyG with
    `allow_single_element`.

    Args:
        norm: The batch norm, whose running statistics are updated in training.
        x: (N, d) features.
        num_real: Number of rows that count, a tensor without dimensions.
    """
    if not norm.training:
        result: Tensor = norm(x)
        return result
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    fused = _fused() if _is_on_gpu(x) and x.dtype in (torch.float32, torch.float64) else None
    is_single = num_real <= 1
    norm.num_batches_tracked.add_(~is_single)
    if fused is not None:
        running = (norm.running_mean, norm.running_var)
        arguments = (norm.weight, norm.bias, num_real, running, norm.eps, norm.momentum)
        one_launch: Tensor = fused.apply(x, *arguments)
        return one_launch
    is_real = torch.arange(x.shape[0], device=x.device)[:, None] < num_real
    n = num_real.to(x.dtype)
    mean = torch.where(is_real, x, 0).sum(0) / n
    mean = torch.where(is_single, norm.running_mean, mean)
    centred = torch.where(is_real, x - mean, 0)
    variance = centred.square().sum(0) / n
    unbiased = variance.detach() * (n / (n - 1))
    variance = torch.where(is_single, norm.running_var, variance)
    with torch.no_grad():
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(torch.where(is_single, norm.running_var, unbiased), norm.momentum)
    return centred * (norm.weight * (variance + norm.eps).rsqrt()) + norm.bias
