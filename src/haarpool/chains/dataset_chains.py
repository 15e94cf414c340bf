"""Chains of a whole dataset: in parallel, cached, resumable.

Worker processes run `solve`, which loads neither torch nor PyTorch Geometric.
"""

from __future__ import annotations

import json
import struct
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from haarpool._numbers import fixed
from haarpool._progress import ProgressOption, show_progress
from haarpool._types import Floats, Ints, Measure, Order
from haarpool.chains.cache import ChainCache, pack, unpack
from haarpool.chains.chain import Chain
from haarpool.chains.clustering import ClusteringFunction
from haarpool.chains.coarsening import as_features, coarsen
from haarpool.chains.graph_batch import GraphBatch, as_graph_batch
from haarpool.chains.quality import StepQuality, dataset_quality
from haarpool.chains.recipe import Recipe
from haarpool.chains.workers import Pace, check_jobs, spread
from haarpool.errors import HaarPoolError

BLOCK_GRAPHS = 2048  # graphs read, checked and looked up at a time
LARGE = 1024  # nodes; a larger graph is a chunk by itself
CHUNK_ENTRIES = 2**24  # entries of all dense matrices that a method may make for a chunk
_FORMAT = "haarpool chain 1"


class GraphBlock(NamedTuple):
    """Some graphs of the dataset.

    Attributes:
        batch: The graphs.
        features: (N, d) their node features, or None.
        keys: The cache key of each graph.
    """

    batch: GraphBatch
    features: Floats | None
    keys: list[bytes]


@dataclass(frozen=True, eq=False, repr=False)
class Chains(Sequence[Chain]):
    """The chains of a dataset, in its order; a `Chain` is made when it is indexed.

    Chains are kept packed, so a million of them fit into memory. Equal graphs share one chain.

    Attributes:
        recipe: The parameters of all chains.
        computed: Number of different chains that were computed.
        cached: Number of different chains that were read from the cache.
        seconds: Time it took.
        cache: File of the cache; None without cache, or if it could not be used.
    """

    _blocks: list[GraphBlock]
    _packed: dict[bytes, bytes]
    recipe: Recipe
    computed: int
    cached: int
    seconds: float
    cache: Path | None = None

    def __len__(self) -> int:
        return sum(len(block.keys) for block in self._blocks)

    @overload
    def __getitem__(self, i: int) -> Chain: ...
    @overload
    def __getitem__(self, i: slice) -> list[Chain]: ...
    def __getitem__(self, i: int | slice) -> Chain | list[Chain]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"chain {i} of {len(self)}")
        block, g = divmod(i % len(self), BLOCK_GRAPHS)
        return self._chain(self._blocks[block], g)

    def __iter__(self) -> Iterator[Chain]:
        return (self._chain(block, g) for block in self._blocks for g in range(len(block.keys)))

    def _chain(self, block: GraphBlock, g: int) -> Chain:
        parents, _ = unpack(self._packed[block.keys[g]])
        return Chain(tuple(parents), self.recipe.order, self.recipe.measure, block.batch[g])

    def forests(self) -> Iterator[Chain]:
        """Yield blocks of chains, each as one chain of all graphs of the block side by side.

        A last step is added: the nodes of the last level are the graphs.

        Example:
            >>> rings = [np.roll(np.eye(n), 1, 1) + np.roll(np.eye(n), -1, 1) for n in (8, 4)]
            >>> list(precompute(rings, num_levels=2, cache=False).forests())
            [Chain(12 -> 6 -> 2 -> 2)]
        """
        for block in self._blocks:
            steps = [unpack(self._packed[key])[0] for key in block.keys]
            if len(numbers := {len(parents) for parents in steps}) > 1:
                raise HaarPoolError(
                    "chains with the same number of levels",
                    " and ".join(map(str, sorted(numbers))),
                    "pass {num_levels} to precompute",
                    num_levels=...,
                )
            forest, sizes = list[Ints](), block.batch.sizes
            for parents in zip(*steps, strict=True):
                num_clusters = np.array([parent.max() + 1 for parent in parents])
                first = np.cumsum(num_clusters) - num_clusters
                forest.append(np.concatenate(parents) + np.repeat(first, sizes))
                sizes = num_clusters
            forest.append(np.repeat(np.arange(len(sizes)), sizes))
            graph = block.batch.adjacency
            yield Chain(tuple(forest), self.recipe.order, self.recipe.measure, graph)

    def quality(self) -> list[StepQuality]:
        """Return the quality of the clusters of each level, as means over all graphs."""
        batches = (
            (block.batch, [unpack(self._packed[key]) for key in block.keys])
            for block in self._blocks
        )
        return dataset_quality(batches)

    def __repr__(self) -> str:
        return f"Chains({len(self)} graphs, {self.computed} computed in {fixed(self.seconds)} s)"


