"""The digits of scikit-learn as graphs."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from haarpool.datasets import read_graphs


@pytest.fixture(scope="module")
def graphs():
    return read_graphs("digits")


def test_nodes_are_the_pixels_with_ink(graphs):
    images, digits = load_digits(return_X_y=True)
    assert (graphs.targets == digits).all()
    assert (graphs.sizes == (images > 0).sum(axis=1)).all()
    x, pos = graphs.columns["x"], graphs.columns["pos"]
    drawn = np.zeros((len(graphs), 8, 8))
    drawn[graphs.owner, -pos[:, 1].astype(int), pos[:, 0].astype(int)] = x[:, 0]
    assert (drawn.reshape(-1, 64) == images).all()


def test_edges_join_neighbours_with_ink(graphs):
    pos, (u, v) = graphs.columns["pos"], graphs.edges
    assert (graphs.owner[u] == graphs.owner[v]).all()
    assert (np.abs(pos[u] - pos[v]).max(axis=1) == 1).all()
    # By definition, graph by graph.
    for g in (0, 7, 1796):
        nodes = pos[graphs.start[g] : graphs.start[g + 1]]
        near = np.abs(nodes[:, None] - nodes[None]).max(axis=2) == 1
        assert (graphs.batch[g].toarray() == near).all()


def test_the_number_as_a_value(graphs):
    values = read_graphs("digits", task="regression")
    assert values.targets[:, 0].tolist() == graphs.targets.tolist()
    assert values.target_names == ("digit",)
