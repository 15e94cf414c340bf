"""Checks of the datasets of the study."""

import numpy as np

from paper.pooling.data.files import SPLITS


def check_splits(splits, number):
    """Parts are disjoint and, together, all."""
    assert len(splits) == SPLITS
    for split in splits:
        assert sorted(np.concatenate(split).tolist()) == list(range(number))
    tests = {tuple(split.test.tolist()) for split in splits}
    assert len(tests) in (1, SPLITS)  # a single published split, or five different ones


def same(first, second):
    """Whether two datasets have the same arrays and splits."""
    if not isinstance(first.graphs, dict):
        assert len(first.graphs) == len(second.graphs)
        pairs = list(zip(first.graphs, second.graphs, strict=True))
    else:
        pairs = [(first.graphs, second.graphs)]
    arrays = all(
        a.keys() == b.keys() and all(np.array_equal(a[k], b[k], a[k].dtype.kind == "f") for k in a)
        for a, b in pairs
    )
    return arrays and [s.digest() for s in first.splits] == [s.digest() for s in second.splits]


def grid_graph(side):
    """The edges of a grid of side × side nodes, each once."""
    node = np.arange(side * side).reshape(side, side)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    down = np.stack([node[:-1].ravel(), node[1:].ravel()])
    return np.concatenate([across, down], axis=1)
