"""Convolution in the Haar domain."""

from __future__ import annotations

import torch
from torch import Tensor

from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import Tree, floats
from haarpool.nn.operators import (
    Tensors,
    check_signal,
    pool,
    spread_graphs,
    sum_graphs,
    tensors_of,
    tree_of,
    unpool,
)
from haarpool.nn.pooling import checked_start


class HaarConv(torch.nn.Module):
    """Spectral convolution in the Haar domain: adjoint, a learned filter, forward.

        y = U_j diag(θ) U_jᵀ x W + b

    The filter has one value per column and *level*: the details of a level share it, and the first
    coefficient has one of its own. So it does not depend on the order of clusters and members: it
    asks for spaces of details, not for vectors, and D_i D_iᵀ x_i = x_i - P_i P_iᵀ x_i projects on
    them. This is also how it is computed: up the chain and down again, in O(N·d), without a basis.

    Args:
        in_channels, out_channels: columns of x and of the result.
        num_levels: K of the chains.
        level: j, the level of x.
        bias: whether to learn b.

    Shapes:
        x (N_j, in_channels), data -> (N_j, out_channels).

    >>> HaarConv(16, 32, num_levels=3)
    HaarConv(16, 32, num_levels=3, level=0)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_levels: int,
        level: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_levels, self.level = num_levels, checked_start(level)
        if type(num_levels) is not int or num_levels < max(level, 1):
            raise HaarPoolError(
                f"num_levels >= {max(level, 1)}, the levels of the chains",
                f"{num_levels!r}",
                "pass the num_levels of AddHaarChain",
            )
        self.lin = torch.nn.Linear(in_channels, out_channels, bias=bias)
        # Of levels j, ..., K, and of the first coefficient.
        self.filter = torch.nn.Parameter(torch.empty(num_levels - level + 2, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A fresh linear map behind the filter that changes nothing."""
        self.lin.reset_parameters()
        torch.nn.init.ones_(self.filter)

    def forward(self, x: Tensor, data: Tensors) -> Tensor:
        """The filtered signal."""
        data = tensors_of(data)
        check_signal(x, tree_of(data, self.level).shape[-1])
        if x.shape[1] != self.in_channels:
            raise HaarPoolError(
                f"x with {self.in_channels} columns",
                f"shape {tuple(x.shape)}",
                "pass the number of columns as in_channels",
            )
        if f"haar_tree_{self.num_levels + 1}" in data:
            raise HaarPoolError(
                f"data with a chain of {self.num_levels} levels",
                "one of more",
                "pass the num_levels of AddHaarChain to HaarConv",
            )
        steps, signal = [], x
        for level in range(self.level, self.num_levels):
            coarse = pool(signal, data, level)
            steps.append((level, signal - unpool(coarse, data, level)))
            signal = coarse
        y = self._top(signal, data)
        for i, (level, rest) in reversed(list(enumerate(steps))):
            y = unpool(y, data, level) + self.filter[i] * rest
        result: Tensor = self.lin(y)
        return result

    def _top(self, x: Tensor, data: Tensors) -> Tensor:
        """The filter on level K, whose nodes count as one cluster per graph."""
        weights = floats(tree_of(data, self.num_levels)[Tree.WEIGHT], x.dtype)[:, None]
        first = sum_graphs(weights * x, data, self.num_levels)
        mean = weights * spread_graphs(first, data, self.num_levels)
        return self.filter[-1] * mean + self.filter[-2] * (x - mean)

    def __repr__(self) -> str:
        bias = ", bias=False" * (self.lin.bias is None)
        return (
            f"HaarConv({self.in_channels}, {self.out_channels}, num_levels={self.num_levels}, "
            f"level={self.level}{bias})"
        )
