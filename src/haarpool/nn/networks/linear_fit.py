"""`LinearFit`: a linear part of a network that is fitted before training."""

from __future__ import annotations

import torch
from torch import Tensor

_RIDGE = 1.0  # as if one more graph said that a weight is zero: keeps few graphs from a perfect fit


class LinearFit(torch.nn.Module):
    """Add a linear fit to the output of a network.

        output = rows · weight + bias + spread · rest

    `fit` computes weight and bias by ridge regression, and the spread: the standard deviation of
    what the fit leaves. The network then learns a rest of size 1. Before, the module returns the
    rest. Weight, bias and spread are buffers, so they are part of the state dict.

    Args:
        in_channels: Number of columns of the rows.
        out_channels: Number of targets.

    Shapes:
        - **input:** rows (B, in_channels), rest (B, out_channels)
        - **output:** (B, out_channels)

    Example:
        >>> fit, rows = LinearFit(1, 1), torch.linspace(-1, 1, 1000)[:, None]
        >>> fit.fit(rows, 3 * rows + 1)
        >>> fit(torch.tensor([[0.5]]), torch.zeros(1, 1)).round(decimals=2)
        tensor([[2.5000]])
    """

    weight: Tensor
    bias: Tensor
    spread: Tensor

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(in_channels, out_channels))
        self.register_buffer("bias", torch.zeros(out_channels))
        self.register_buffer("spread", torch.ones(out_channels))

    def reset_parameters(self) -> None:
        """Forget the fit."""
        self.weight.zero_()
        self.bias.zero_()
        self.spread.fill_(1)

    @torch.no_grad()
    def fit(self, rows: Tensor, targets: Tensor) -> None:
        """Fit targets (n, out_channels) by rows (n, in_channels); NaN is a missing target."""
        rows, targets = rows.cpu().double(), targets.cpu().double()
        for column, target in enumerate(targets.unbind(1)):
            known = target.isfinite()
            if not known.any():
                continue
            x, y = rows[known], target[known]
            mean, std = x.mean(0), x.std(0, correction=0)
            std = std.where(std > 0, torch.ones_like(std))
            x, centre = (x - mean) / std, y.mean()
            square = x.T @ x + _RIDGE * torch.eye(x.shape[1], dtype=x.dtype)
            weight = torch.linalg.solve(square, x.T @ (y - centre))
            rest = (y - centre - x @ weight).std(correction=0)
            # In place: a captured step reads these tensors.
            self.weight[:, column] = (weight / std).to(self.weight)
            self.bias[column] = (centre - mean @ (weight / std)).to(self.bias)
            self.spread[column] = rest.clamp(min=1e-6).to(self.spread)

    def forward(self, rows: Tensor, rest: Tensor) -> Tensor:
        """Compute the sum of the fit and the rest, in the type of the rows."""
        # The rest may be a thousandth of the fit: bfloat16 would lose it.
        with torch.autocast(rows.device.type, enabled=False):
            weight, bias, spread = (x.to(rows.dtype) for x in (self.weight, self.bias, self.spread))
            return rows @ weight + bias + spread * rest.to(rows.dtype)

    def extra_repr(self) -> str:
        """Return the sizes, for `print(model)`."""
        return f"{self.weight.shape[0]} -> {self.weight.shape[1]}"
