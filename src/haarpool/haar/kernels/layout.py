"""Where the kernels read and write: shared by all of them.

`trees` and `start` begin at the level of the signal: `trees[0]` is the tree of its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from haarpool.haar.chain_tensors import Tree


def level_size(start: Tensor, trees: Sequence[Tensor], step: int) -> int:
    """Return the number of nodes after some steps; after the last step these are the graphs."""
    return trees[step].shape[1] if step < len(trees) else start.shape[1]


def first_members(start: Tensor, trees: Sequence[Tensor], step: int) -> Tensor:
    """Return for each cluster of a step the position of its first member in MEMBER."""
    return trees[step + 1][Tree.CHILD] if step + 1 < len(trees) else start[step]


def detail_base(start: Tensor, trees: Sequence[Tensor], skip: bool, single: bool) -> Tensor:
    """Return (G,) what DETAIL of a node is added to, which gives the row of its detail."""
    if skip or not single:
        return start[int(skip)]  # with both there are no details
    # All coarse rows come first: those of other graphs are added, those of the graph are in DETAIL.
    num_coarse = start.new_full((1,), level_size(start, trees, 1))
    return start[0] + num_coarse - torch.cat([start[1, 1:], num_coarse])
