"""Clustering methods by name: `@register` adds one, `find_method` returns it with its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from haarpool._modules import load_entry_points
from haarpool._text import shorten
from haarpool._types import Ints
from haarpool._validate import Option, choice, make_options, similar
from haarpool.errors import HaarPoolError

ENTRY_POINTS = "haarpool.clusterings"

ClusteringFunction = Callable[..., ArrayLike]
Limits = Mapping[str, tuple[Any, ...]]
Function = TypeVar("Function", bound=ClusteringFunction)


@dataclass(frozen=True)
class ClusteringMethod:
    """A clustering with its name and version.

    Attributes:
        name: Name for `build_chain(method=...)`.
        function: `f(adjacency, num_clusters, *, seed, ...)`, where `adjacency` is a checked (N, N)
            CSR array (symmetric, weights > 0, with self-loops) and 1 < num_clusters < N. It returns
            N cluster ids. Ids may have gaps; a node with id -1 is noise and becomes a cluster of
            one node. Other parameters are options; a parameter `features` gets the node features,
            (N, d) or `None`.
        version: Version of its code. Cached chains of another version are not used.
        batched: The same for all graphs of a batch, if that is faster:
            `f(batch, num_clusters, *, seed, ...)`; ids of a graph count from its first node.
        limits: Smallest and largest values of options, see `register`.
    """

    name: str
    function: ClusteringFunction
    version: str | None = None
    batched: Callable[..., Ints] | None = None
    limits: Limits = field(default_factory=dict, hash=False)

    @property
    def summary(self) -> str:
        """The first line of its docstring, without the period."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0].removesuffix(".")

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """Its parameters after the first two, with their defaults."""
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):  # some functions of C extensions
            return {}
        named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return {p.name: p.default for p in parameters[2:] if p.kind in named}

    @property
    def options(self) -> dict[str, Any]:
        """Parameters that a user may set, other than seed and features, with their defaults."""
        return {k: v for k, v in self.keywords.items() if k not in ("seed", "features")}

    @property
    def takes_features(self) -> bool:
        """Whether it uses node features."""
        return "features" in self.keywords

    def check_option(self, option: str, value: Any) -> None:
        """Raise an error unless a value has the type of the option and is within its limits."""
        known = Option(self.options[option], self.limits.get(option, ()))
        known.check(f"options.{option}", value)


_METHODS: dict[str, ClusteringMethod] = {}


def register(
    name: str,
    *,
    version: str | None = None,
    batched: Callable[..., Ints] | None = None,
    limits: Limits | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that registers a clustering.

    Args:
        name: Name for `build_chain(method=name)`.
        version: Version of its code; change it with the code. Chains are cached only for methods
            with a version, and a cached chain is used only for the same version.
        batched: The same for all graphs of a batch, if that is faster, see `ClusteringMethod`.
        limits: Smallest and largest values of options, `None` for no largest one; those of a real
            number are excluded, unless one is the default. The choices of a text.

    Example:
        >>> @register("halves", version="1")
        ... def halves(adjacency, num_clusters, *, seed):
        ...     '''First half, second half.'''
        ...     return np.arange(adjacency.shape[0]) // (adjacency.shape[0] / 2)
        >>> clusterings()["halves"]
        'First half, second half'
        >>> del _METHODS["halves"]
    """

    def add(function: Function) -> Function:
        if not callable(function):
            raise HaarPoolError(
                "a function", f"{function!r}", "put @register(...) above a function"
            )
        known = _METHODS.get(name)
        if known and known.function.__module__ != function.__module__:
            raise HaarPoolError(
                "an unused name for a clustering", f"{name!r}", "choose another name"
            )
        method = ClusteringMethod(name, function, version, batched, limits or {})
        _check_defaults(method)
        _METHODS[name] = method
        return function

    return add


def _check_defaults(method: ClusteringMethod) -> None:
    """Raise an error if an option has no default, or limits belong to no option."""
    function = getattr(method.function, "__qualname__", method.name)
    for option, default in method.options.items():
        if default is inspect.Parameter.empty:
            raise HaarPoolError(
                f"a default of the option {option!r} of {function}",
                "none",
                f"write for example {option}=1 in its parameters",
            )
    make_options(function, method.options, method.limits)


def clusterings() -> dict[str, str]:
    """Return all registered methods, each with a summary.

    Example:
        >>> clusterings()["matching"]
        'Heavy-edge matching in linear time, for graphs of any size'
    """
    load_entry_points(ENTRY_POINTS)
    return {name: method.summary for name, method in sorted(_METHODS.items())}


def find_method(method: str | ClusteringFunction, options: Mapping[str, Any]) -> ClusteringMethod:
    """Return a method, given as a registered name or a function, and check its options."""
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        registered = (known for known in _METHODS.values() if known.function is method)
        result = next(registered, ClusteringMethod(name, method))
    else:
        if isinstance(method, str) and method not in _METHODS:
            load_entry_points(ENTRY_POINTS)
        remedy = "choose one of these, or add your own with `register`"
        result = _METHODS[choice("method", method, sorted(_METHODS), remedy=remedy)]
    if "seed" not in result.keywords:
        raise HaarPoolError(
            "as a function f(adjacency, num_clusters, *, seed)",
            f"{result.name}, which takes no seed",
            "add the parameter; options come after it",
            parameter="method",
        )
    for name, value in options.items():
        if name not in result.options:
            close = similar(name, [*result.options])
            raise HaarPoolError(
                f"for method {result.name!r} ({shorten([*result.options]) or 'it has none'}), "
                "or parameters of a chain",
                f"{name}={value!r}",
                f"did you mean {close}?" if close else "check the spelling",
                parameter="options",
            )
        result.check_option(name, value)
    for name, default in result.options.items():
        if default is inspect.Parameter.empty and name not in options:
            raise HaarPoolError(
                f"with {name!r}, which method {result.name!r} requires",
                "none",
                "pass {options}",
                parameter="options",
                options={name: ...},
            )
    return result
