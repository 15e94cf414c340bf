"""`Standardize`: real columns of the input with mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from haarpool._validate import whole_number

_ROWS = 2**16  # rows that are converted to float64 at a time


class Standardize(torch.nn.Module):
    """Standardise some columns: (x - mean) / std, with mean and std of the training data.

    `fit_standardize` computes mean and std; before, they are 0 and 1. They are buffers, so they are
    part of the state dict. Without columns the module is the identity and has no buffers.

    Args:
        channels: Number of columns of the input.
        columns: Numbers of the columns to standardise; the others, such as one-hot columns, stay
            unchanged.

    Shapes:
        - **input:** (N, channels)
        - **output:** (N, channels)

    Example:
        >>> standardize = Standardize(2, columns=[1])
        >>> x = torch.tensor([[1.0, 10.0], [0.0, 30.0]])
        >>> fit_standardize({"x": standardize}, [{"x": x}])
        >>> standardize(x)
        tensor([[ 1., -1.],
                [ 0.,  1.]])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, channels: int, columns: Sequence[int] = ()) -> None:
        super().__init__()
        self.channels = channels
        self.columns = tuple(whole_number("standardize", c, 0, channels - 1) for c in columns)
        if self.columns:
            self.register_buffer("mean", torch.zeros(channels))
            self.register_buffer("std", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Standardise the columns."""
        return (x - self.mean) / self.std if self.columns else x

    def extra_repr(self) -> str:
        """Return the number of columns, for `print(model)`."""
        return f"{len(self.columns)} of {self.channels} columns"


@torch.no_grad()
def fit_standardize(modules: Mapping[str, Standardize], batches: Iterable[Any]) -> None:
    """Compute mean and std of modules from training data, which is read once.

    Args:
        modules: Modules by the key of their input: "x", "edge_attr".
        batches: Minibatches of the training data: a PyG `DataLoader`, or dicts of tensors. They are
            read only if there are columns to standardise.
    """
    moments = {key: _Moments(len(one.columns)) for key, one in modules.items() if one.columns}
    if not moments:
        return
    for batch in batches:
        for key, moment in moments.items():
            for rows in batch[key].split(_ROWS):
                moment.add(rows[:, list(modules[key].columns)])
    for key, moment in moments.items():
        columns = list(modules[key].columns)
        # In place: a captured step reads these tensors.
        modules[key].mean[columns] = moment.mean.to(modules[key].mean)
        modules[key].std[columns] = moment.std.to(modules[key].std)


class _Moments:
    """Mean and sum of squared deviations of the rows so far, in float64 on the CPU.

    Parts are combined by the formula of Chan, Golub and LeVeque (1979), which loses no digits where
    the mean is large.
    """

    def __init__(self, width: int) -> None:
        self.count = 0
        self.mean = torch.zeros(width, dtype=torch.float64)
        self._squares = torch.zeros(width, dtype=torch.float64)

    def add(self, rows: Tensor) -> None:
        """Add (n, width) rows."""
        if not len(rows):
            return
        rows = rows.cpu().double()
        mean, total = rows.mean(0), self.count + len(rows)
        shift = mean - self.mean
        self._squares += (rows - mean).square_().sum(0)
        self._squares += shift.square() * (self.count * len(rows) / total)
        self.mean += shift * (len(rows) / total)
        self.count = total

    @property
    def std(self) -> Tensor:
        """(width,) standard deviations, 1 for a column that is constant up to rounding."""
        std = (self._squares / max(self.count, 1)).sqrt()
        rounding = torch.finfo(torch.float32).eps * self.mean.abs()
        return std.where(std > rounding, torch.ones_like(std))
