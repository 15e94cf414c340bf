"""Poisson's equation of the study against a known solution."""

import numpy as np
import pytest

from helpers.study import check_splits, same
from paper.pooling.data import make, poisson
from paper.pooling.data.files import read, save


@pytest.mark.parametrize(("size", "error"), [(400, 0.02), (6400, 0.002)])
def test_solution_is_that_of_sines(size, error):
    points, triangles = poisson.random_mesh(size, np.random.default_rng(0))
    stiffness, mass = poisson.matrices(points, triangles)
    border = ((points == 0) | (points == 1)).any(1)
    exact = np.sin(np.pi * points).prod(1)
    u = poisson.solve(stiffness, mass @ (2 * np.pi**2 * exact), border)
    assert np.abs(u - exact).max() < error
    assert mass.sum() == pytest.approx(1)
    assert np.abs(stiffness.sum(0)).max() < 1e-9


def test_meshes(tmp_path):
    made = make("poisson", number=20, large=3)
    assert same(made, make("poisson", number=20, large=3))
    for split in made.splits:
        assert set(range(20, 23)) <= set(split.test.tolist())
    check_splits(made.splits, 23)
    sizes = [len(graph["x"]) for graph in made.graphs]
    assert min(sizes[:20]) >= 600
    assert max(sizes[:20]) <= 1000
    assert min(sizes[20:]) >= 2400
    for graph in made.graphs:
        border = graph["x"][:, 2] == 1
        assert (graph["y"][border] == 0).all()
        assert graph["x"][:, 1].sum() == pytest.approx(poisson.AREA, rel=1e-4)
        assert graph["edge_weight"].min() > 0
    graphs, splits = read(save(made, "poisson", tmp_path))
    assert str(graphs.task) == "node_regression"
    assert graphs.positions(0).shape == (sizes[0], 2)
    assert np.isclose(graphs.targets.std(), 1, atol=0.4)
    assert len(splits) == 5
