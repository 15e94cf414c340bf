"""All parameters of a chain as one value: the one home of their names, defaults and checks.

`build_chain`, `precompute` and `AddHaarChain` have the same parameters, and the shell makes its
arguments from the fields. Nothing heavy is imported at the top: the shell reads the help texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

from haarpool._validate import choice, real_number, seed, setting, whole_number
from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool._types import Measure, Order
    from haarpool.chains.clustering import ClusteringFunction, ClusteringMethod

MAX_LEVELS = 1000  # a level may repeat the one below it, but it still takes memory


@dataclass(frozen=True, repr=False)
class Recipe:
    """All parameters of a chain, checked; `build_chain` explains them.

    Attributes:
        options: Options of the method by name.
        clustering: The method with everything that is known about it.

    Example:
        >>> Recipe(num_levels=3, seed=1)
        Recipe(num_levels=3, seed=1)
        >>> Recipe(sizes=(8, 2), method="kmeans", options={"n_init": 3})
        Recipe(num_levels=2, method='kmeans', sizes=(8, 2), options={'n_init': 3})
    """

    num_levels: int | None = setting(None, "number of coarsening steps", metavar="K", type=int)
    ratio: float | tuple[float, ...] = setting(
        0.5, "share of the nodes kept per step", metavar="R[,R]"
    )
    top: int | None = setting(1, "size of the last level")
    method: str | ClusteringFunction = setting("spectral", "clustering method", metavar="NAME")
    seed: int = setting(0, "random seed of the clustering", metavar="N")
    sizes: tuple[int, ...] | Literal["paper"] | None = setting(
        None, "number of clusters per step, instead of a ratio", metavar="N,N|paper"
    )
    order: Order = setting("degree", "order of clusters and members", choices=("degree", "index"))
    measure: Measure = setting(
        "children", "weight of a node in its cluster", choices=("children", "mass")
    )
    symmetrize: bool = setting(False, "count an edge given in one direction in both")
    options: Mapping[str, Any] | None = field(default=None, hash=False)
    clustering: ClusteringMethod = field(init=False, compare=False)

    @classmethod
    def of(cls, first: Recipe | int | None, *others: Any) -> Recipe:
        """Return a ready recipe, or make one.

        Args:
            first: A recipe, or `num_levels`.
            *others: All other parameters, in the order of the attributes.
        """
        if not isinstance(first, Recipe):
            return cls(first, *others)
        given = zip(fields(cls)[1:-1], others, strict=True)
        if changed := [one.name for one, value in given if repr(value) != repr(one.default)]:
            raise HaarPoolError(
                "as a Recipe alone, or parameters one by one",
                f"a Recipe with {', '.join(changed)}",
                "pass all parameters to Recipe",
                parameter="num_levels",
            )
        return first

    def __post_init__(self) -> None:
        """Check all parameters."""
        from haarpool.chains.clustering import find_method

        def assign(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        options = self.options or {}
        if not isinstance(options, Mapping):
            raise HaarPoolError(
                "as a mapping",
                f"{options!r}",
                "pass for example {options}",
                parameter="options",
                options={"n_init": 3},
            )
        assign("options", dict(options) or None)
        assign("clustering", find_method(self.method, options))
        choice("symmetrize", self.symmetrize, (True, False))
        if self.top is not None and (type(self.top) is not int or self.top != 1):
            raise HaarPoolError(
                "1 (one node at the top) or None",
                f"{self.top!r}",
                "leave the size of the top to the ratio with {top}",
                parameter="top",
                top=None,
            )
        assign("seed", seed(self.seed))
        choice("order", self.order, ("index", "degree"))
        choice("measure", self.measure, ("children", "mass"))
        steps = self.num_levels
        if steps is not None:
            remedy = "leave it out to coarsen until one node is left"
            steps = whole_number("num_levels", steps, 1, MAX_LEVELS, remedy=remedy)
        if self.sizes is not None and not (isinstance(self.sizes, str) and self.sizes == "paper"):
            assign("sizes", _check_sizes(self.sizes))
        if not isinstance(self.ratio, Real):
            expected = "in (0, 1), or one per level"
            assign("ratio", _as_tuple("ratio", self.ratio, expected, 0.5))
        for name in ("sizes", "ratio"):
            if isinstance(values := getattr(self, name), tuple):
                if steps not in (None, len(values)):
                    expected, remedy = f"with {steps} values, one per level", "pass as many"
                    raise HaarPoolError(expected, f"{len(values)}", remedy, parameter=name)
                steps = len(values)
        for ratio in self.ratio if isinstance(self.ratio, tuple) else (self.ratio,):
            remedy = "pass for example {ratio}"
            real_number("ratio", ratio, 0, 1, includes_minimum=False, remedy=remedy, ratio=0.5)
        assign("num_levels", steps)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)[:-1]}
        return {name: value for name, (value, default) in values.items() if value != default}

    def cluster_key(self) -> dict[str, Any]:
        """Return the parameters that decide clusters, as plain data: what the cache key holds.

        `order`, `measure` and `symmetrize` are not among them: the first two do not change
        clusters, and the last one changes the graph, which is part of the key by itself.
        """
        names = ("num_levels", "ratio", "top", "sizes", "seed")
        options = sorted({**self.clustering.options, **(self.options or {})}.items())
        return {name: getattr(self, name) for name in names} | {
            "options": tuple(options),
            "method": self.clustering.name,
            "version": self.clustering.version,
        }

    @property
    def is_repeatable(self) -> bool:
        """True if another process can tell that it has the same recipe, so chains can be cached."""
        try:
            json.dumps(self.cluster_key())
        except (TypeError, ValueError):
            return False
        return self.clustering.version is not None

    def __repr__(self) -> str:
        return f"Recipe({show_arguments(self.parameters())})"


PARAMETERS = tuple(one.name for one in fields(Recipe) if one.init)


def with_options(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a recipe, given as in `config.json`: options stand beside the others.

    Example:
        >>> with_options({"method": "kmeans", "seed": 1, "n_init": 3})
        {'method': 'kmeans', 'seed': 1, 'options': {'n_init': 3}}
    """
    parameters = {name: value for name, value in data.items() if name in PARAMETERS}
    if options := {name: value for name, value in data.items() if name not in PARAMETERS}:
        parameters["options"] = {**(parameters.get("options") or {}), **options}
    return parameters


