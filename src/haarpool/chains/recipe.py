"""All parameters of a chain as one value: the one home of their names, defaults and checks.

`build_chain`, `precompute`, `AddHaarChain`, `RunConfig` and the shell command take the parameters
from here. Nothing heavy is imported at the top: the shell reads the fields for its help text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from inspect import Parameter, signature
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from haarpool._validate import choice, real_number, seed, setting, whole_number
from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool._types import Measure, Order
    from haarpool.chains.clustering import Clustering, Method

MAX_LEVELS = 1000  # a level may repeat the one below it, but it still takes memory

Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class Recipe:
    """All parameters of a chain, checked.

    Each step of a chain clusters the N_j nodes of a level into floor(ratio · N_j) clusters, at
    least one.

    Attributes:
        num_levels: Number of steps K >= 1. `None` takes as many as the ratio needs to reach one
            node.
        ratio: Share of the nodes that a step keeps, in (0, 1); one number, or one per level.
        top: 1 makes the last step merge all remaining nodes, `None` leaves it to the ratio.
        method: Clustering method: a name from `clusterings()`, or a function (see `register`).
        seed: Seed of methods that use random numbers.
        sizes: Number of clusters of every step, instead of `ratio` and `top`. "paper" takes
            floor(N_j / 2) + 1, as the authors' code does, and one cluster once N_j <= 2.
        order: Order of clusters and of their members: "degree" (descending weighted degree without
            self-loops, ties by index) or "index".
        measure: Weight of a member in its cluster: "children" (all members count the same, as in
            the paper) or "mass" (by the number of level-0 nodes below it).
        symmetrize: Make an asymmetric adjacency matrix symmetric, see `as_adjacency`.
        options: Options of the method as sorted pairs (name, value).
        clustering: The method with everything that is known about it.

    Example:
        >>> Recipe.of(num_levels=3, seed=1)
        Recipe(num_levels=3, seed=1)
        >>> Recipe.of(sizes=[8, 2], method="kmeans", n_init=3)
        Recipe(num_levels=2, method='kmeans', sizes=(8, 2), n_init=3)
    """

    num_levels: int | None = setting(
        None, "number of coarsening steps", flag="levels", metavar="K", type=int
    )
    ratio: float | tuple[float, ...] = setting(
        0.5, "share of the nodes kept per step", metavar="R[,R]"
    )
    top: int | None = setting(1, "size of the last level")
    method: str | Clustering = setting(
        "spectral", "clustering method, see `haarpool methods`", metavar="NAME"
    )
    seed: int = setting(0, "random seed of the clustering", metavar="N")
    sizes: tuple[int, ...] | Literal["paper"] | None = setting(
        None, "number of clusters per step, instead of a ratio", metavar="N,N|paper"
    )
    order: Order = setting("degree", "order of clusters and members", choices=("degree", "index"))
    measure: Measure = setting(
        "children", "weight of a node in its cluster", choices=("children", "mass")
    )
    symmetrize: bool = setting(False, "count an edge given in one direction in both")
    options: tuple[tuple[str, Any], ...] = ()
    clustering: Method = field(init=False, compare=False)

    @classmethod
    def of(cls, *values: Any, **parameters: Any) -> Recipe:
        """Make a recipe from the parameters of `build_chain`.

        Args:
            *values: Parameters by position, in the order of the attributes.
            **parameters: Parameters by name. Names that are no attributes are options of the
                method.
        """
        if values and isinstance(values[0], Recipe):
            if len(values) > 1 or parameters:
                raise HaarPoolError(
                    "a Recipe alone, or parameters one by one",
                    f"a Recipe with {', '.join(parameters) or 'other values'}",
                    "pass all parameters to Recipe.of",
                )
            return values[0]
        known = {name: parameters.pop(name) for name in PARAMETERS if name in parameters}
        known["options"] = tuple(sorted(parameters.items()))
        return cls(*values, **known)

    def __post_init__(self) -> None:
        """Check all parameters."""
        from haarpool.chains.clustering import find_method

        def assign(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        assign("clustering", find_method(self.method, dict(self.options)))
        choice("symmetrize", self.symmetrize, (True, False))
        if self.top is not None and (type(self.top) is not int or self.top != 1):
            raise HaarPoolError(
                "top=1 (one node at the top) or top=None",
                f"top={self.top!r}",
                "leave the size of the top to the ratio with top=None",
            )
        assign("seed", seed(self.seed))
        choice("order", self.order, ("index", "degree"))
        choice("measure", self.measure, ("children", "mass"))
        steps = self.num_levels
        if steps is not None:
            remedy = "leave it out to coarsen until one node is left"
            steps = whole_number("num_levels", steps, 1, MAX_LEVELS, remedy=remedy)
        if not (self.sizes is None or (isinstance(self.sizes, str) and self.sizes == "paper")):
            sizes = _check_sizes(self.sizes)
            assign("sizes", sizes)
            steps = _same_steps(steps, len(sizes), "sizes")
        if not isinstance(self.ratio, Real):
            ratios = _as_tuple(self.ratio, "a ratio in (0, 1), or one per level", "0.5")
            assign("ratio", ratios)
            steps = _same_steps(steps, len(ratios), "ratio")
        for ratio in self.ratio if isinstance(self.ratio, tuple) else (self.ratio,):
            remedy = "pass for example ratio=0.5"
            real_number("ratio", ratio, 0, 1, includes_minimum=False, remedy=remedy)
        assign("num_levels", steps)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, as `Recipe.of` takes them."""
        defaults = {one.name: one.default for one in fields(self)}
        values = {name: getattr(self, name) for name in PARAMETERS}
        return {k: v for k, v in values.items() if v != defaults[k]} | dict(self.options)

    def cluster_key(self) -> dict[str, Any]:
        """Return the parameters that decide clusters, as plain data: what the cache key holds.

        `order`, `measure` and `symmetrize` are not among them: the first two do not change
        clusters, and the last one changes the graph, which is part of the key by itself.
        """
        names = ("num_levels", "ratio", "top", "sizes", "seed")
        options = sorted((self.clustering.options | dict(self.options)).items())
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


