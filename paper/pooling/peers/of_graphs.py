"""Whole-graph variants: a network with an output per node reads out graphs instead."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import dropout

from haarpool.nn.inputs import Tensors
from haarpool.nn.layers.global_readouts import MaxReadout, MeanReadout
from haarpool.nn.layers.state import LayerState


class OfGraphs(torch.nn.Module):
    """What turns a network with an output per node into one with an output per graph.

        output = W [mean_v x_v, max_v x_v]    of the nodes v of a graph, behind layer norm

    It stands before the network among the base classes, and replaces its linear layer.
    """

    dropout: float
    out_channels: int
    output: Linear

    def __init__(self, *arguments: Any, task: str = "classification", **settings: Any) -> None:
        super().__init__(*arguments, task=task, **settings)
        width = self.output.in_features
        self.mean, self.max = MeanReadout(width), MaxReadout(width)
        self.output = Linear(2 * width, self.out_channels)

    def _read_out(self, x: Tensor, graphs: LayerState, data: Tensors) -> Tensor:
        """Return (G, 1, out_channels) the outputs for x (N, 1, width), without the padding."""
        graphs = graphs._replace(x=x[:, 0])
        rows = torch.cat([self.mean(graphs, data), self.max(graphs, data)], 1)
        result: Tensor = self.output(dropout(rows, self.dropout, self.training))
        return result[:-1, None] if graphs.padded else result[:, None]
