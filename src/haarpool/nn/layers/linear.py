"""The linear layers of architecture strings."""

from __future__ import annotations

import torch

from haarpool.nn.strings.registry import layer


@layer("FC", kind="linear", static=True, options=())
class LinearLayer(torch.nn.Linear):
    """Linear layer, named by its input width."""
