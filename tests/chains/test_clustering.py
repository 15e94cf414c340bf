"""Every registered clustering: any graph, exactly K steps, the same chain every time."""

import itertools
import os
import sys
from importlib.metadata import EntryPoint, EntryPoints

import joblib
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

import haarpool as hp
from haarpool._modules import load_entry_points
from haarpool.chains.clustering import batches, find_method, registry, spectral
from haarpool.chains.clustering.packing import packed
from haarpool.chains.graph_batch import GraphBatch
from helpers.commands import run_python
from helpers.strategies import at_most, graphs

METHODS = sorted(hp.clusterings())
FREE = {name for name, text in hp.clusterings().items() if "chooses the number" in text}
SLOW = {"hdbscan", "kmeans", "optics", "spectral-kmeans"}
DATASETS = ["MUTAG", "PROTEINS", "NCI1", "NCI109", "Mutagenicity"]


def check_chain(chain, graph, num_levels, method, ratio=0.5, top=1):
    assert chain.num_levels == num_levels
    assert chain.sizes[0] == graph.shape[0]
    assert top is None or chain.sizes[-1] == 1
    for level, (fine, coarse) in enumerate(itertools.pairwise(chain.sizes)):
        assert coarse < fine or fine == 1
        asked = max(1, int(ratio * fine + 1e-9))
        if top == 1 and level == num_levels - 1:
            asked = 1
        if method not in FREE:
            assert coarse <= asked
        if method in ("matching", "paris"):
            assert coarse == asked


def test_registered_methods():
    assert {"dbscan", "hdbscan", "leiden", "louvain", "optics"} <= FREE
    assert {"kmeans", "matching", "metis", "paris", "spectral", "spectral-kmeans"} <= set(METHODS)
    for summary in hp.clusterings().values():
        assert 10 < len(summary) <= 80


@pytest.mark.parametrize("method", METHODS)
@at_most(25)
@given(graph=graphs(), num_levels=st.integers(1, 4), top=st.sampled_from([1, None]))
def test_any_graph(method, graph, num_levels, top):
    before = graph.copy()
    chain = hp.build_chain(graph, num_levels, top=top, method=method, seed=3)
    check_chain(chain, graph, num_levels, method, top=top)
    assert hp.build_chain(graph, num_levels, top=top, method=method, seed=3) == chain
    assert (graph != before).nnz == 0


ODD = {
    "one node": np.zeros((1, 1)),
    "one node with a self-loop": np.ones((1, 1)),
    "two nodes": np.array([[0, 1], [1, 0]]),
    "two lonely nodes": np.zeros((2, 2)),
    "no edges": np.zeros((9, 9)),
    "nothing but self-loops": np.eye(6),
    "star": nx.to_numpy_array(nx.star_graph(20)),
    "complete": nx.to_numpy_array(nx.complete_graph(11)),
    "isolated nodes": nx.to_numpy_array(nx.disjoint_union(nx.path_graph(7), nx.empty_graph(8))),
    "huge and tiny weights": np.diag([1e-12, 1.0, 1e12, 1.0], 1) + np.diag([1e-12, 1, 1e12, 1], -1),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ODD)
def test_odd_graphs(method, name):
    for num_levels in (1, 3):
        chain = hp.build_chain(ODD[name], num_levels, method=method)
        check_chain(chain, ODD[name], num_levels, method)
    assert hp.build_chain(ODD[name], method=method).sizes[-1] == 1  # down to one node