def precompute(  # noqa: D417  # `build_chain` explains the others
    dataset: Iterable[Any],
    num_levels: int | Recipe | None = None,
    ratio: float | Iterable[float] = 0.5,
    top: int | None = 1,
    method: str | ClusteringFunction = "spectral",
    seed: int = 0,
    sizes: Iterable[int] | Literal["paper"] | None = None,
    order: Order = "degree",
    measure: Measure = "children",
    symmetrize: bool = False,
    options: Mapping[str, Any] | None = None,
    *,
    features: str | Sequence[Any] | None = None,
    n_jobs: int | None = None,
    cache: bool | str | PathLike[str] = True,
    progress: ProgressOption = None,
) -> Chains:
    """Build the chain of every graph of a dataset: the same chains as `build_chain`, but faster.

    Chains that are in the cache are read. The others are computed and written chunk by chunk, so a
    run that was interrupted continues where it stopped. Equal graphs share one chain, which is
    computed once. Chains of a method without version (a bare function), or with an option that is
    no plain value, are not cached.

    The parameters from `num_levels` to `options` are those of `build_chain`.

    Args:
        dataset: Graphs in any form that `as_adjacency` takes, for example a PyG dataset.
        features: Node features for methods that read them: an (N, d) array per graph, or the name
            of an attribute of every graph, such as "x".
        n_jobs: Number of processes; -1 uses all cores. Inside `joblib.parallel_config(...)`, for
            example with `backend="dask"`, the work runs on that backend.
        cache: False to use no cache, or the folder of the cache; see `cache_folder`.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with a line of text every 30 seconds.

    Returns:
        The chains in the order of the dataset.

    Example:
        >>> ring = np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1)
        >>> chains = precompute([ring, np.eye(4)], num_levels=2, cache=False)
        >>> list(chains)
        [Chain(8 -> 4 -> 1), Chain(4 -> 2 -> 1)]
    """
    recipe = Recipe.of(
        num_levels, ratio, top, method, seed, sizes, order, measure, symmetrize, options
    )
    check_jobs(n_jobs)
    _check_arguments(dataset, features, cache)
    start = time.perf_counter()
    store = None
    if cache is not False and recipe.is_repeatable:
        store = ChainCache(None if cache is True else cache)
    total = len(dataset) if isinstance(dataset, Sized) else None
    packed: dict[bytes, bytes] = {}
    with show_progress(progress, "chains", "graphs", total) as update:
        try:
            blocks = []
            for block in _blocks(dataset, recipe, features):
                packed |= store.read(block.keys) if store else {}
                update(sum(key in packed for key in block.keys))
                blocks.append(block)
            cached = len(packed)
            occurrences = Counter(key for block in blocks for key in block.keys)
            for computed in _compute(blocks, set(packed), recipe, n_jobs):
                if store:
                    store.write(computed.items())
                packed |= computed
                update(sum(occurrences[key] for key in computed))
        finally:
            if store:
                store.close()
    seconds = time.perf_counter() - start
    used = store.path if store and store.is_usable else None
    return Chains(blocks, packed, recipe, len(packed) - cached, cached, seconds, used)


def _check_arguments(dataset: Any, features: Any, cache: Any) -> None:
    if not hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
        expected, remedy = "as a list of graphs", "pass one graph to build_chain"
        raise HaarPoolError(expected, type(dataset).__name__, remedy, parameter="dataset")
    if features is not None and not hasattr(features, "__getitem__"):
        expected = "as an array per graph, or the name of an attribute"
        remedy = "pass a list of arrays, or for example {features}"
        got = type(features).__name__
        raise HaarPoolError(expected, got, remedy, parameter="features", features="x")
    if not isinstance(cache, bool | str | PathLike):
        expected, remedy = "as True, False or a folder", "pass {cache} to use none"
        raise HaarPoolError(expected, f"{cache!r}", remedy, parameter="cache", cache=False)


# ---------------------------------------------------------------------- reading


def _blocks(
    dataset: Iterable[Any], recipe: Recipe, features: str | Sequence[Any] | None
) -> Iterator[GraphBlock]:
    first = 0
    for graphs in _slices(dataset):
        batch = as_graph_batch(graphs, symmetrize=recipe.symmetrize, first=first)
        columns = None
        if isinstance(features, str):
            columns = _features([getattr(g, features, None) for g in graphs], first, batch, recipe)
        elif features is not None:
            columns = _features(features[first : first + len(graphs)], first, batch, recipe)
        yield GraphBlock(batch, columns, _keys(batch, columns, recipe))
        first += len(graphs)
    if isinstance(features, Sequence) and not isinstance(features, str) and len(features) != first:
        expected, remedy = f"of {first} graphs", "pass one array per graph"
        raise HaarPoolError(expected, f"{len(features)}", remedy, parameter="features")