def show_arguments(arguments: dict[str, Any]) -> str:
    """Return arguments as they are written in a call."""
    return ", ".join(f"{name}={_show(value)}" for name, value in arguments.items())


def _show(value: Any) -> str:
    """Show a function by its name: its address differs in every process."""
    if isinstance(value, partial):
        arguments = {str(i): argument for i, argument in enumerate(value.args)} | value.keywords
        return f"partial({_show(value.func)}, {show_arguments(arguments)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_show(one)}' for name, one in value.items())}}}"
    if not callable(value):
        return repr(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _check_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    expected = '>= 1 that never grow, one per level, or "paper"'
    values = _as_tuple("sizes", sizes, expected, [16, 4, 1])
    valid = all(isinstance(size, Integral) and int(size) >= 1 for size in values)
    if not valid or any(b > a for a, b in pairwise(values)):
        got, remedy = f"{list(values)}", "pass for example {sizes}"
        raise HaarPoolError(expected, got, remedy, parameter="sizes", sizes=[16, 4, 1])
    return tuple(int(size) for size in values)


def _as_tuple(name: str, values: Any, expected: str, example: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not (items := tuple(values)):
        remedy, shown = f"pass for example {{{name}}}", {name: example}
        raise HaarPoolError(expected, f"{values!r}", remedy, parameter=name, **shown)
    return items
