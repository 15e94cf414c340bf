"""The one list of clusterings, and what every one of them must give."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.chains.adjacency import as_array
from haarpool.errors import HaarPoolError

Clustering = Callable[..., NDArray[Any]]


@dataclass(frozen=True)
class Method:
    """A clustering and what is known of it.

    Attributes:
        name: what `build_chain(method=...)` calls it.
        function: `f(adjacency, num_clusters, *, seed, ...)` of a checked CSR adjacency (symmetric,
            weights > 0, self-loops kept) with 1 < num_clusters < N -> N cluster ids. Ids may have
            gaps; nodes of id -1 are noise, each a cluster of its own. Further parameters are its
            options; if one is `features`, it receives the node features, (N, d) or None.
        version: of its code; another version gives other chains, so cached ones are not used.
        batched: the same for all graphs of a batch at once, where that is faster:
            `f(batch, num_clusters, *, seed, ...)`, ids of a graph counted from its first node.
    """

    name: str
    function: Clustering
    version: str | None = None
    batched: Clustering | None = None

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @cached_property
    def keywords(self) -> dict[str, Any]:
        """Its parameters behind the first two, with their defaults."""
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):  # some functions that are not written in Python
            return {}
        named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return {p.name: p.default for p in parameters[2:] if p.kind in named}

    @property
    def options(self) -> dict[str, Any]:
        """What a user may set beside the seed and the features."""
        return {k: v for k, v in self.keywords.items() if k not in ("seed", "features")}

    @property
    def takes_features(self) -> bool:
        """Whether it can look at node features."""
        return "features" in self.keywords


_METHODS: dict[str, Method] = {}


def register(name: str, *, version: str | None = None) -> Callable[[Clustering], Clustering]:
    """Add a clustering of your own under a name; use it as a decorator.

    Args:
        name: for `build_chain(method=name)`.
        version: of its code. Change it with the code: chains are cached only for a method that
            has one, and used only for the same one.

    >>> @register("halves", version="1")
    ... def halves(adjacency, num_clusters, *, seed):
    ...     '''First half, second half'''
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
    """Put a method into the list; a second one of the same name must come from the same module."""
    known = _METHODS.get(method.name)
    if not callable(method.function):
        raise HaarPoolError(
            "a function", f"{method.function!r}", "write @register(...) above a function"
        )
    if known and known.function.__module__ != method.function.__module__:
        raise HaarPoolError(
            "a new name for a clustering", f"{method.name!r}", "choose another name"
        )
    _METHODS[method.name] = method


def clusterings() -> dict[str, str]:
    """All registered methods with a line on each.

    >>> clusterings()["matching"]
    'Heavy-edge matching in linear time, for graphs of any size'
    """
    return {name: method.summary for name, method in sorted(_METHODS.items())}


def find_method(method: str | Clustering, options: dict[str, Any]) -> Method:
    """The method of this name, or a callable as one; raise unless it takes all `options`."""
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        found = next((m for m in _METHODS.values() if m.function is method), Method(name, method))
    elif isinstance(method, str) and method in _METHODS:
        found = _METHODS[method]
    else:
        raise HaarPoolError(
            f"a clustering method out of {sorted(_METHODS)}",
            f"{method!r}",
            "choose one of these, pass a function, or your own clusters to Chain.from_parents",
        )
    if "seed" not in found.keywords:
        raise HaarPoolError(
            "a clustering f(adjacency, num_clusters, *, seed)",
            f"{found.name}, which takes no seed",
            "give it these parameters, and options behind them",
        )
    for name in options:
        if name not in found.options:
            raise HaarPoolError(
                f"keywords of build_chain, or options of method {found.name!r}: "
                f"{list(found.options) or 'none'}",
                f"{name}={options[name]!r}",
                "check the spelling",
            )
    for name, value in (found.options | options).items():
        if value is inspect.Parameter.empty:
            raise HaarPoolError(
                f"option {name!r} of method {found.name!r}", "none", f"pass {name}=..."
            )
    return found


def checked_ids(result: Any, size: int, method: Method) -> NDArray[np.int64]:
    """Cluster ids 0, 1, ... in order of first members, noise as singletons, or an error."""
    got, ids = "", np.zeros(0, np.int64)
    try:
        ids = as_array(result, "cluster ids")
        if ids.shape != (size,):
            got = f"shape {ids.shape}"
        elif ids.dtype.kind not in "biuf":
            got = f"dtype {ids.dtype}"
        elif ids.dtype.kind == "f" and not ((np.abs(ids) < 2**53) & (ids == np.trunc(ids))).all():
            got = "ids that are no whole numbers"
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


def numbered(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids in 0..len(ids)-1, gaps allowed, renumbered 0, 1, ... in order of first members."""
    size = len(ids)
    if size < 200:  # too few for arrays to be quick
        known: dict[int, int] = {}
        return np.array([known.setdefault(i, len(known)) for i in ids.tolist()])
    first = np.full(size, size)
    first[ids[::-1]] = np.arange(size)[::-1]  # the last one to write is the first member
    starts = np.zeros(size + 1, np.int64)
    starts[first] = 1
    number = np.cumsum(starts[:-1]) - 1
    result: NDArray[np.int64] = number[first[ids]]
    return result
