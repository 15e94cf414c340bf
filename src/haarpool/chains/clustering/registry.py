"""The list of clusterings, and checks of their results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints
from haarpool.chains.adjacency import as_array
from haarpool.errors import HaarPoolError

Clustering = Callable[..., NDArray[Any]]


@dataclass(frozen=True)
class Method:
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
    """

    name: str
    function: Clustering
    version: str | None = None
    batched: Clustering | None = None

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


_METHODS: dict[str, Method] = {}


def register(name: str, *, version: str | None = None) -> Callable[[Clustering], Clustering]:
    """Return a decorator that registers a clustering.

    Args:
        name: Name for `build_chain(method=name)`.
        version: Version of its code; change it with the code. Chains are cached only for methods
            with a version, and a cached chain is used only for the same version.

    Example:
        >>> @register("halves", version="1")
        ... def halves(adjacency, num_clusters, *, seed):
        ...     '''First half, second half.'''
        ...     return np.arange(adjacency.shape[0]) // (adjacency.shape[0] / 2)
        >>> clusterings()["halves"]
        'First half, second half'
        >>> del _METHODS["halves"]
    """

    def add(function: Clustering) -> Clustering:
        add_method(Method(name, function, version))
        return function

    return add


def add_method(method: Method) -> None:
    """Register a method; it may only replace one of the same name from the same module."""
    known = _METHODS.get(method.name)
    if not callable(method.function):
        raise HaarPoolError(
            "a function", f"{method.function!r}", "put @register(...) above a function"
        )
    if known and known.function.__module__ != method.function.__module__:
        raise HaarPoolError(
            "an unused name for a clustering", f"{method.name!r}", "choose another name"
        )
    _METHODS[method.name] = method


def clusterings() -> dict[str, str]:
    """Return all registered methods, each with a summary.

    Example:
        >>> clusterings()["matching"]
        'Heavy-edge matching in linear time, for graphs of any size'
    """
    return {name: method.summary for name, method in sorted(_METHODS.items())}


def find_method(method: str | Clustering, options: dict[str, Any]) -> Method:
    """Return a method and check its options.

    Args:
        method: Name of a registered method, or a function.
        options: Options of the method by name.
    """
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        registered = (known for known in _METHODS.values() if known.function is method)
        result = next(registered, Method(name, method))
    elif isinstance(method, str) and method in _METHODS:
        result = _METHODS[method]
    else:
        raise HaarPoolError(
            f"a clustering method out of {sorted(_METHODS)}",
            f"{method!r}",
            "choose one of these, or add your own with `register`",
        )
    if "seed" not in result.keywords:
        raise HaarPoolError(
            "a clustering f(adjacency, num_clusters, *, seed)",
            f"{result.name}, which takes no seed",
            "add the parameter; options come after it",
        )
    for name in options:
        if name not in result.options:
            raise HaarPoolError(
                f"parameters of a chain, or options of method {result.name!r}: "
                f"{list(result.options) or 'none'}",
                f"{name}={options[name]!r}",
                "check the spelling",
            )
    for name, value in (result.options | options).items():
        if value is inspect.Parameter.empty:
            raise HaarPoolError(
                f"option {name!r} of method {result.name!r}", "none", f"pass {name}=..."
            )
    return result


def checked_ids(result: Any, size: int, method: Method) -> Ints:
    """Check the result of a method and renumber it.

    Args:
        result: What the method returned.
        size: N, the number of nodes.
        method: The method.

    Returns:
        (N,) cluster ids 0, 1, ... in order of first members; noise nodes are singletons.
    """
    got, ids = "", np.zeros(0, np.int64)
    try:
        ids = as_array(result, "cluster ids")
        if ids.shape != (size,):
            got = f"shape {ids.shape}"
        elif ids.dtype.kind not in "biuf":
            got = f"dtype {ids.dtype}"
        elif ids.dtype.kind == "f" and not ((np.abs(ids) < 2**53) & (ids == np.trunc(ids))).all():
            got = "ids that are not whole numbers"
    except HaarPoolError:
        got = f"{type(result).__name__}"
    if got:
        raise HaarPoolError(
            f"{size} cluster ids, one whole number per node, from method {method.name!r}",
            got,
            "return a vector such as np.zeros(adjacency.shape[0], int)",
        )
    noise = ids == -1
    distinct = np.where(noise, -1 - np.arange(size), ids.astype(np.int64))
    return numbered(np.unique(distinct, return_inverse=True)[1])


def numbered(ids: Ints) -> Ints:
    """Renumber cluster ids as 0, 1, ... in order of first members.

    Args:
        ids: (N,) ids in 0..N-1, possibly with gaps.
    """
    size = len(ids)
    if size < 200:  # a dictionary is faster than arrays
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(i, len(numbers)) for i in ids.tolist()])
    first = np.full(size, size)
    first[ids[::-1]] = np.arange(size)[::-1]  # the last assignment is the first member
    is_first = np.zeros(size + 1, np.int64)
    is_first[first] = 1
    number = np.cumsum(is_first[:-1]) - 1
    result: Ints = number[first[ids]]
    return result
