"""Random graphs with 1 to 10 triangles, drawn as in the published dataset.

A graph has n nodes, n uniform in 4..25 (26..100 for large graphs), and is drawn uniformly from the
simple graphs with min(floor((1 + u) n), n (n - 1) / 2) edges, u uniform in [0, 1). The first 4,000
(large: 500) different adjacency matrices of each number of triangles from 1 to 10 are kept. The
4,000 are split at random, since small graphs soon repeat and therefore come early.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool import _validate
from haarpool._files import read_arrays, write_arrays
from haarpool._progress import ProgressOption, show_progress
from haarpool._types import Ints
from haarpool.chains.adjacency import from_edges, ranges
from haarpool.chains.cache import cache_folder
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import label_fields
from haarpool.datasets.readers.tu.layout import published_split
from haarpool.errors import HaarPoolError, HaarPoolWarning

CLASSES = 10
VERSION = 1  # of the generator; another version draws other graphs
KEYS = 2**22  # random keys drawn at a time: 32 MB


class GraphSizes(NamedTuple):
    """Fewest and most nodes of graphs, and how many graphs of `each` class."""

    fewest: int
    most: int
    each: int


USUAL, LARGE = GraphSizes(4, 25, 4000), GraphSizes(26, 100, 500)
SPLIT = (3000, 500, 500)  # train, validation, test of the 4,000 usual graphs of each class


class Drawn(NamedTuple):
    """Random graphs; the edge of the nodes i < j has the number j (j - 1) / 2 + i."""

    sizes: Ints  # (G,) number of nodes
    counts: Ints  # (G,) number of edges
    pairs: NDArray[np.int32]  # (sum of counts,) numbers of the edges, graph by graph, ascending
    triangles: Ints  # (G,) number of triangles

    def take(self, graphs: Ints) -> Drawn:
        """Select graphs, in any order."""
        first = np.cumsum(self.counts) - self.counts
        pairs = self.pairs[ranges(first[graphs], self.counts[graphs])]
        return Drawn(self.sizes[graphs], self.counts[graphs], pairs, self.triangles[graphs])


def read_triangles(seed: int, task: str | None, progress: ProgressOption) -> Graphs:
    """Generate the dataset, or read it from the cache."""
    seed = _validate.seed(seed)
    path = cache_folder() / "datasets" / f"triangles-{VERSION}-{seed}.npz"
    try:
        drawn = Drawn(**read_arrays(path))  # type: ignore[arg-type]
    except (HaarPoolError, TypeError):  # no file yet, or a damaged one
        drawn = generate(seed, progress=progress)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(path, drawn._asdict())
        except (OSError, HaarPoolError) as error:
            text = f"the triangles dataset could not be cached: {error}"
            warnings.warn(text, HaarPoolWarning, stacklevel=3)
    return _as_graphs(drawn, task)


def generate(seed: int, *, progress: ProgressOption = None) -> Drawn:
    """Generate all graphs, in the order of the published dataset."""
    rng = np.random.default_rng(seed)
    total = CLASSES * (USUAL.each + LARGE.each)
    with show_progress(progress, "triangles", "graphs", total, delay=1) as update:
        usual, large = _draw_classes(USUAL, rng, update), _draw_classes(LARGE, rng, update)
    by_class = np.arange(CLASSES * USUAL.each).reshape(CLASSES, USUAL.each)
    by_class = rng.permuted(by_class, axis=1)
    parts = np.split(by_class, np.cumsum(SPLIT)[:-1], axis=1)
    order = np.concatenate([part.ravel() for part in parts])
    return _concatenate([usual.take(order), large.take(rng.permutation(len(large.sizes)))])


def _draw_classes(
    part: GraphSizes, rng: np.random.Generator, update: Callable[[int], object]
) -> Drawn:
    """Draw the first `part.each` different graphs of each class, in order of class."""
    seen: set[bytes] = set()
    kept = [0] * (CLASSES + 1)
    selections = []
    for drawn in _draw_blocks(part, rng):
        selected = []
        ends = np.cumsum(drawn.counts)
        for g in np.flatnonzero((drawn.triangles >= 1) & (drawn.triangles <= CLASSES)).tolist():
            c = drawn.triangles[g]
            edges = drawn.pairs[ends[g] - drawn.counts[g] : ends[g]]
            # With the number of nodes: different graphs can have the same edges.
            key = bytes([drawn.sizes[g]]) + edges.tobytes()
            if kept[c] < part.each and key not in seen:
                seen.add(key)
                kept[c] += 1
                selected.append(g)
        selections.append(drawn.take(np.array(selected, np.int64)))
        update(len(selected))
        if min(kept[1:]) == part.each:
            break
    graphs = _concatenate(selections)
    return graphs.take(np.argsort(graphs.triangles, kind="stable"))


def _draw_blocks(part: GraphSizes, rng: np.random.Generator) -> Iterator[Drawn]:
    """Draw blocks of random graphs forever.

    Every pair of nodes gets a random key, and the pairs with the smallest keys are the edges. The
    last bits of a key are the number of its pair, so that no two keys are equal.
    """
    width = part.most * (part.most - 1) // 2
    number = np.arange(width, dtype=np.uint64)
    tail = np.uint64(2 ** width.bit_length() - 1)
    block = KEYS // width
    while True:
        sizes = rng.integers(part.fewest, part.most + 1, block)
        possible = sizes * (sizes - 1) // 2
        counts = np.minimum(np.floor((1 + rng.random(block)) * sizes).astype(np.int64), possible)
        keys = rng.integers(0, 2**64 - 1, (block, width), np.uint64, endpoint=True)
        keys &= ~tail
        keys |= number
        keys[number >= possible[:, None]] = np.iinfo(np.uint64).max
        limit = np.take_along_axis(np.sort(keys, axis=1), counts[:, None] - 1, axis=1)
        pairs = np.nonzero(keys <= limit)[1].astype(np.int32)
        yield Drawn(sizes, counts, pairs, _count_triangles(sizes, counts, pairs))


def _count_triangles(sizes: Ints, counts: Ints, pairs: NDArray[np.int32]) -> Ints:
    """Count the (G,) triangles, tr(A³) / 6, of all graphs in one block-diagonal matrix."""
    start = np.concatenate([[0], np.cumsum(sizes)])
    low, high = _ends(pairs)
    shift = np.repeat(start[:-1], counts)
    low, high = low + shift, high + shift
    # In each triangle a < b < c, the edge (a, c) closes the path a - b - c: counted once.
    upper = from_edges(low, high, np.ones(len(low)), int(start[-1]))
    closed = np.asarray((upper @ upper).multiply(upper).sum(axis=1))
    ends = np.concatenate([[0], np.cumsum(closed)])[start]
    triangles: Ints = np.diff(ends).astype(np.int64)
    return triangles


def _ends(pairs: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Return the nodes i < j of the edges with the numbers j (j - 1) / 2 + i."""
    most = LARGE.most
    high = np.repeat(np.arange(most), np.arange(most))
    low = np.arange(len(high)) - high * (high - 1) // 2
    return low[pairs], high[pairs]


def _concatenate(parts: list[Drawn]) -> Drawn:
    return Drawn(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _as_graphs(drawn: Drawn, task: str | None) -> Graphs:
    start = np.concatenate([[0], np.cumsum(drawn.sizes)])
    shift = np.repeat(start[:-1], drawn.counts)
    low, high = _ends(drawn.pairs)
    edges = np.stack([np.concatenate([low, high]), np.concatenate([high, low])])
    edges += np.concatenate([shift, shift])
    return Graphs(
        "triangles",
        start,
        edges[:, np.lexsort(edges[::-1])],
        split=published_split(),
        **label_fields(drawn.triangles, task=task or "classification", names=["triangles"]),
    )
