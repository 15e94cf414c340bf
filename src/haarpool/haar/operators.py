"""The linear maps of haarpool as operators of torch: one definition each, its transpose beside it.

    analysis    U_jᵀ x, Φ_jᵀ x, P_jᵀ x or [P_j D_j]ᵀ x: up the chain
    synthesis   their transposes: down the chain
    gather_sum  weighted sums of rows, over neighbours or members

The backward pass of a map is its transpose, which can be differentiated again, to any order. All
maps gather and add in a fixed order, so they give the same bits each time, and nothing is read back
from the device.

There are two ways to the kernels. In eager mode an autograd Function is fastest, and the only way
with forward-mode derivatives. For `torch.compile` and `torch.export` the maps are operators of
`torch.library`, which Dynamo does not look into.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors, Steps, Tree
from haarpool.haar.kernels import _torch_internals as internals
from haarpool.haar.kernels.layout import first_members, level_size


def analysis(
    chain: ChainTensors, x: Tensor, level: int, *, skip: bool = False, single: bool = False
) -> Tensor:
    """Climb the chain from level j.

    Args:
        chain: The chains.
        x: (..., N_j, d) signal on level j.
        level: j.
        skip: Leave out the details of level j.
        single: Climb one step only.

    Returns:
        neither  U_jᵀ x, (..., N_j, d) coefficients, graph by graph
        skip     Φ_jᵀ x, (..., N_{j+1}, d) coefficients of level j+1
        single   [P_j D_j]ᵀ x, (..., N_j, d): first P_jᵀ x, then the details of level j
        both     P_jᵀ x, (..., N_{j+1}, d) signal on level j+1
    """
    return _linear("analysis", x, chain.steps(level, skip=skip, single=single))


def synthesis(
    chain: ChainTensors, c: Tensor, level: int, *, skip: bool = False, single: bool = False
) -> Tensor:
    """Descend the chain to level j: the transpose of `analysis` with the same arguments."""
    return _linear("synthesis", c, chain.steps(level, skip=skip, single=single))


class Rows(NamedTuple):
    """Lists of rows: list i has the rows row[start[i] : start[i + 1]].

    Attributes:
        row: (E,) rows, list by list.
        start: (n,) where each list starts, or None if every list has one row.
        weight: (E,) factor of each row, or None for 1.
    """

    row: Tensor
    start: Tensor | None = None
    weight: Tensor | None = None


def gather_sum(x: Tensor, rows: Rows, transposed: Rows) -> Tensor:
    """Sum weighted rows of a signal.

    Args:
        x: (N, d) signal.
        rows: Lists of rows of x; each row of the result is the sum over a list.
        transposed: The same for the transpose, which maps (n, d) to (N, d).

    Returns:
        (n, d) sums.
    """
    return _linear("gather_sum", x, (*rows, *transposed))


def sum_members(chain: ChainTensors, x: Tensor, level: int) -> Tensor:
    """Sum over the nodes of each cluster: (N_j, d) -> (N_{j+1}, d)."""
    tree = chain.trees[level]
    first = first_members(chain.start, chain.trees, level)
    return gather_sum(x, Rows(tree[Tree.MEMBER], first), Rows(tree[Tree.PARENT]))


def sum_graphs(chain: ChainTensors, x: Tensor, level: int) -> Tensor:
    """Sum over the nodes of each graph: (N_j, d) -> (G, d)."""
    graph = chain.trees[level][Tree.GRAPH]
    nodes = torch.arange(graph.shape[0], device=graph.device, dtype=graph.dtype)
    return gather_sum(x, Rows(nodes, chain.start[level]), Rows(graph))


# ---------------------------------------------------------------------- maps by name and arguments

Arguments = tuple[Any, ...]


def _transpose(name: str, arguments: Arguments) -> tuple[str, Arguments]:
    if name == "gather_sum":
        return name, (*arguments[3:], *arguments[:3])
    return {"analysis": "synthesis", "synthesis": "analysis"}[name], arguments


def _num_rows(name: str, arguments: Arguments) -> int:
    """Return the number of rows of the result."""
    if name == "gather_sum":
        index, start, *_ = arguments
        rows: int = index.shape[0] if start is None else start.shape[0]  # int() would fix it
        return rows
    start, trees, skip, *_ = arguments
    return level_size(start, trees, int(skip and name == "analysis"))


def _linear(name: str, x: Tensor, arguments: Arguments) -> Tensor:
    """Apply a map to (..., N, d), real or complex: the kernels see (N, columns)."""
    if x.is_complex():
        parts = (_linear(name, part, arguments) for part in (x.real, x.imag))
        return torch.complex(*parts)
    if x.ndim != 2:
        rows = x.movedim(-2, 0)
        result = _linear(name, rows.flatten(1), arguments)
        return result.reshape(result.shape[0], *rows.shape[1:]).movedim(0, -2)
    if torch.compiler.is_compiling():
        inside = internals.is_inside_jvp()
        if inside:  # operators have no tangent: it would be 0
            raise HaarPoolError(
                "forward-mode derivatives outside of torch.compile",
                "torch.func.jvp in compiled code",
                "use torch.func.vjp or grad, or do not compile this function",
            )
        if inside is not None:
            tensors = arguments[:4] if isinstance(arguments, Steps) else arguments
            compiled: Tensor = getattr(torch.ops.haarpool, name)(x, *tensors)
            return compiled
    return _apply(x, name, arguments)


def _run(name: str, x: Tensor, arguments: Arguments) -> Tensor:
    """Compute a map by the kernels of the device."""
    if x.numel() == 0:
        return x.new_zeros(_num_rows(name, arguments), x.shape[1])
    # torch.autograd.grad(..., is_grads_batched=True) has tensors that only torch can compute with.
    batched = internals.is_legacy_batched(x)
    kernels = _kernels("portable" if batched else x.device.type)
    work = x.float() if x.dtype in (torch.float16, torch.bfloat16) and not kernels.HALF else x
    result: Tensor
    if name == "gather_sum":
        result = kernels.gather_sum(work.contiguous(), *arguments[:3])
    else:
        steps = arguments if isinstance(arguments, Steps) else Steps._make((*arguments, {}))
        result = getattr(kernels, name)(work.contiguous(), steps)
    return result if work is x else result.to(x.dtype)


@cache
def _kernels(device: str) -> ModuleType:
    """Return the fastest kernels for a type of device; numba and triton may be missing."""
    try:
        return import_module(f"haarpool.haar.kernels.{device}")
    except ImportError:
        return import_module("haarpool.haar.kernels.portable")


def can_be_captured(device: str) -> bool:
    """Return whether the maps on a type of device can be captured in a CUDA graph."""
    return bool(_kernels(device).CAPTURABLE)


# ---------------------------------------------------------------------- eager mode


class _Linear(torch.autograd.Function):
    """The derivatives of a map, for two ways to apply it."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _apply(grad, *_transpose(ctx.name, ctx.arguments)), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return _apply(tangent, ctx.name, ctx.arguments)


