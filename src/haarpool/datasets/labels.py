"""Labels of graphs: numbers out of texts, classes out of numbers, values that fit a network."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite

import numpy as np

from haarpool._types import Ints
from haarpool.datasets.graphs import MISSING, Graphs
from haarpool.errors import HaarPoolError

Number = int | float

LARGEST = float(np.finfo(np.float32).max)  # networks calculate in float32


def as_number(text: str) -> Number | None:
    """The number that a text holds, a whole one with all its digits; None if it holds none.

    >>> as_number(" 4611686018427387905"), as_number("1e3"), as_number("nan"), as_number("1_5")
    (4611686018427387905, 1000.0, nan, None)
    """
    if "_" in text:  # which Python allows in numbers
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    if isfinite(number):
        with suppress(ValueError):
            return int(text)
    return number


def as_classes(values: Sequence[Number | None]) -> tuple[Ints, tuple[str, ...]]:
    """(G,) numbers of classes, and the names of the classes by size; None and NaN are missing.

    >>> as_classes([10, 9, 1.0, None, 1])
    (array([ 2,  1,  0, -1,  0]), ('1', '9', '10'))
    """
    known = sorted({value for value in values if value is not None and value == value})
    place = {value: c for c, value in enumerate(known)}
    numbers = [place.get(value, MISSING) if value is not None else MISSING for value in values]
    # Every digit counts: shorter names could be the same for two classes.
    names = tuple(str(int(value)) if value % 1 == 0 else str(value) for value in known)
    return np.array(numbers, np.int64), names


def check_targets(graphs: Graphs) -> Graphs:
    """The graphs, whose values must fit float32; a missing one is NaN."""
    if graphs.task == "regression" and graphs.targets is not None:
        for g, t in np.argwhere(np.abs(graphs.targets) > LARGEST)[:1].tolist():
            raise HaarPoolError(
                f"values of at most {LARGEST:.2g}, which float32 holds",
                f"{graphs.targets[g, t]:g} as {graphs.target_names[t]!r} of {graphs.where(g)}",
                "take another unit, or leave it empty",
            )
    return graphs
