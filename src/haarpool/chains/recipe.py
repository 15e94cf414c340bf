"""How to build a chain: all parameters of `build_chain`, checked once."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from haarpool._types import Ints
from haarpool.chains.clustering import Clustering, Method, find_method
from haarpool.errors import HaarPoolError

MAX_LEVELS = 1000  # each may only repeat the one below, but it takes memory
Ratio = float | Iterable[float]
Sizes = Iterable[int] | Literal["paper"] | None


@dataclass(frozen=True)
class Recipe:
    """A checked set of parameters; see `build_chain`. Make one with `Recipe.of`."""

    num_levels: int | None
    ratio: float | tuple[float, ...]
    top: int | None
    sizes: tuple[int, ...] | Literal["paper"] | None
    method: Method
    seed: int
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        num_levels: int | None = None,
        ratio: Ratio = 0.5,
        top: int | None = 1,
        method: str | Clustering = "spectral",
        seed: int = 0,
        sizes: Sizes = None,
        **options: Any,
    ) -> Recipe:
        """Check the parameters of `build_chain`."""
        found = find_method(method, options)
        if top not in (1, None):
            raise HaarPoolError(
                "top=1 (one node at the top) or top=None",
                f"top={top!r}",
                "leave the size of the top to the ratio with top=None",
            )
        if not (isinstance(seed, Integral) and 0 <= seed < 2**31):
            raise HaarPoolError("a seed in 0..2**31-1", f"{seed!r}", "pass for example seed=0")
        steps = _checked_steps(num_levels)
        if sizes is not None and sizes != "paper":
            sizes = _checked_sizes(sizes)
            steps = _same_steps(steps, len(sizes), "sizes")
        if not isinstance(ratio, Real):
            ratio = _tuple(ratio, "a ratio in (0, 1), or one per level", "pass ratio=0.5")
            steps = _same_steps(steps, len(ratio), "ratio")
        for one in ratio if isinstance(ratio, tuple) else (ratio,):
            if not (isinstance(one, Real) and 0 < one < 1):
                raise HaarPoolError("a ratio in (0, 1)", f"{one!r}", "pass for example ratio=0.5")
        every = tuple(sorted((found.options | options).items()))
        return cls(steps, ratio, top, sizes, found, int(seed), every)

    def targets(self, level: int, sizes: Ints) -> Ints:
        """How many clusters to make of graphs with these sizes at a level."""
        if isinstance(self.sizes, tuple):
            return np.minimum(self.sizes[level], sizes)
        if self.top == 1 and self.num_levels == level + 1:
            return np.ones_like(sizes)
        if self.sizes == "paper":
            return np.where(sizes <= 2, 1, sizes // 2 + 1)
        ratio = self.ratio[level] if isinstance(self.ratio, tuple) else self.ratio
        # The small number keeps 0.29 · 100 from being 28.
        return np.maximum(1, (ratio * sizes + 1e-9).astype(np.int64))

    @property
    def is_repeatable(self) -> bool:
        """Whether another run could tell that it has the same recipe."""
        try:
            json.dumps(self.describe())
        except (TypeError, ValueError):
            return False
        return self.method.version is not None

    def describe(self) -> dict[str, Any]:
        """All parameters by name, the method by name and code version."""
        names = ("num_levels", "ratio", "top", "sizes", "seed", "options")
        own = {name: getattr(self, name) for name in names}
        return own | {"method": self.method.name, "version": self.method.version}


def _checked_steps(num_levels: int | None) -> int | None:
    if num_levels is None:
        return None
    try:
        steps = operator.index(num_levels)
    except TypeError:
        steps = 0
    if not 1 <= steps <= MAX_LEVELS:
        raise HaarPoolError(
            f"num_levels >= 1 (and <= {MAX_LEVELS}), or None to go on to one node",
            f"{num_levels!r}",
            "count the poolings of your network",
        )
    return steps


def _same_steps(steps: int | None, given: int, name: str) -> int:
    if steps not in (None, given):
        raise HaarPoolError(
            f"{name} for {steps} levels", f"{given}", f"leave num_levels out, or give {steps}"
        )
    return given


def _checked_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    expected = 'sizes >= 1 that never grow, one per level, or "paper"'
    values = _tuple(sizes, expected, "pass for example sizes=[16, 4, 1]")
    whole = all(isinstance(size, Integral) and int(size) >= 1 for size in values)
    if not whole or any(b > a for a, b in pairwise(values)):
        raise HaarPoolError(expected, f"{list(values)}", "pass for example sizes=[16, 4, 1]")
    return tuple(int(size) for size in values)


def _tuple(values: Any, expected: str, remedy: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not (found := tuple(values)):
        raise HaarPoolError(expected, f"{values!r}", remedy)
    return found
