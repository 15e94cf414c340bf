"""Jumping knowledge: the outputs of several convolutions side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from haarpool.nn.inputs import Tensors
from haarpool.nn.layers.state import LayerState
from haarpool.nn.strings.registry import layer


@layer("JK", kind="join", static=True)
class JumpingKnowledge(torch.nn.Module):
    """Outputs of the convolutions directly before it, joined.

    Xu, Li, Tian, Sonobe, Kawarabayashi, Jegelka, "Representation Learning on Graphs with Jumping
    Knowledge Networks", ICML 2018.
    """

    def __init__(self, convolutions: Iterable[torch.nn.Module]) -> None:
        super().__init__()
        self.convolutions: Any = torch.nn.ModuleList(convolutions)

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return all outputs side by side."""
        outputs = []
        for convolution in self.convolutions:
            state = convolution(state, data)
            outputs.append(state.x)
        return state._replace(x=torch.cat(outputs, -1))