@pytest.mark.slow
@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("method", METHODS)
def test_real_graphs(tu_graphs, method, name):
    """A sample of every dataset; and its largest graph, and that with the most components."""
    everything = tu_graphs(name)
    components = [csgraph.connected_components(g)[0] for g in everything]
    if name == "Mutagenicity":
        assert max(components) == 319
    if name != "MUTAG":
        assert max(components) > 1
    sample = everything[:: len(everything) // (5 if method in SLOW else 25)]
    largest = max(everything, key=lambda g: g.shape[0])
    for graph in [*sample, largest, everything[int(np.argmax(components))]]:
        check_chain(hp.build_chain(graph, 3, method=method, seed=1), graph, 3, method)


PROGRAM = """
import networkx as nx, haarpool as hp
graph = nx.connected_watts_strogatz_graph(40, 4, 0.2, seed=1)
for method in sorted(hp.clusterings()):
    print(method, hp.build_chain(graph, 3, method=method, seed=5).digest)
"""


@pytest.mark.slow
def test_same_seed_same_chain_in_another_process_with_other_threads():
    outputs = set()
    for threads in ("1", "2"):
        env = os.environ | {"OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        outputs.add(run_python(PROGRAM, env=env).out)
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == len(METHODS)


@pytest.mark.parametrize(
    "method", ["matching", "metis", "louvain", "leiden", "kmeans", "spectral-kmeans"]
)
def test_seed_matters_where_something_is_drawn(method):
    graph = nx.gnm_random_graph(60, 120, seed=0)
    chains = {hp.build_chain(graph, 2, method=method, seed=s).digest for s in range(6)}
    assert len(chains) > 1


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"random"}))  # a control
def test_weights_change_clusters(method):
    """Heavy pairs around a ring, whose ends are numbered so that order does not help."""
    ring = [0, 5, 1, 4, 2, 7, 3, 6]
    A = np.zeros((8, 8))
    for i, (u, v) in enumerate(zip(ring, ring[1:] + ring[:1], strict=True)):
        A[u, v] = A[v, u] = 1.0 if i % 2 else 100.0
    parent = hp.build_chain(A, 1, top=None, method=method).parents[0]
    pairs = {frozenset(np.flatnonzero(parent == p).tolist()) for p in set(parent)}
    assert pairs == {frozenset(p) for p in ((0, 5), (1, 4), (2, 7), (3, 6))}


def test_clusters_of_graph_distances_stay_within_components():
    graph = nx.disjoint_union_all([nx.path_graph(4)] * 3)
    component = np.repeat(np.arange(3), 4)
    for method in ("dbscan", "optics", "hdbscan"):
        parent = hp.build_chain(graph, 1, top=None, method=method).parents[0]
        for p in set(parent):
            assert len(set(component[parent == p])) == 1


def test_metis_does_not_print_and_leaves_the_output_alone(capfd):
    """Not even from several threads, which share it."""
    with joblib.parallel_config(backend="threading", n_jobs=4):
        hp.precompute([nx.star_graph(n) for n in range(8, 60)], 3, method="metis", cache=False)
    print("still here")
    assert capfd.readouterr().out == "still here\n"


# ------------------------------------------------------------------ how many clusters


def test_ratio_per_level_and_sizes():
    karate = nx.karate_club_graph()
    assert hp.build_chain(karate, ratio=[0.5, 0.25], top=None).sizes == (34, 17, 4)
    assert hp.build_chain(karate, 2, ratio=(0.5, 0.25)).sizes == (34, 17, 1)
    assert hp.build_chain(karate, sizes=[20, 20, 3], method="matching").sizes == (34, 20, 20, 3)
    assert hp.build_chain(nx.path_graph(5), sizes=[8, 2], method="matching").sizes == (5, 5, 2)
    assert hp.build_chain(karate, sizes=iter([17, 1])).sizes == (34, 17, 1)
    assert hp.build_chain(karate, 3, sizes="paper").sizes == (34, 18, 10, 1)
    assert hp.build_chain(karate, sizes="paper", method="matching").sizes == (
        34, 18, 10, 6, 4, 3, 2, 1,
    )  # fmt: skip


def everything_apart(adjacency, num_clusters, *, seed):
    return np.arange(adjacency.shape[0])


def all_noise(adjacency, num_clusters, *, seed):
    return np.full(adjacency.shape[0], -1)


@pytest.mark.parametrize("method", [everything_apart, all_noise])
def test_a_level_that_does_not_shrink_is_matched(method):
    graph = nx.path_graph(10)
    chain = hp.build_chain(graph, 2, method=method, seed=4)
    assert chain.sizes == (10, 5, 1)
    assert chain == hp.build_chain(graph, 2, method="matching", seed=4)


def test_noise_becomes_singletons():
    def method(adjacency, num_clusters, *, seed):
        return [-1, 7, 7, -1, 2, 2]

    chain = hp.build_chain(nx.path_graph(6), 1, top=None, method=method)
    assert chain.parents[0].tolist() == [0, 1, 1, 2, 3, 3]


