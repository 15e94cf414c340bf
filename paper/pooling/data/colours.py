"""Colour connectivity: are all red nodes of a road graph one connected piece?

What is predicted: the class of a whole graph, 1 if its red nodes are connected, else 0: then they
are two pieces. Half of the nodes of the Minnesota road graph are red; a node knows its colour. Two
random walks that start anywhere take turns until half of all nodes are visited; whether they met
is the class (the task of HGNet; Rampášek and Wolf, 2021).

Walks that did not meet look different in other ways, too: a linear classifier finds them in 82 of
100 cases from the colours alone, and in 72 from counts of nodes by degree, colour and number of red
neighbours. So each colouring with two pieces is paired with one of one piece that has as many edges
between red nodes and about the same counts and places (see `describe`), and the pairs that are most
alike are kept. What is left, of 100 test graphs: 50 by the number of edges between red nodes, 55 by
the counts, 56 by histograms of the red share within two to six hops, 51 by the mean place of red
nodes and its spread, 60 by a linear classifier of all colours.

Counts cannot decide exactly: pieces = nodes - edges + independent cycles. Nodes and edges are the
same in a pair, but red cycles run around holes of any size.

Data: the graph of MatlabBGL (D. Gleich) as PyGSP (BSD 3-clause) ships it, with the edge that
connects it; the colours are drawn here.

Split: pairs at random, two thirds for training, 2/30 for validation and 8/30 for test, five times.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from typing import cast

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import loadmat
from scipy.sparse.csgraph import connected_components

from haarpool._types import Floats, Ints
from haarpool.datasets.splits import Split
from haarpool.errors import MissingExtraError
from paper.pooling.data.files import SPLITS, Dataset
from paper.pooling.data.power import find_regions

MISSING_EDGE = 348, 354  # as PyGSP adds it
STEPS = 50  # of the walks, per node; hardly any pair of walks needs as many
REGIONS = 10  # whose shares of red nodes a pair has in common, about

Flags = NDArray[np.bool_]


def make(pairs: int = 1500, candidates: int = 110_000, seed: int = 0) -> Dataset:
    """Draw colourings and keep pairs that look alike.

    Args:
        pairs: Number of pairs, of one graph of each class.
        candidates: Number of colourings to choose from; about one in 24 has two pieces.
        seed: Seed of colours and splits.
    """
    adjacency, pos = minnesota()
    edges = np.stack(adjacency.nonzero())
    region = find_regions(edges, len(pos), REGIONS, seed)
    rng, walk_fast = np.random.default_rng(seed), cast(Callable[..., Flags], numba.njit(walk))
    colours: list[NDArray[np.uint8]] = []
    features, connected = [], []
    while len(colours) < candidates:
        starts = rng.choice(len(pos), 2, replace=False)
        choices = rng.integers(0, 2**20, STEPS * len(pos))
        red = walk_fast(adjacency.indptr, adjacency.indices, starts, choices)
        inside = adjacency[red][:, red]
        if 2 * red.sum() >= len(pos) - 1:
            colours.append(np.packbits(red))
            features.append(describe(red, inside, adjacency, pos, region))
            connected.append(connected_components(inside, directed=False)[0] == 1)
    chosen = alike(np.array(features), np.array(connected), pairs).ravel()
    pairs = len(chosen) // 2
    graphs = []
    for i in chosen:
        is_red = np.unpackbits(colours[i], count=len(pos))
        x, y = np.stack([is_red, 1 - is_red], 1), np.array([int(connected[i])])
        graphs.append({"x": x, "edge_index": edges, "pos": pos, "y": y})
    return Dataset(graphs, splits_of_pairs(pairs, seed))


def minnesota() -> tuple[sparse.csr_array, Floats]:
    """Return the adjacency matrix of the road graph, and the (N, 2) positions of its nodes.

    PyGSP is not imported: the file is read from its folder, or from its wheel.
    """
    spec = find_spec("pygsp")
    if spec is None or spec.origin is None:
        expected = "the package 'pygsp', which has the Minnesota road graph"
        raise MissingExtraError(expected, "none", "run pip install pygsp")
    path = os.path.join(os.path.dirname(spec.origin), "data", "pointclouds", "minnesota.mat")
    content = loadmat(BytesIO(spec.loader.get_data(path)))  # type: ignore[union-attr]
    adjacency = sparse.lil_array(content["A"] != 0, dtype=np.int64)
    adjacency[MISSING_EDGE] = adjacency[MISSING_EDGE[::-1]] = 1
    return adjacency.tocsr(), content["xy"].astype(np.float32)


def walk(indptr: Ints, indices: Ints, starts: Ints, choices: Ints) -> Flags:
    """Colour nodes red by two walks that take turns, until half of the nodes are red.

    Args:
        indptr: (N + 1,) Where the neighbours of each node start.
        indices: (E,) Neighbours.
        starts: (2,) First nodes; they are changed.
        choices: Random numbers, one for each step.
    """
    red, number = np.zeros(len(indptr) - 1, np.bool_), 0
    for step in range(len(choices)):
        node = starts[step % 2]
        number += not red[node]
        red[node] = True
        if number == len(red) // 2:
            break
        degree = indptr[node + 1] - indptr[node]
        starts[step % 2] = indices[indptr[node] + choices[step] % degree]
    return red


def describe(
    red: Flags, inside: sparse.csr_array, adjacency: sparse.csr_array, pos: Floats, region: Ints
) -> Floats:
    """Return what the colourings of a pair have in common.

    The number of edges between red nodes comes first, then that of edges from red to blue nodes,
    of red nodes with one, two and three red neighbours, the mean and the variance of their
    positions, and the number of red nodes in each region.
    """
    degrees = np.bincount(np.diff(inside.indptr), minlength=4)[1:4]
    between = np.diff(adjacency.indptr)[red].sum() - inside.nnz
    places = pos[red].mean(0), pos[red].var(0), np.bincount(region[red], minlength=REGIONS)
    return np.concatenate([[inside.nnz // 2, between], degrees, *places])


def alike(features: Floats, connected: Flags, number: int) -> Ints:
    """Return (number, 2) pairs of graphs of both classes, those that are most alike.

    Args:
        features: (n, F) What a pair has in common: the first one exactly, the others about.
        connected: (n,) Classes.
        number: Number of pairs; fewer if there are not as many.
    """
    scaled, free = (features - features.mean(0)) / features.std(0), connected.copy()
    found = []
    for i in np.flatnonzero(~connected):
        others = np.flatnonzero(free & (features[:, 0] == features[i, 0]))
        if len(others):
            distance = ((scaled[others] - scaled[i]) ** 2).sum(1)
            j = others[distance.argmin()]
            free[j] = False
            found.append((distance.min(), i, j))
    return np.array([pair for _, *pair in sorted(found)[:number]])


def splits_of_pairs(pairs: int, seed: int) -> list[Split]:
    """Split pairs; graph 2i and graph 2i + 1 are a pair."""
    splits = []
    for s in range(SPLITS):
        order = np.random.default_rng([seed, s]).permutation(pairs)
        parts = np.split(order, [pairs * 20 // 30, pairs * 22 // 30])
        splits.append(Split(*(np.sort(np.append(2 * part, 2 * part + 1)) for part in parts)))
    return splits
