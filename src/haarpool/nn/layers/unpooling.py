"""`HaarUnpooling`, the transpose of `HaarPooling`."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from haarpool._types import Domain
from haarpool._validate import choice, whole_number
from haarpool.errors import HaarPoolError
from haarpool.haar.operators import synthesis
from haarpool.nn.inputs import Tensors, chains_of, check_signal


class HaarUnpooling(torch.nn.Module):
    """Map level j+1 back to level j: the transpose of `HaarPooling`.

        haar    x = Φ_j z + D_j d
        vertex  x = P_j z + D_j d

    With the details d of `HaarPooling(level, domain, details="full")` this restores x exactly.
    Without details it is the transpose of the pooling: the signal that is nearest to x among those
    without details. The energies of `details="energy"` cannot be used here.

    Args:
        level: Level j of the pooling.
        domain: Domain of the pooling.

    Shapes:
        - **input:** z (N_{j+1}, d); data, a `ChainData`, a batch of them, or a dict of their
          tensors; details (N_j - N_{j+1}, d) *(optional)*
        - **output:** (N_j, d); z and details may have S signals, (S, N_{j+1}, d)

    Example:
        >>> HaarUnpooling(level=0)
        HaarUnpooling(level=0, domain='haar')
    """

    def __init__(self, level: int, domain: Domain = "haar") -> None:
        super().__init__()
        self.level = whole_number("level", level, minimum=0)
        self.domain = choice("domain", domain, get_args(Domain))

    def reset_parameters(self) -> None:
        """Do nothing: the layer has no parameters."""

    def forward(self, z: Tensor, data: Tensors, details: Tensor | None = None) -> Tensor:
        """Return the signal on level j.

        Args:
            z: (N_{j+1}, d) pooled signal.
            data: `ChainData`, a batch of them, or a dict of their tensors.
            details: (N_j - N_{j+1}, d) details of `HaarPooling(..., details="full")`.
        """
        level, vertex = self.level, self.domain == "vertex"
        chain = chains_of(data, level + 1)
        size, coarse_size = chain.size(level), chain.size(level + 1)
        check_signal(z, coarse_size)
        if details is None:
            return synthesis(chain, z, level, skip=True, single=vertex)
        if details.shape != (*z.shape[:-2], size - coarse_size, z.shape[-1]):
            raise HaarPoolError(
                f"details of shape ({size - coarse_size}, {z.shape[-1]}), "
                "all coefficients of the level",
                f"shape {tuple(details.shape)}",
                'pool with details="full" on the same data',
            )
        z = z if vertex else synthesis(chain, z, level + 1)
        return synthesis(chain, torch.cat([z, details], dim=-2), level, single=True)

    def __repr__(self) -> str:
        return f"HaarUnpooling(level={self.level}, domain={self.domain!r})"
