"""Checks of what a layer gets: the tensors of a batch and a signal on one of its levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from haarpool.data import ChainData
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import START, ChainTensors

Tensors = Mapping[str, Tensor]  # a ChainData, a batch of them, or a dict of their tensors


def tensors_of(data: Any) -> Tensors:
    """Return the tensors of a `ChainData`, a batch or a dict; anything else is an error."""
    if isinstance(data, ChainData):
        return data.tensors
    if not isinstance(data, dict | Data):
        raise HaarPoolError(
            "as a ChainData, a batch of them, or a dict of their tensors",
            type(data).__name__,
            "pass the batch of the DataLoader",
            parameter="data",
        )
    return data


def chains_of(data: Any, level: int) -> ChainTensors:
    """Return the chains of a batch, which must have this level."""
    if isinstance(data, ChainData) and not torch.compiler.is_compiling():
        chains = data.chain_tensors
        chains.check_level(level)
        return chains
    return ChainTensors(tensors_of(data), level)


def num_graphs(data: Tensors) -> int:
    """Return the number of graphs, if possible from a shape: the host does not wait."""
    if START in data:
        return data[START].shape[-1]
    if "ptr" in data:
        return data["ptr"].shape[0] - 1
    return int(data["batch"].max()) + 1 if "batch" in data else 1


def check_signal(x: Tensor | None, rows: int) -> None:
    """Raise an error unless x is a real signal of shape (rows, d), or S of them (S, rows, d)."""
    if x is None:
        raise missing_features()
    if x.ndim not in (2, 3) or x.shape[-2] != rows:
        raise HaarPoolError(
            f"a signal of shape ({rows}, d), one row per node of the level in all graphs",
            f"shape {tuple(x.shape)}",
            "check the level of the layer and that x and data belong to the same batch; "
            "apply AddHaarChain last, after transforms that change nodes",
        )
    if not x.is_floating_point():
        raise HaarPoolError("real features", f"dtype {x.dtype}", "convert them with x.float()")


def check_columns(x: Tensor, columns: int, remedy: str) -> None:
    """Raise an error unless x has the shape (N, columns), or (S, N, columns)."""
    if x.ndim not in (2, 3) or x.shape[-1] != columns:
        raise HaarPoolError(f"x with {columns} columns", f"shape {tuple(x.shape)}", remedy)


def missing_features() -> HaarPoolError:
    """Return the error for data whose x is `None`."""
    return HaarPoolError(
        "node features x",
        "none",
        "add T.OneHotDegree(max_degree) or T.Constant() of torch_geometric.transforms, "
        "before AddHaarChain",
    )


def widened(x: Tensor) -> Tensor:
    """Return x in the type in which sums are computed: float32 for bfloat16 and float16."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
