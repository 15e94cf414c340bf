"""Colour connectivity of the study: classes, pairs that look alike, splits that keep pairs."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from haarpool.errors import MissingExtraError
from helpers.study import check_splits, grid_graph, same
from paper.pooling.data import colours, make
from paper.pooling.data.files import read, save


@pytest.fixture
def grid(monkeypatch):
    """A grid of 24 × 24 nodes instead of the road graph."""
    pairs = grid_graph(24)
    pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    adjacency = sparse.csr_array((np.ones(pairs.shape[1], np.int64), pairs), (576, 576))
    pos = np.stack(np.divmod(np.arange(576), 24), 1).astype(np.float32)
    monkeypatch.setattr(colours, "minnesota", lambda: (adjacency, pos))
    return adjacency


def test_pairs_of_colourings(grid, tmp_path):
    made = make("colours", pairs=10, candidates=600)
    assert same(made, make("colours", pairs=10, candidates=600))
    assert len(made.graphs) == 20
    check_splits(made.splits, 20)
    for split in made.splits:
        for part in split:
            assert (np.diff(part.reshape(-1, 2)) == 1).all()
            assert not (part[::2] % 2).any()
    counts = []
    for graph in made.graphs:
        red = graph["x"][:, 0] == 1
        inside = grid[red][:, red]
        assert red.sum() == 288
        assert (graph["x"].sum(1) == 1).all()
        assert connected_components(inside)[0] == (1 if graph["y"][0] else 2)
        counts.append(inside.nnz)
    assert counts[::2] == counts[1::2]
    assert [int(graph["y"][0]) for graph in made.graphs] == [0, 1] * 10
    graphs, splits = read(save(made, "colours", tmp_path))
    assert (str(graphs.task), graphs.classes) == ("classification", ("0", "1"))
    assert len(splits) == 5


def test_pygsp_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setattr(colours, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install pygsp"):
        colours.minnesota()


def test_road_graph():
    if colours.find_spec("pygsp") is None:
        pytest.skip("pygsp is not installed")
    adjacency, pos = colours.minnesota()
    assert (adjacency.shape, adjacency.nnz, pos.shape) == ((2642, 2642), 6608, (2642, 2))
    assert (adjacency != adjacency.T).nnz == 0
    assert connected_components(adjacency)[0] == 1
    assert len(make("colours", pairs=3, candidates=500).graphs) == 6
