"""Grids of the study: loads by region, outages that training never sees, power flow."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from haarpool.errors import MissingExtraError
from helpers.study import check_splits, grid_graph, same
from paper.pooling.data import make, outages, power

# pandapower, of the cases that it ships itself.
old_cases = pytest.mark.filterwarnings("ignore:tap_dependency_table is missing:DeprecationWarning")


def test_regions_are_connected_and_share_their_factor():
    edges = grid_graph(8)
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    region = power.find_regions(edges, 64, 5, seed=0)
    assert set(region) == set(range(5))
    inside = edges[:, region[edges[0]] == region[edges[1]]]
    graph = sparse.coo_array((np.ones(inside.shape[1]), inside), (64, 64))
    assert connected_components(graph)[0] == 5
    factors = np.array(
        [power.by_region(region, np.random.default_rng(s), 0.2, 64) for s in range(200)]
    )
    assert np.abs(factors - 1).max() <= 0.2
    close = np.corrcoef(factors.T)
    same_region = region[:, None] == region
    assert close[same_region].min() > 0.95
    assert np.abs(close[~same_region]).max() < 0.4


def test_outages_leave_the_grid_connected():
    branches = np.concatenate([grid_graph(5), [[0], [25]]], axis=1)  # the last one is a bridge
    rng = np.random.default_rng(0)
    lines = np.array([0, 1, 2, branches.shape[1] - 1])
    drawn = [outages.draw_outage(branches, lines, 26, rng) for _ in range(200)]
    assert {len(out) for out in drawn} == {1, 2}
    assert set(np.concatenate(drawn).tolist()) == {0, 1, 2}


def test_parallel_lines_are_in_one_group():
    rng = np.random.default_rng(0)
    branches = np.sort(rng.integers(0, 12, (2, 200)), axis=0)
    branches[:, ::2] = branches[::-1, ::2]  # the direction does not matter
    lines = rng.permutation(200)[:150]
    groups = outages.groups_of_lines(branches, lines, rng)
    assert sorted(np.concatenate(groups)) == sorted(lines)
    pairs = [{tuple(sorted(pair)) for pair in branches[:, one].T.tolist()} for one in groups]
    assert sum(map(len, pairs)) == len(set.union(*pairs))


def test_groups_of_lines_are_held_out():
    splits = outages.splits_of_groups(750, seed=0)
    check_splits(splits, 750)
    used = []
    for split in splits:
        groups = [set((part % outages.GROUPS).tolist()) for part in split]
        assert [len(group) for group in groups] == [8, 1, 1]
        assert not set.union(*groups[1:]) & groups[0]
        used += [*groups[1], *groups[2]]
    assert sorted(used) == list(range(outages.GROUPS))


def test_pandapower_is_named_if_it_is_missing():
    if find_spec("pandapower"):
        pytest.skip("pandapower is installed")
    with pytest.raises(MissingExtraError, match=r'pip install "haarpool\[power\]"'):
        make("power")


@old_cases
@pytest.mark.parametrize("regions", [0, 10])
def test_power_flow(regions):
    pytest.importorskip("pandapower", reason="pandapower is not installed", exc_type=ImportError)
    made = make("power", case="case118", regions=regions, number=20)
    assert same(made, make("power", case="case118", regions=regions, number=20))
    y = made.graphs["y"]
    assert y.shape == (20, 118, 2)
    assert np.abs(y[:, :, 0].mean(1)).max() < 1e-4  # angles less their mean over buses
    assert np.abs(y[:, :, 1].mean(0)).max() < 1e-6  # magnitudes less their mean over scenarios
    assert np.isfinite(y).all()
    change = make("power-change", case="case118", regions=regions, number=20).graphs["y"]
    assert np.abs(change.mean(0)).max() < 1e-4
    assert np.ptp(y - change, axis=0).max() < 1e-4
    check_splits(made.splits, 20)


@old_cases
def test_power_flow_with_outages():
    pytest.importorskip("pandapower", reason="pandapower is not installed", exc_type=ImportError)
    made = make("outages", case="case118", number=30)
    assert same(made, make("outages", case="case118", number=30))
    keys = [
        set((graph["edge_index"][0] * 118 + graph["edge_index"][1]).tolist())
        for graph in made.graphs
    ]
    everything = set.union(*keys)
    assert any(key < everything for key in keys)
    for split in made.splits:
        train = set().union(*(everything - keys[g] for g in split.train))
        for g in (*split.validation, *split.test):
            assert not (everything - keys[g]) & train
    for graph in made.graphs:
        graph_of = sparse.coo_array((graph["edge_weight"], graph["edge_index"]), (118, 118))
        assert connected_components(graph_of)[0] == 1
        assert np.isfinite(graph["y"]).all()