PARAMETERS = tuple(one.name for one in fields(Recipe) if one.name not in ("options", "clustering"))


def takes_recipe(function: Callable[..., Result]) -> Callable[..., Result]:
    """Let a function `f(graph, recipe, *, ...)` take the parameters of the recipe one by one.

    The decorated function takes `(graph, num_levels, ratio, ..., *, ..., **options)`, or a `Recipe`
    in the place of all of them.
    """
    graph, _, *keywords = signature(function).parameters.values()
    names = {keyword.name for keyword in keywords}

    @wraps(function)
    def with_parameters(*values: Any, **parameters: Any) -> Result:
        others = {name: parameters.pop(name) for name in names & parameters.keys()}
        if graph.name in parameters:
            values = (parameters.pop(graph.name), *values)
        if not values:
            raise TypeError(f"{function.__name__}() misses its argument {graph.name!r}")
        if "recipe" in parameters:
            values = (*values, parameters.pop("recipe"))
        return function(values[0], Recipe.of(*values[1:], **parameters), **others)

    kind = Parameter.POSITIONAL_OR_KEYWORD
    recipe = [
        Parameter(one.name, kind, default=one.default, annotation=one.type)
        for one in fields(Recipe)
        if one.name in PARAMETERS
    ]
    options = Parameter("options", Parameter.VAR_KEYWORD)
    with_parameters.__signature__ = signature(function).replace(  # type: ignore[attr-defined]
        parameters=[graph, *recipe, *keywords, options]
    )
    return with_parameters


def show_arguments(arguments: dict[str, Any]) -> str:
    """Return arguments as they are written in a call."""
    return ", ".join(f"{name}={_show(value)}" for name, value in arguments.items())


def _show(value: Any) -> str:
    """Show a function by its name: its address differs in every process."""
    if isinstance(value, partial):
        arguments = {str(i): argument for i, argument in enumerate(value.args)} | value.keywords
        return f"partial({_show(value.func)}, {show_arguments(arguments)})"
    if not callable(value):
        return repr(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _same_steps(steps: int | None, given: int, name: str) -> int:
    if steps not in (None, given):
        raise HaarPoolError(
            f"{steps} values for {name}=, one per level", f"{given}", "pass one value per level"
        )
    return given


def _check_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    expected = 'sizes >= 1 that never grow, one per level, or "paper"'
    values = _as_tuple(sizes, expected, "[16, 4, 1]", name="sizes")
    valid = all(isinstance(size, Integral) and int(size) >= 1 for size in values)
    if not valid or any(b > a for a, b in pairwise(values)):
        raise HaarPoolError(expected, f"{list(values)}", "pass for example sizes=[16, 4, 1]")
    return tuple(int(size) for size in values)


def _as_tuple(values: Any, expected: str, example: str, name: str = "ratio") -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not (items := tuple(values)):
        raise HaarPoolError(expected, f"{values!r}", f"pass for example {name}={example}")
    return items
