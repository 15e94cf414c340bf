"""What tasks share about labels: names, missing ones, numbers in tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints

MISSING = -1  # class of a graph without label; a missing value is NaN
PARTS = ("training", "validation", "test")  # of a split, in this order


class Names(NamedTuple):
    """Names of what is predicted.

    Attributes:
        classes: (C,) Names of the classes.
        targets: (T,) Names of the targets.
    """

    classes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


NO_NAMES = Names()


def balanced(counts: Ints) -> Floats:
    """Return weights that give all classes that occur the same total, and a mean weight of 1.

    Args:
        counts: (classes, ...) number of graphs of each class.
    """
    present = (counts > 0).sum(axis=0)
    share = counts.sum(axis=0) / np.maximum(counts, 1) / np.maximum(present, 1)
    return np.where(counts > 0, share, 0.0)


def spread(values: NDArray[Any]) -> dict[str, Any]:
    """Return mean, smallest and largest value, None without values."""
    if not values.size:
        return {"mean": None, "min": None, "max": None}
    return {"mean": float(values.mean()), "min": values.min().item(), "max": values.max().item()}
