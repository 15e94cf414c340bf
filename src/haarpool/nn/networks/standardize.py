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
    """Compute mean and std of modules, by the key of their input, from minibatches read once."""
    columns = {key: list(module.columns) for key, module in modules.items() if module.columns}
    if not columns:
        return
    from sklearn.preprocessing import StandardScaler  # imported late: it takes a second

    scalers = {key: StandardScaler() for key in columns}
    for batch in batches:
        for key, scaler in scalers.items():
            for rows in batch[key].flatten(0, -2).split(_ROWS):
                if len(rows):
                    scaler.partial_fit(rows[:, columns[key]].cpu().double().numpy())
    for key, scaler in scalers.items():
        if not hasattr(scaler, "mean_"):  # there are no edges
            continue
        mean, std = torch.from_numpy(scaler.mean_), torch.from_numpy(scaler.var_).sqrt()
        # A column that is constant up to rounding keeps its size.
        rounding = torch.finfo(torch.float32).eps * mean.abs()
        std = std.where(std > rounding, torch.ones_like(std))
        # In place: a captured step reads these tensors.
        module = modules[key]
        module.mean[columns[key]] = mean.to(module.mean)
        module.std[columns[key]] = std.to(module.std)