def test_a_function_may_change_what_it_is_given():
    def greedy(adjacency, num_clusters, *, seed, keep=2):
        adjacency.data[:] = 0
        return np.arange(adjacency.shape[0]) // keep

    chain = hp.build_chain(nx.path_graph(6), 1, top=None, method=greedy, options={"keep": 3})
    assert chain.sizes == (6, 2)
    assert chain.adjacency(0).sum() == 10


def test_plain_functions_and_objects_that_can_be_called():
    class Blocks:
        def __call__(self, adjacency, num_clusters, seed=0, width=2):
            return np.arange(adjacency.shape[0]) // width

    def rest(adjacency, number, *, seed, **more):
        return np.arange(adjacency.shape[0]) // 3

    graph = nx.path_graph(6)
    assert hp.build_chain(graph, 1, top=None, method=Blocks()).sizes == (6, 3)
    assert hp.build_chain(graph, 1, top=None, method=Blocks(), options={"width": 3}).sizes == (6, 2)
    assert hp.build_chain(graph, 1, top=None, method=rest).sizes == (6, 2)
    with pytest.raises(hp.HaarPoolError, match="takes no seed"):
        hp.build_chain(graph, 1, top=None, method=min)


@pytest.fixture
def own_method():
    @hp.register("pairs", version="1")
    def pairs(adjacency, num_clusters, *, seed):
        """Neighbours in the order of nodes."""
        return np.arange(adjacency.shape[0]) // 2

    yield pairs
    del registry._METHODS["pairs"]


def test_registered_methods_are_like_our_own(own_method):
    assert hp.clusterings()["pairs"] == "Neighbours in the order of nodes"
    expected = hp.build_chain(nx.path_graph(8), 2, method="pairs")
    assert expected.sizes == (8, 4, 1)
    assert hp.build_chain(nx.path_graph(8), 2, method=own_method) == expected
    with pytest.raises(hp.HaarPoolError, match="an unused name"):
        hp.register("spectral")(own_method)


# ------------------------------------------------------------------ options


@pytest.fixture
def steps():
    """A method with an option of each type, and limits."""

    @hp.register("steps", limits={"stride": (1, 9), "share": (0, None), "size": ("s", "m")})
    def steps(
        adjacency,
        num_clusters,
        *,
        seed,
        stride=2,
        share=0.5,
        fast=False,
        kind="a",
        size="m",
        more=None,
    ):
        """Neighbours in the order of nodes."""
        return np.arange(adjacency.shape[0]) // stride

    yield
    del registry._METHODS["steps"]


WRONG = {
    "stride": [(2.5, "in 1..9"), (0, "in 1..9"), (-1, "in 1..9"), (10, "in 1..9"), (True, "in 1")],
    "share": [(0, r"in \(0, inf\)"), ("half", r"in \(0"), (np.nan, r"in \(0")],
    "fast": [(2, "True, False, 0 or 1"), ("no", "True, False, 0 or 1")],
    "kind": [(1, "as text"), (None, "as text")],
    "size": [("large", '"s" or "m"'), (1, '"s" or "m"')],
}


@pytest.mark.parametrize("name", WRONG)
def test_values_of_options_are_like_the_default(steps, name):
    default = find_method("steps", {}).options[name]
    for value, limits in WRONG[name]:
        with pytest.raises(hp.HaarPoolError, match=f"{name} of options {limits}") as caught:
            hp.build_chain(np.eye(4), 1, method="steps", options={name: value})
        assert caught.value.parameter == f"options.{name}"
        if name not in ("fast", "size"):
            assert caught.value.values == {f"options.{name}": default}


def test_right_values_of_options(steps):
    options = {"stride": np.int64(3), "share": 2, "fast": True, "kind": "b", "more": [1]}
    chain = hp.build_chain(nx.path_graph(9), 1, top=None, method="steps", options=options)
    assert chain.sizes == (9, 3)