class _Transformed(_Linear):
    """Inside of the transforms of `torch.func`."""

    @staticmethod
    def forward(x: Tensor, name: str, arguments: Arguments) -> Tensor:
        return _run(name, x, arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.name, ctx.arguments = inputs

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], x: Tensor, name: str, arguments: Arguments
    ) -> tuple[Tensor, int]:
        return _linear(name, x.movedim(in_dims[0], 0), arguments), 0


class _Plain(_Linear):
    """Outside: a `setup_context` lets torch inspect signatures, longer than some kernels take."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str, arguments: Arguments) -> Tensor:
        # The tensors of a chain are never changed, so they need no save_for_backward, which takes a
        # fifth of the time on small batches.
        ctx.name, ctx.arguments = name, arguments
        return _run(name, x, arguments)


_plain_apply = internals.plain_apply(_Plain)


@internals.traced_if_jvp_is_known
def _apply(x: Tensor, name: str, arguments: Arguments) -> Tensor:
    apply: Callable[..., Any] = _plain_apply
    if internals.transforms_may_be_active():
        apply = _Transformed.apply
    elif not (torch.is_grad_enabled() or internals.forward_mode_may_be_active()):
        return _run(name, x, arguments)  # in most backward passes
    result: Tensor = apply(x, name, arguments)
    return result


# ---------------------------------------------------------------------- torch.compile, torch.export

_SCHEMAS = {
    "analysis": "(Tensor x, Tensor start, Tensor[] trees, bool skip, bool single) -> Tensor",
    "synthesis": "(Tensor c, Tensor start, Tensor[] trees, bool skip, bool single) -> Tensor",
    "gather_sum": (
        "(Tensor x, Tensor row, Tensor? start, Tensor? weight, "
        "Tensor row_t, Tensor? start_t, Tensor? weight_t) -> Tensor"
    ),
}


def _register(name: str, schema: str) -> None:
    """Make a map an operator of torch, `torch.ops.haarpool.<name>`."""

    def run(x: Tensor, *arguments: Any) -> Tensor:
        return _run(name, x, arguments)

    def fake(x: Tensor, *arguments: Any) -> Tensor:
        return x.new_empty(_num_rows(name, arguments), x.shape[1])

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.arguments = inputs[1:]

    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        transpose, arguments = _transpose(name, ctx.arguments)
        result = getattr(torch.ops.haarpool, transpose)(grad.contiguous(), *arguments)
        none = ([None] * len(part) if isinstance(part, list) else None for part in arguments)
        return result, *none

    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, *arguments: Any) -> tuple[Tensor, int]:
        rows = x.movedim(in_dims[0], 1)
        result = getattr(torch.ops.haarpool, name)(rows.flatten(1), *arguments)
        return result.unflatten(1, rows.shape[1:]), 1

    operator = torch.library.custom_op(f"haarpool::{name}", run, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=setup_context)
    operator.register_vmap(vmap)


for _name, _schema in _SCHEMAS.items():
    _register(_name, _schema)
