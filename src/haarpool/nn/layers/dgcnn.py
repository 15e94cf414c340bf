"""DGCNN: sorted nodes, and convolutions along their order."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import max_pool1d
from torch_geometric.nn.aggr import SortAggregation

from haarpool._validate import whole_number

CHANNELS = (16, 32)
WINDOW = 5


class SortConvolution(nn.Module):
    """Sort the nodes of each graph by their last column, and convolve along this order.

    Zhang, Cui, Neumann, Chen, "An End-to-End Deep Learning Architecture for Graph Classification",
    AAAI 2018: SortPooling keeps some nodes, a convolution maps each of them to 16 channels, a
    maximum halves their number, and a convolution over five of them gives 32 channels.

    Args:
        in_channels: Number of columns of x.
        sorted_nodes: Nodes of each graph that are kept, at least ten; smaller graphs are padded
            with zeros.

    Shapes:
        - **input:** x (N, in_channels), batch (N,)
        - **output:** (B, `out_channels`)

    Example:
        >>> SortConvolution(97, sorted_nodes=30).out_channels
        352
    """

    def __init__(self, in_channels: int, sorted_nodes: int = 30) -> None:
        super().__init__()
        sorted_nodes = whole_number("sorted_nodes", sorted_nodes, 2 * WINDOW)
        self.sort = SortAggregation(sorted_nodes)
        self.first = nn.Conv1d(in_channels, CHANNELS[0], 1)
        self.second = nn.Conv1d(*CHANNELS, WINDOW)
        self.out_channels = CHANNELS[1] * (sorted_nodes // 2 - WINDOW + 1)

    def reset_parameters(self) -> None:
        """Reset the weights."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x: Tensor, batch: Tensor, dim_size: int) -> Tensor:
        """Return one row for each of `dim_size` graphs; the batch vector is sorted."""
        nodes = self.sort(x, batch, dim_size=dim_size).view(dim_size, -1, x.shape[-1])
        hidden = max_pool1d(self.first(nodes.mT).relu(), 2)
        result: Tensor = self.second(hidden).relu().flatten(1)
        return result