def test_options_without_limits_have_a_type():
    def plain(adjacency, num_clusters, *, seed, shift=0, scale=0.0):
        return np.zeros(adjacency.shape[0], int)

    graph = nx.path_graph(4)
    hp.build_chain(graph, 1, method=plain, options={"shift": -3, "scale": -1})
    with pytest.raises(hp.HaarPoolError, match=r"shift of options as a whole number, got 0.5"):
        hp.build_chain(graph, 1, method=plain, options={"shift": 0.5})
    with pytest.raises(hp.HaarPoolError, match="scale of options as a number, got 'x'"):
        hp.build_chain(graph, 1, method=plain, options={"scale": "x"})


def no_default(adjacency, num_clusters, *, seed, stride):
    return np.arange(adjacency.shape[0]) // stride


@pytest.mark.parametrize(
    ("function", "limits", "message"),
    [
        (no_default, {}, "a default of the option 'stride' of no_default, got none"),
        (everything_apart, {"width": (1, 3)}, "everything_apart: it has none, got 'width'"),
        (spectral.spectral, {"by_sizes": (0, 1)}, "options of spectral: by_size, got 'by_sizes'"),
        (
            find_method("kmeans", {}).function,
            {"n_init": (1, 3)},
            "limits of kmeans with the default n_init=10 inside",
        ),
    ],
)
def test_options_that_cannot_be_registered(function, limits, message):
    with pytest.raises(hp.HaarPoolError, match=message):
        hp.register("wrong", limits=limits)(function)
    assert "wrong" not in hp.clusterings()


def test_errors_inside_of_a_method_name_it():
    def broken(adjacency, num_clusters, *, seed, more=None):
        return np.array(["a"]) // 2

    graph = GraphBatch.of(hp.as_adjacency(nx.path_graph(6)))
    for method in (
        registry.ClusteringMethod("own", broken),
        registry.ClusteringMethod("batched", no_default, batched=broken),
    ):
        arguments = (graph, np.array([3]), method, 0, None)
        with pytest.raises(TypeError, match="floor_divide") as caught:
            batches.cluster(*arguments, {})
        note = f"This is an error of the clustering method '{method.name}'."
        assert caught.value.__notes__ == [note]
    method = registry.ClusteringMethod("own", broken)
    with pytest.raises(hp.HaarPoolError, match=r"options valid for method 'own'.*floor_divide"):
        batches.cluster(graph, np.array([3]), method, 0, None, {"more": 1})


# ------------------------------------------------------------------ installed packages

PACKAGE = """
import haarpool as hp

@hp.register("packed")
def packed(adjacency, num_clusters, *, seed):
    '''All nodes in one cluster.'''
    return [0] * adjacency.shape[0]
"""


def test_packages_register_clusterings_by_entry_points(monkeypatch, tmp_path):
    (tmp_path / "package_of_clusterings.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    group = {"group": "haarpool.clusterings"}
    points = [
        EntryPoint(name="bad", value="no_such_module", **group),
        EntryPoint(name="good", value="package_of_clusterings", **group),
    ]
    asked = []

    def found(group):
        asked.append(group)
        return EntryPoints(points).select(group=group)

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    load_entry_points.cache_clear()
    graph = nx.path_graph(4)
    hp.build_chain(graph, 1, method="matching")
    assert asked == []  # only for names that are not known
    with pytest.warns(hp.HaarPoolWarning, match=r"bad = no_such_module of haarpool\.clusterings"):
        assert hp.build_chain(graph, 1, top=None, method="packed").sizes == (4, 1)
    assert hp.clusterings()["packed"] == "All nodes in one cluster"
    assert asked == ["haarpool.clusterings"]
    load_entry_points.cache_clear()
    del sys.modules["package_of_clusterings"]


# ------------------------------------------------------------------ features


@pytest.mark.parametrize("method", ["dbscan", "hdbscan", "kmeans", "optics"])
def test_features_change_clusters(method):
    """Two groups far apart, whatever the graph says."""
    rng = np.random.default_rng(0)
    group = np.arange(20) % 2
    features = np.stack([100 * group, rng.normal(size=20)], axis=1)
    chain = hp.build_chain(nx.path_graph(20), sizes=[2], method=method, features=features)
    for cluster in range(chain.sizes[1]):
        assert len(set(group[chain.parents[0] == cluster])) == 1


def test_features_of_clusters_are_means_over_level_0():
    seen = []

    def method(adjacency, num_clusters, *, seed, features):
        seen.append(features[:, 0].tolist())
        return {6: [0, 0, 0, 1, 2, 3], 4: [0, 0, 1, 2], 3: [0, 0, 1]}[len(features)]

    features = np.array([[0.0], [3.0], [6.0], [11.0], [8.0], [9.0]])
    hp.build_chain(nx.path_graph(6), 3, ratio=0.7, top=None, method=method, features=features)
    assert seen == [[0, 3, 6, 11, 8, 9], [3, 11, 8, 9], [5, 8, 9]]  # not (3 + 11) / 2
    assert features[:, 0].tolist() == [0, 3, 6, 11, 8, 9]


# ------------------------------------------------------------------ large graphs


def grid(side):
    return sparse.csr_array(nx.to_scipy_sparse_array(nx.grid_2d_graph(side, side), dtype=float))


def uniform(size, edges, seed=0):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, size, (2, edges))
    graph = sparse.csr_array((np.ones(edges), (u, v)), shape=(size, size))
    return sparse.csr_array(graph + graph.T)


