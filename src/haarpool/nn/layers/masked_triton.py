"""Batch norm over the first rows of a batch in Triton: one launch instead of a dozen.

A program has a few columns and walks over all rows: for the mean, for the variance, for the result.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from haarpool.haar.kernels.launch import Launch

ROWS, COLUMNS = 1024, 4  # of a tile
_TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _tile(x, at, num_rows, column, columns, ROWS: tl.constexpr, ACC: tl.constexpr):
    """Return rows of x as a tile, the rows, and which entries exist."""
    row = at + tl.arange(0, ROWS)[:, None]
    mask = (row < num_rows) & (column < columns)
    return tl.load(x + row.to(tl.int64) * columns + column, mask, 0.0).to(ACC), row, mask


@triton.jit(do_not_specialize=["num_rows"])
def _forward(
    x, y, num_real, weight, bias, saved, running_mean, running_var, num_rows, columns,
    EPS: tl.constexpr, MOMENTUM: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Normalise; write mean and 1/std to `saved`, and update the running statistics."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    real, inside = tl.load(num_real), column < columns
    n = real.to(ACC)
    old_mean = tl.load(running_mean + column, inside, 0.0)
    old_variance = tl.load(running_var + column, inside, 0.0)
    total = tl.zeros([1, COLUMNS], ACC)
    for at in range(0, real, ROWS):
        values, row, mask = _tile(x, at, real, column, columns, ROWS, ACC)
        total += tl.sum(values, 0, keep_dims=True)
    mean = tl.where(real > 1, total / n, old_mean)  # one row has no variance
    total = tl.zeros([1, COLUMNS], ACC)
    for at in range(0, real, ROWS):
        values, row, mask = _tile(x, at, real, column, columns, ROWS, ACC)
        centred = tl.where(mask, values - mean, 0.0)
        total += tl.sum(centred * centred, 0, keep_dims=True)
    variance = tl.where(real > 1, total / n, old_variance)
    unbiased = tl.where(real > 1, variance * (n / tl.maximum(n - 1, 1.0)), old_variance)
    inverse = 1 / tl.sqrt(variance + EPS)
    tl.store(saved + column, mean, inside)
    tl.store(saved + columns + column, inverse, inside)
    tl.store(running_mean + column, old_mean + MOMENTUM * (mean - old_mean), inside)
    tl.store(running_var + column, old_variance + MOMENTUM * (unbiased - old_variance), inside)
    scale = inverse * tl.load(weight + column, inside, 0.0)
    shift = tl.load(bias + column, inside, 0.0)
    for at in range(0, num_rows, ROWS):
        values, row, mask = _tile(x, at, num_rows, column, columns, ROWS, ACC)
        result = tl.where(row < real, (values - mean) * scale, 0.0) + shift
        tl.store(y + row.to(tl.int64) * columns + column, result, mask)


@triton.jit(do_not_specialize=["num_rows"])
def _backward(
    x, dy, dx, num_real, weight, saved, d_weight, d_bias, num_rows, columns,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Compute the gradients."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    real, inside = tl.load(num_real), column < columns
    mean = tl.load(saved + column, inside, 0.0)
    inverse = tl.load(saved + columns + column, inside, 0.0)
    gradient, product = tl.zeros([1, COLUMNS], ACC), tl.zeros([1, COLUMNS], ACC)
    for at in range(0, real, ROWS):
        values, row, mask = _tile(x, at, real, column, columns, ROWS, ACC)
        grad, row, mask = _tile(dy, at, real, column, columns, ROWS, ACC)
        gradient += tl.sum(grad, 0, keep_dims=True)
        product += tl.sum(grad * tl.where(mask, (values - mean) * inverse, 0.0), 0, keep_dims=True)
    padding = tl.zeros([1, COLUMNS], ACC)
    for at in range(real, num_rows, ROWS):
        grad, row, mask = _tile(dy, at, num_rows, column, columns, ROWS, ACC)
        padding += tl.sum(grad, 0, keep_dims=True)
    tl.store(d_weight + column, product, inside)
    tl.store(d_bias + column, gradient + padding, inside)
    scale = inverse * tl.load(weight + column, inside, 0.0)
    n = real.to(ACC)
    for at in range(0, num_rows, ROWS):
        values, row, mask = _tile(x, at, num_rows, column, columns, ROWS, ACC)
        grad, row, mask = _tile(dy, at, num_rows, column, columns, ROWS, ACC)
        normal = (values - mean) * inverse
        shift = tl.where(real > 1, (gradient + normal * product) / n, 0.0)
        result = tl.where(row < real, scale * (grad - shift), 0.0)
        tl.store(dx + row.to(tl.int64) * columns + column, result, mask)


class MaskedNorm(torch.autograd.Function):
    """Batch norm in training; the running statistics are changed in place."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        num_real: Tensor,
        running: tuple[Tensor, Tensor],
        eps: float,
        momentum: float,
    ) -> Tensor:
        """Normalise x (N, d) by the statistics of its first rows."""
        x, acc = x.contiguous(), x.dtype
        y, saved = torch.empty_like(x), x.new_empty(2, x.shape[1])
        grid = (triton.cdiv(x.shape[1], COLUMNS), 1)
        Launch(
            grid, num_real, weight, bias, saved, *running, *x.shape,
            EPS=eps, MOMENTUM=momentum, ROWS=ROWS, COLUMNS=COLUMNS, ACC=_TYPES[acc],
        )(_forward, x, y)  # fmt: skip
        ctx.save_for_backward(x, weight, num_real, saved)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight and bias."""
        x, weight, num_real, saved = ctx.saved_tensors
        dx, d_weight, d_bias = (torch.empty_like(t) for t in (x, weight, weight))
        grid = (triton.cdiv(x.shape[1], COLUMNS), 1)
        Launch(
            grid, num_real, weight, saved, d_weight, d_bias, *x.shape,
            ROWS=ROWS, COLUMNS=COLUMNS, ACC=_TYPES[x.dtype],
        )(_backward, x, grad.contiguous(), dx)  # fmt: skip
        return dx, d_weight, d_bias, None, None, None, None
