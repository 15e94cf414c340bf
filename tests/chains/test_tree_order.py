"""Chains in tree order: the same wavelets on a renumbered graph."""

import numpy as np
import pytest
from hypothesis import given

import haarpool as hp
from haarpool import Chain
from haarpool.chains.dataset_chains import precompute
from haarpool.chains.tree_order import Reordered
from haarpool.haar.basis import haar_basis
from helpers.strategies import at_most, chains, signal
from helpers.tolerances import close


def orders_of(old, new, order):
    """Return the old number of each new node on every level."""
    orders = [order]
    for before, after in zip(old.parents, new.parents, strict=True):
        above = np.empty(after.max() + 1, np.int64)
        above[after] = before[orders[-1]]
        orders.append(above)
    return orders


def columns_of(chain, orders):
    """Name each column of U_0: its level, the old number of its cluster, its number in this."""
    K = chain.num_levels
    names = [(K, 0, t) for t in range(chain.sizes[K])]
    for j in reversed(range(K)):
        _, start, clusters = chain.members(j)
        for cluster, size in zip(clusters, np.diff(start), strict=True):
            names += [(j, int(orders[j + 1][cluster]), t) for t in range(size - 1)]
    return names


def position_of(names):
    return {name: position for position, name in enumerate(names)}


@given(chains())
def test_members_have_consecutive_numbers_on_all_levels(chain):
    new, order = chain.reorder()
    assert sorted(order) == list(range(chain.sizes[0]))
    assert new.sizes == chain.sizes
    assert (new.order, new.measure) == (chain.order, chain.measure)
    for parent in new.parents:
        assert (np.diff(parent) >= 0).all()
    below = np.arange(new.sizes[0])
    for parent in new.parents:
        below = parent[below]
        assert (np.diff(below) >= 0).all()  # so are all nodes below a cluster
    for j, old_number in enumerate(orders_of(chain, new, order)[:-1]):
        assert len(set(old_number)) == chain.sizes[j]


@given(chains())
def test_the_wavelets_are_the_same(chain):
    new, order = chain.reorder()
    orders = orders_of(chain, new, order)
    old_names = columns_of(chain, [np.arange(size) for size in chain.sizes])
    position = position_of(old_names)
    columns = [position[name] for name in columns_of(new, orders)]
    U, expected = haar_basis(new).toarray(), haar_basis(chain).toarray()[order][:, columns]
    assert np.array_equal(U, expected)
    assert columns[: chain.sizes[-1]] == list(range(chain.sizes[-1]))
    x = signal(chain)
    assert close(hp.adjoint(new, x[order]), hp.adjoint(chain, x)[columns])
    assert close(U.T @ U, np.eye(len(U)))


@given(chains(orders=("degree",)))
def test_all_coefficients_stay_if_no_two_degrees_are_equal(chain):
    degrees = [graph.sum(1) - graph.diagonal() for graph in chain.graphs]
    x, (new, order) = signal(chain), chain.reorder()
    if all(np.diff(np.sort(degree)).min(initial=1) > 1e-6 for degree in degrees):
        assert close(hp.adjoint(new, x[order]), hp.adjoint(chain, x))


def test_degrees_that_differ_are_among_the_examples():
    rng = np.random.default_rng(0)
    graph = np.triu(rng.uniform(1, 2, (12, 12)), 1)
    chain = hp.build_chain(graph + graph.T, num_levels=3)
    new, order = chain.reorder()
    assert (order != np.arange(12)).any()
    assert np.array_equal(haar_basis(new).toarray(), haar_basis(chain).toarray()[order])


@given(chains())
def test_the_top_level_and_energies_are_the_same(chain):
    new, order = chain.reorder()
    x, K = signal(chain), chain.num_levels
    coarsest = [hp.compress(*pair)[: chain.sizes[K]] for pair in ((chain, x), (new, x[order]))]
    assert close(coarsest[1], coarsest[0])
    by_level = [
        np.split(np.square(hp.adjoint(one, values)), one.sizes[:0:-1])
        for one, values in ((chain, x), (new, x[order]))
    ]
    for before, after in zip(*by_level, strict=True):
        assert close(after.sum(0), before.sum(0))


@given(chains())
def test_the_graphs_of_all_levels_are_renumbered(chain):
    new, order = chain.reorder()
    for level, old_number in enumerate(orders_of(chain, new, order)):
        expected = chain.graphs[level].toarray()[old_number][:, old_number]
        assert close(new.graphs[level].toarray(), expected)


@given(chains(orders=("index",)))
def test_what_is_known_stays_known(chain):
    fresh = Chain(chain.parents, chain.order, chain.measure, chain.input_graph)
    assert len(fresh.reorder().chain.known_graphs) == 1
    assert "graphs" not in fresh.__dict__  # nothing was computed
    assert fresh.graphs is fresh.known_graphs
    again = fresh.reorder().chain
    assert len(again.coarse) == chain.num_levels
    without = Chain.from_parents(chain.parents)
    assert without.known_graphs == ()
    assert not without.reorder().chain.has_graph


@given(chains())
def test_a_chain_in_tree_order_stays_as_it_is(chain):
    if chain.order == "index":
        new = chain.reorder().chain
        again, order = new.reorder()
        assert again == new
        assert order.tolist() == list(range(chain.sizes[0]))


def test_the_result_has_names():
    result = Chain.from_parents([[0, 1, 0, 1]]).reorder()
    assert isinstance(result, Reordered)
    assert isinstance(result.chain, Chain)
    assert result.order.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("order", ["index", "degree"])
def test_graphs_of_a_forest_stay_in_order(order):
    rng = np.random.default_rng(1)
    graphs = []
    for n in (9, 1, 14, 5, 14):
        upper = np.triu(rng.random((n, n)) < 0.4, 1)
        graphs.append(1.0 * (upper | upper.T))
    computed = precompute(graphs, num_levels=2, order=order, cache=False, progress=False)
    (forest,) = computed.forests()
    new, permutation = forest.reorder()
    start = 0
    for chain in computed:
        size = chain.sizes[0]
        one, alone = chain.reorder()
        assert (permutation[start : start + size] == start + alone).all()
        x = rng.standard_normal((size, 2))
        assert close(hp.adjoint(one, x[alone])[:1], hp.adjoint(chain, x)[:1])
        start += size
    of_graph = new.parents[2][new.parents[1][new.parents[0]]]
    assert of_graph.tolist() == np.repeat(np.arange(5), [len(graph) for graph in graphs]).tolist()


@at_most(20)
@given(chains(max_nodes=60))
def test_signals_come_back(chain):
    new, order = chain.reorder()
    x = signal(chain)
    coefficients = hp.adjoint(new, x[order])
    restored = np.empty_like(x)
    restored[order] = hp.forward_transform(new, coefficients)
    assert close(restored, x)
    assert np.array_equal(x[order][np.argsort(order)], x)
