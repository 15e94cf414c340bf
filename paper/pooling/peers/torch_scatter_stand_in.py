"""What torch-geometric-pool needs of torch_scatter, which has no wheel for current torch.

As there, results go into `out` if it is given: a row of `out` that no index names keeps its value,
which takes part in a maximum or minimum. Without `out` such rows are 0, and 1 in a product.
Positions of maxima and minima are not computed.
"""

from __future__ import annotations

from torch import Tensor
from torch_geometric.utils import scatter


def scatter_add(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> Tensor:
    """Return the sums."""
    return _reduce(src, index, dim, out, dim_size, "sum", "sum")


def scatter_mul(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> Tensor:
    """Return the products."""
    return _reduce(src, index, dim, out, dim_size, "mul", "prod")


def scatter_max(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> tuple[Tensor, None]:
    """Return the maxima, without their positions."""
    return _reduce(src, index, dim, out, dim_size, "max", "amax"), None


def scatter_min(
    src: Tensor,
    index: Tensor,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
) -> tuple[Tensor, None]:
    """Return the minima, without their positions."""
    return _reduce(src, index, dim, out, dim_size, "min", "amin"), None


def _reduce(
    src: Tensor,
    index: Tensor,
    dim: int,
    out: Tensor | None,
    dim_size: int | None,
    reduce: str,
    in_place: str,
) -> Tensor:
    if out is None:
        result: Tensor = scatter(src, index, dim, dim_size, reduce)
        return result
    dim = dim % src.ndim
    shape = [1] * src.ndim
    shape[dim] = -1
    index = index.view(shape).expand_as(src) if index.ndim == 1 else index
    return out.scatter_reduce_(dim, index, src, in_place, include_self=True)
