"""`Scale`: how networks see the targets: standardised, or in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Scale(NamedTuple):
    """The scale of T targets, by default their mean and standard deviation.

    A task that trains on targets of another form, such as their logarithms, has a subclass that
    overrides `of`, `standardize` and `restore`: `scale = LogScale`. Its tensors are saved with the
    model.

    Attributes:
        mean: (T,) mean of each target.
        std: (T,) standard deviation of each target, 1 for a constant target.

    Example:
        >>> scale = Scale.of(np.array([[2.0], [4.0], [np.nan]]))
        >>> scale.standardize(scale.mean + 2 * scale.std)
        tensor([2.])

        Logarithms:

        >>> class LogScale(Scale):
        ...     @classmethod
        ...     def of(cls, targets):
        ...         return super().of(np.log(targets))
        ...     def standardize(self, targets):
        ...         return super().standardize(targets.log())
        ...     def restore(self, output):
        ...         return super().restore(output).exp()
        >>> scale = LogScale.of(np.array([[1.0], [100.0]]))
        >>> scale.restore(0 * scale.mean).round()
        tensor([10.], dtype=torch.float64)
    """

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, targets: NDArray[Any]) -> Self:
        """Compute the scale of (n, T) targets; NaN is a missing value."""
        import torch

        std = np.nanstd(targets, axis=0)
        std[~(std > 0)] = 1.0
        mean = np.nanmean(targets, axis=0)
        return cls(*(torch.tensor(values, dtype=torch.float32) for values in (mean, std)))

    def to(self, device: torch.device) -> Self:
        """Return a copy on a device."""
        return type(self)(*(tensor.to(device) for tensor in self))

    def standardize(self, targets: Tensor) -> Tensor:
        """Return (n, T) targets as networks see them."""
        return (targets - self.mean) / self.std

    def restore(self, output: Tensor) -> Tensor:
        """Return (n, T) outputs of a network in the units of the targets."""
        return output.double() * self.std.double() + self.mean.double()
