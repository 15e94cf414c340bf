"""`HaarConv`: convolution in the Haar domain."""

from __future__ import annotations

import torch
from torch import Tensor

from haarpool._validate import whole_number
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.operators import synthesis
from haarpool.nn.inputs import Tensors, chains_of, check_columns, check_signal
from haarpool.nn.layers.pooling import detail_part


class HaarConv(torch.nn.Module):
    """Filter a signal in the Haar domain, by adjoint transform, learned filter, forward transform.

        y = U_j diag(θ) U_jᵀ x W + b

    The filter θ has one value per column and *level*: all details of a level share it, and the
    first coefficient has its own. So y does not depend on the order of clusters and members. Only
    the projection on the details of each level is needed, D_i D_iᵀ x_i = x_i - P_i P_iᵀ x_i. It is
    computed without a basis, up the chain and down again, in O(N·d).

    Args:
        in_channels: Number of columns of x.
        out_channels: Number of columns of y.
        num_levels: K of the chains.
        level: Level j of x.
        bias: If `False`, the layer has no b.

    Shapes:
        - **input:** x (N_j, in_channels); data, a `ChainData`, a batch of them, or a dict of their
          tensors
        - **output:** (N_j, out_channels)

    Example:
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
        self.in_channels = whole_number("in_channels", in_channels)
        self.out_channels = whole_number("out_channels", out_channels)
        self.level = whole_number("level", level, minimum=0)
        remedy = "pass the num_levels of AddHaarChain"
        self.num_levels = whole_number("num_levels", num_levels, max(self.level, 1), remedy=remedy)
        self.lin = torch.nn.Linear(self.in_channels, self.out_channels, bias=bias)
        # One row per level j, ..., K and one for the first coefficient.
        num_filters = self.num_levels - self.level + 2
        self.filter = torch.nn.Parameter(torch.empty(num_filters, self.in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the linear map, and the filter to ones, which changes nothing."""
        self.lin.reset_parameters()
        torch.nn.init.ones_(self.filter)

    def forward(self, x: Tensor, data: Tensors) -> Tensor:
        """Filter a signal.

        Args:
            x: (N_j, in_channels) signal.
            data: `ChainData`, a batch of them, or a dict of their tensors.
        """
        chain = chains_of(data, self.num_levels)
        self._check(x, chain)
        levels = range(self.level, self.num_levels + 1)  # on level K a graph is one cluster
        rests = []
        for level in levels:
            x, rest = detail_part(x, chain, level)
            rests.append(rest)
        y = self.filter[-1] * x
        for level, rest in reversed(list(zip(levels, rests, strict=True))):
            y = synthesis(chain, y, level, skip=True, single=True)
            y = y + self.filter[level - self.level] * rest
        result: Tensor = self.lin(y)
        return result

    def _check(self, x: Tensor, chain: ChainTensors) -> None:
        check_signal(x, chain.size(self.level))
        check_columns(x, self.in_channels, "pass the number of columns as in_channels")
        if chain.num_levels > self.num_levels:
            raise HaarPoolError(
                f"data with a chain of {self.num_levels} levels",
                "one of more levels",
                "pass the num_levels of AddHaarChain to HaarConv",
            )

    def __repr__(self) -> str:
        bias = ", bias=False" * (self.lin.bias is None)
        return (
            f"HaarConv({self.in_channels}, {self.out_channels}, num_levels={self.num_levels}, "
            f"level={self.level}{bias})"
        )