def _slices(dataset: Iterable[Any]) -> Iterator[Sequence[Any]]:
    if isinstance(dataset, GraphBatch):
        yield from (dataset[i : i + BLOCK_GRAPHS] for i in range(0, len(dataset), BLOCK_GRAPHS))
        return
    graphs = iter(dataset)
    while block := list(islice(graphs, BLOCK_GRAPHS)):
        yield block


def _features(given: Sequence[Any], first: int, batch: GraphBatch, recipe: Recipe) -> Floats:
    if len(given) != len(batch.sizes):
        expected, remedy = "of every graph", "pass one array per graph"
        raise HaarPoolError(expected, f"{first + len(given)}", remedy, parameter="features")
    rows = []
    for i, (values, size) in enumerate(zip(given, batch.sizes, strict=True), start=first):
        try:
            rows.append(as_features(values, int(size), recipe))
        except HaarPoolError as error:
            raise error.located(f"in graph {i}") from None
    if len(widths := {columns.shape[1] for columns in rows}) > 1:
        raise HaarPoolError(
            "of the same width in all graphs",
            f"{sorted(widths)}",
            "fill in what is missing",
            parameter="features",
        )
    return np.concatenate(rows)


def _keys(batch: GraphBatch, features: Floats | None, recipe: Recipe) -> list[bytes]:
    """Hash what the chain of each graph depends on: graph, features, recipe, code version."""
    head = json.dumps([_FORMAT, recipe.cluster_key()], sort_keys=True, default=repr).encode()
    width = -1 if features is None else features.shape[1]
    adjacency, start = batch.adjacency, batch.start
    degree = np.diff(adjacency.indptr).astype("<i8")
    entry = adjacency.indptr[start]
    column = (adjacency.indices - np.repeat(start[:-1], np.diff(entry))).astype("<i8")
    weight = adjacency.data.astype("<f8")
    keys = []
    for (a, b), (c, d) in zip(pairwise(start.tolist()), pairwise(entry.tolist()), strict=True):
        content = sha256(head + struct.pack("<3q", b - a, d - c, width))
        for part in (degree[a:b], column[c:d], weight[c:d]):
            content.update(part)
        if features is not None:
            content.update(features[a:b].astype("<f8").tobytes())
        keys.append(content.digest())
    return keys


# ---------------------------------------------------------------------- the work


def _compute(
    blocks: list[GraphBlock], known: set[bytes], recipe: Recipe, n_jobs: int | None
) -> Iterator[dict[bytes, bytes]]:
    """Compute the packed chains that are not known yet, chunk by chunk, each once."""
    pace = Pace(n_jobs)
    for (keys, values), seconds in spread(solve, _chunks(blocks, known, recipe, pace), n_jobs):
        pace.learn(len(keys), seconds)
        yield dict(zip(keys, values, strict=True))


def _chunks(
    blocks: list[GraphBlock], known: set[bytes], recipe: Recipe, pace: Pace
) -> Iterator[tuple[list[bytes], GraphBatch, Floats | None, Recipe]]:
    seen = set(known)
    todo: list[list[int]] = []
    for block in blocks:
        fresh = {key: g for g, key in enumerate(block.keys) if key not in seen}
        todo.append(sorted(fresh.values()))
        seen |= fresh.keys()
    left = sum(map(len, todo))
    for block, numbers in zip(blocks, todo, strict=True):
        while numbers:
            number = _fitting(block.batch.sizes[numbers[: pace.number(left)]])
            chunk, numbers = numbers[:number], numbers[number:]
            left -= len(chunk)
            batch, nodes = block.batch.take(np.array(chunk))
            features = None if block.features is None else block.features[nodes]
            yield [block.keys[g] for g in chunk], batch, features, recipe


def _fitting(sizes: NDArray[np.int64]) -> int:
    """Return how many graphs of these sizes fit into one chunk."""
    large = sizes > LARGE
    if large[0]:
        return 1
    end = int(large.argmax()) if large.any() else len(sizes)
    fitting = int(np.searchsorted(np.cumsum(sizes[:end] ** 2), CHUNK_ENTRIES, side="right"))
    return max(1, fitting)


def solve(
    keys: list[bytes], batch: GraphBatch, features: Floats | None, recipe: Recipe
) -> tuple[list[bytes], list[bytes]]:
    """Compute the packed chains of a chunk; worker processes call this."""
    with threadpool_limits(1):  # matrices are small, and results must not depend on threads
        return keys, [pack(*steps) for steps in coarsen(batch, recipe, features)]
