"""Checks of the arguments of a transform: a chain or a plan, and a tensor or an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool.chains.chain import Chain
from haarpool.chains.chain_checks import checked_level
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors, TensorDict

Signal = TypeVar("Signal", Tensor, NDArray[Any])

# The tensors of chains that are in use, by device; equal chains share them.
_known: WeakKeyDictionary[Chain, dict[torch.device, ChainTensors]] = WeakKeyDictionary()


def tensors_of(chain: Chain | ChainTensors, device: torch.device) -> ChainTensors:
    """Return the tensors on a device; those of a chain are built once, and die with it."""
    if isinstance(chain, ChainTensors):
        if chain.device != device:
            raise HaarPoolError(
                f"a signal on {chain.device}, like the plan",
                f"a signal on {device}",
                f"move the signal or the plan, for example with plan.to({str(device)!r})",
            )
        return chain
    if not isinstance(chain, Chain):
        raise HaarPoolError(
            "as a Chain or a TransformPlan",
            f"{type(chain).__name__}",
            "build one with build_chain, Chain.from_parents or TransformPlan.from_chains",
            parameter="chain",
        )
    if torch.compiler.is_compiling():
        return ChainTensors(_tensors_as_constants(chain, device))
    return _keep_tensors(chain, device)


def _keep_tensors(chain: Chain, device: torch.device) -> ChainTensors:
    known = _known.setdefault(chain, {})
    if device not in known:
        with torch.inference_mode(False):  # tensors of that mode could not be used outside of it
            known[device] = ChainTensors.from_chains([chain], device)
    return known[device]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _tensors_as_constants(chain: Chain, device: torch.device) -> TensorDict:
    """Return the tensors for compiled code, since Dynamo cannot follow weak references."""
    return dict(_keep_tensors(chain, device).tensors)


def as_rows(
    chain: Chain | ChainTensors, x: Signal
) -> tuple[ChainTensors, Tensor, Callable[[Tensor], Signal]]:
    """Check a signal and convert it to rows.

    Args:
        chain: A chain, or the tensors of many chains.
        x: (N,), (N, d) or (..., N, d) signal.

    Returns:
        The tensors of the chains, the signal as a tensor (..., N, d), and a function that converts
        such a tensor back to the type and number of dimensions of `x`.
    """
    if not isinstance(x, Tensor | np.ndarray):
        raise HaarPoolError(
            "a torch tensor or a numpy array",
            f"{type(x).__name__}",
            "convert, for example with np.asarray(x, float)",
        )
    remedy = "convert, for example to float32 with .to_dense().float()"
    if isinstance(x, np.ndarray):
        usable, remedy = x.dtype.kind in "fc", "convert, for example with .astype(float)"
    else:
        usable = (x.is_floating_point() or x.is_complex()) and x.dtype.itemsize > 1
        usable = usable and x.layout is torch.strided and not x.is_nested
    if not usable:
        raise HaarPoolError(
            "a dense array of floating point or complex values",
            f"dtype {x.dtype}" + (f", {x.layout}" if isinstance(x, Tensor) else ""),
            remedy,
        )
    if x.ndim == 0:
        raise HaarPoolError(
            "a signal (N,), (N, d) or (..., N, d)", "a scalar", "pass one row per node"
        )
    tensor = x if isinstance(x, Tensor) else _from_numpy(x)
    flat = tensor.ndim == 1

    def back(result: Tensor) -> Signal:
        result = result.squeeze(-1) if flat else result
        return result if isinstance(x, Tensor) else result.numpy()

    return tensors_of(chain, tensor.device), tensor.unsqueeze(-1) if flat else tensor, back


def _from_numpy(x: NDArray[Any]) -> Tensor:
    native = x.dtype.newbyteorder("=")
    try:
        # No copy if torch can use the memory of the array.
        return torch.from_numpy(np.require(x, native, ["C", "W"]))
    except TypeError as error:
        raise HaarPoolError(
            "a dtype that torch supports", f"dtype {x.dtype}", "convert, for example to float64"
        ) from error


def checked_rows(chain: ChainTensors, rows: Tensor, level: int, above: int) -> int:
    """Check that a signal (..., N, d) has one row per node of `level + above`; return `level`."""
    level = checked_level(level, chain.num_levels, repr(chain))
    expected = chain.sizes[level + above]
    if rows.shape[-2] != expected:
        raise HaarPoolError(
            f"{expected} rows, one per node of level {level + above} of {chain!r}",
            f"{rows.shape[-2]}",
            "check {level} and that chain and signal belong to the same graph",
            level=...,
        )
    return level
