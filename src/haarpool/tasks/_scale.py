"""`Scale`: mean and standard deviation of the targets; networks see standardised targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Scale(NamedTuple):
    """The scale of T targets.

    Attributes:
        mean: (T,) mean of each target.
        std: (T,) standard deviation of each target, 1 for a constant target.

    Example:
        >>> scale = Scale.of(np.array([[2.0], [4.0], [np.nan]]))
        >>> scale.standardize(scale.mean + 2 * scale.std)
        tensor([2.])
    """

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, targets: NDArray[Any]) -> Scale:
        """Compute the scale of (n, T) targets; NaN is a missing value."""
        import torch

        std = np.nanstd(targets, axis=0)
        std[~(std > 0)] = 1.0
        mean = np.nanmean(targets, axis=0)
        return cls(*(torch.tensor(values, dtype=torch.float32) for values in (mean, std)))

    def to(self, device: torch.device) -> Scale:
        """Return a copy on a device."""
        return Scale(self.mean.to(device), self.std.to(device))

    def standardize(self, targets: Tensor) -> Tensor:
        """Return (n, T) targets as networks see them."""
        return (targets - self.mean) / self.std

    def restore(self, output: Tensor) -> Tensor:
        """Return (n, T) outputs of a network in the units of the targets."""
        return output.double() * self.std.double() + self.mean.double()