LARGE = {
    "grid": grid(60),
    "path": sparse.csr_array(nx.to_scipy_sparse_array(nx.path_graph(5000), dtype=float)),
    "star": sparse.csr_array(nx.to_scipy_sparse_array(nx.star_graph(3000), dtype=float)),
    "uniform": uniform(4000, 12_000),
    "molecules": sparse.block_diag([grid(5)] * 200, format="csr"),
    "no edges": sparse.csr_array((3000, 3000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("method", ["spectral", "matching", "metis", "louvain", "leiden"])
def test_large_graphs(method, name):
    graph = sparse.csr_array(LARGE[name])
    chain = hp.build_chain(graph, 2, method=method, top=None)
    check_chain(chain, graph, 2, method, top=None)
    if method == "spectral":
        assert hp.build_chain(graph, 2, method=method, top=None) == chain
        few = hp.build_chain(graph, sizes=[12, 3])
        assert len(few.sizes) == 3
        assert few.sizes[1] <= 12
        assert few.sizes[2] <= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grid", "path"])
def test_few_clusters_of_a_large_graph_are_even(name):
    step = hp.step_quality(hp.build_chain(LARGE[name], sizes=[20]), 0)
    assert step.clusters == 20
    assert step.balance < 2
    other = hp.step_quality(hp.build_chain(LARGE[name], sizes=[20], method="metis"), 0)
    assert step.cut < 1.5 * other.cut


def test_extreme_weights_of_a_large_graph():
    A = LARGE["path"].copy()
    A[0, 1] = A[1, 0] = 1e-200
    with pytest.raises(hp.HaarPoolError, match="orders of magnitude"):
        hp.build_chain(A, 1, top=None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grid", "uniform"])
def test_division_cuts_hardly_more_than_the_whole(name, monkeypatch):
    graph = LARGE[name][:1500, :1500]
    cut = hp.step_quality(hp.build_chain(graph, 1, top=None), 0).cut
    monkeypatch.setattr(spectral, "MAX_DENSE", 2000)
    whole = hp.step_quality(hp.build_chain(graph, 1, top=None), 0).cut
    assert cut < 1.1 * whole


def test_dense_methods_reject_large_graphs():
    for method in ("dbscan", "optics", "hdbscan", "spectral-kmeans"):
        with pytest.raises(hp.HaarPoolError, match=r"at most 5000.*6000.*matching"):
            hp.build_chain(sparse.csr_array((6000, 6000)), 1, top=None, method=method)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_packing_is_even(sizes, num_clusters):
    labels = packed(np.array(sizes), num_clusters)
    filled = [0] * num_clusters
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):  # the rule, item by item
        assert labels[i] == filled.index(min(filled))
        filled[labels[i]] += sizes[i]


def test_metis_k_way_and_seeds():
    graph = nx.grid_2d_graph(12, 12)
    for recursive in (True, False):
        options = {"recursive": recursive}
        chain = hp.build_chain(graph, sizes=[8], method="metis", options=options)
        assert chain.sizes[1] <= 8
        assert np.bincount(chain.parents[0]).max() <= 30


def test_options_have_defaults_that_are_known():
    assert find_method("kmeans", {}).options == {"n_init": 10}
    assert find_method("kmeans", {}).takes_features
    assert not find_method("spectral", {}).takes_features
