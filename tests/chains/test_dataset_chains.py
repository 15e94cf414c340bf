"""Chains of whole datasets: the same as one by one, cached, resumable, on any number of workers."""

import contextlib
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import haarpool as hp
from haarpool.chains.cache import ChainCache, pack, unpack
from haarpool.chains.clustering import registry
from haarpool.chains.graph_batch import GraphBatch, as_graph_batch
from helpers.commands import HANGS, is_alive, run_until_signal, start_process, wait_until
from helpers.files import count_cached_chains, write_tu
from helpers.graphs import random_graphs
from helpers.strategies import at_most, graphs


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


# ------------------------------------------------------------------ the same chains


@at_most(40)
@given(st.lists(graphs(), min_size=1, max_size=8), st.integers(1, 4), st.sampled_from([1, None]))
def test_a_batch_gives_the_chains_of_its_graphs(batch, num_levels, top):
    """To the last bit, weights or not, connected or not."""
    chains = hp.precompute(batch, num_levels, top=top, cache=False)
    assert list(chains) == [hp.build_chain(graph, num_levels, top=top) for graph in batch]


def test_components_of_very_different_weight():
    """Each is scaled by itself, in a batch and alone."""
    path = nx.to_numpy_array(nx.path_graph(4))
    graph = sparse.block_diag([path, 1e-150 * path], format="csr")
    chain = hp.build_chain(graph, 1, top=None)
    assert hp.precompute([graph, path], 1, top=None, cache=False)[0] == chain
    assert chain.parents[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@at_most(20)
@given(st.lists(graphs(), min_size=1, max_size=6))
def test_down_to_one_node_each(batch):
    chains = hp.precompute(batch, cache=False)
    assert list(chains) == [hp.build_chain(graph) for graph in batch]


@pytest.mark.parametrize("name", ["NCI1", "Mutagenicity"])
def test_real_graphs_in_batches(tu_graphs, name):
    sample = tu_graphs(name)[::7]
    chains = hp.precompute(sample, 3, sizes="paper", cache=False)
    for chain, graph in zip(chains, sample, strict=True):
        assert chain == hp.build_chain(graph, 3, sizes="paper")


@pytest.mark.parametrize("method", ["spectral", "metis", "kmeans", "leiden"])
def test_any_number_of_workers(method):
    dataset = random_graphs(90)
    one = hp.precompute(dataset, 3, method=method, cache=False, n_jobs=1)
    two = hp.precompute(dataset, 3, method=method, cache=False, n_jobs=2)
    assert list(one) == list(two)
    assert list(one)[:5] == [hp.build_chain(graph, 3, method=method) for graph in dataset[:5]]


def test_large_and_small_graphs_together():
    dataset = [nx.path_graph(5), nx.path_graph(1500), nx.empty_graph(1), nx.grid_2d_graph(40, 40)]
    chains = hp.precompute(dataset * 2, 3, cache=False)
    assert list(chains) == [hp.build_chain(graph, 3) for graph in dataset] * 2
    assert chains.computed == 4


def test_features_for_every_graph():
    rng = np.random.default_rng(0)
    dataset = random_graphs(6)
    features = [rng.standard_normal((len(graph), 3)) for graph in dataset]
    chains = hp.precompute(dataset, 2, method="kmeans", features=features, cache=False)
    one_by_one = [
        hp.build_chain(graph, 2, method="kmeans", features=own)
        for graph, own in zip(dataset, features, strict=True)
    ]
    assert list(chains) == one_by_one
    without = hp.precompute(dataset, 2, method="kmeans", cache=False)
    assert list(without) != one_by_one


def test_a_pyg_dataset_and_its_features():
    import torch
    from torch_geometric.data import Data

    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    dataset = [Data(edge_index=edges, x=torch.eye(4)), Data(edge_index=edges, x=torch.ones(4, 4))]
    chains = hp.precompute(dataset, 2, method="kmeans", features="x", cache=False)
    assert [chain.sizes for chain in chains] == [(4, 2, 1), (4, 1, 1)]
    assert chains.computed == 2  # the same graph, other features


def test_chains_are_a_sequence():
    dataset = random_graphs(7)
    chains = hp.precompute(iter(dataset), 2, cache=False, order="index", measure="mass")
    assert len(chains) == 7
    assert chains[-1] == chains[6] == hp.build_chain(dataset[6], 2, order="index", measure="mass")
    assert chains[1:3] == [chains[1], chains[2]]
    assert repr(chains).startswith("Chains(7 graphs, 7 computed in")
    with pytest.raises(IndexError, match="chain 7 of 7"):
        chains[7]
    for step, own in zip(chains.quality(), itertools.count()):
        single = [hp.step_quality(chain, own) for chain in chains]
        assert np.allclose(step[:6], np.mean([s[:6] for s in single], axis=0))
    assert list(hp.precompute([], 2, cache=False)) == []


def test_more_graphs_than_a_block(monkeypatch):
    monkeypatch.setattr(import_module("haarpool.chains.dataset_chains"), "BLOCK", 4)
    dataset = random_graphs(11)
    chains = hp.precompute(dataset + dataset[:3], 2, cache=False)
    assert list(chains) == [hp.build_chain(graph, 2) for graph in dataset + dataset[:3]]
    assert chains[9] == hp.build_chain(dataset[9], 2)
    assert chains.computed == 11
    batch = as_graph_batch(dataset)
    assert list(hp.precompute(batch, 2, cache=False)) == list(chains[:11])


def test_chunks_are_bounded(monkeypatch):
    """However fast the graphs before them were, large graphs do not pile up."""
    fitting = import_module("haarpool.chains.dataset_chains")._fitting
    assert fitting(np.array([20] * 500)) == 500
    assert fitting(np.array([1000] * 500)) == 16
    assert fitting(np.array([20, 20, 2000, 20])) == 2
    assert fitting(np.array([2000, 20])) == 1
    assert fitting(np.array([1024])) == 1
    monkeypatch.setattr(import_module("haarpool.chains.dataset_chains"), "CHUNK_ENTRIES", 1000)
    dataset = random_graphs(12)
    chains = hp.precompute(dataset, 2, cache=False)
    assert list(chains) == [hp.build_chain(graph, 2) for graph in dataset]


def test_batches_can_be_cut():
    batch = as_graph_batch([np.eye(n) for n in (1, 2, 3, 4)])
    assert [g.shape[0] for g in batch] == [1, 2, 3, 4]
    assert [g.shape[0] for g in batch[1:3]] == [2, 3]
    assert batch.take(np.array([3, 0]))[0].sizes.tolist() == [4, 1]
    assert batch[-1].shape == batch[3].shape == (4, 4)
    assert len(batch[3:1]) == 0
    with pytest.raises(IndexError):
        batch[4]
    with pytest.raises(IndexError):
        batch[::2]


def test_errors_name_the_graph():
    good, bad = np.eye(3), np.triu(np.ones((3, 3)))
    with pytest.raises(hp.HaarPoolError, match=r"symmetric.*in graph 2 A\[0, 1\]"):
        hp.precompute([good, good, bad], 1, cache=False)
    chains = hp.precompute([good, bad], 1, cache=False, symmetrize=True)
    assert chains[1].adjacency(0).sum() == 6
    with pytest.raises(hp.HaarPoolError, match=r"one node.*in graph 1 an empty graph"):
        hp.precompute(GraphBatch(sparse.csr_array(np.eye(3)), np.array([0, 3, 3])), 1, cache=False)
    wrong = {
        r"features of shape \(3, d\).*in graph 1": [np.ones((3, 1)), np.ones((2, 1))],
        "features of every graph": [np.ones((3, 1))],
        "same width": [np.ones((3, 1)), np.ones((3, 2))],
    }
    for message, features in wrong.items():
        with pytest.raises(hp.HaarPoolError, match=message):
            hp.precompute([good, good], 1, method="kmeans", features=features, cache=False)


def test_an_error_in_a_worker_arrives():
    def nonsense(adjacency, num_clusters, *, seed):
        return "clusters"

    with pytest.raises(hp.HaarPoolError, match="one whole number per node"):
        hp.precompute(random_graphs(9), 2, method=nonsense, n_jobs=2)


def test_an_error_of_a_users_own_method_arrives_as_it_is():
    def broken(adjacency, num_clusters, *, seed, share=0.5):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        hp.precompute(random_graphs(9), 2, method=broken, n_jobs=2)
    assert not isinstance(caught.value, hp.HaarPoolError)


def test_workers_load_neither_torch_nor_pyg():
    parent = os.getpid()

    def spy(adjacency, num_clusters, *, seed):
        assert os.getpid() != parent, "not in a worker"
        heavy = {"torch", "torch_geometric"} & set(sys.modules)
        assert not heavy, heavy
        return np.arange(adjacency.shape[0]) // 2

    chains = hp.precompute(random_graphs(80), 2, method=spy, n_jobs=2)
    assert chains[0].num_levels == 2


# ------------------------------------------------------------------ the cache


@given(st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_packing(lengths):
    lengths = sorted(lengths, reverse=True)
    rng = np.random.default_rng(0)
    parents = [rng.integers(0, n, n) for n in lengths]
    seconds = [float(np.float32(0.1 * n)) for n in lengths]
    back, times = unpack(pack(parents, seconds))
    assert all(np.array_equal(a, b) for a, b in zip(parents, back, strict=True))
    assert times == seconds


def test_a_second_run_computes_nothing(cache):
    dataset = random_graphs(12)
    first = hp.precompute(dataset + dataset, 3, cache=cache)
    assert (first.computed, first.cached) == (12, 0)
    second = hp.precompute(dataset, 3, cache=cache)
    assert (second.computed, second.cached) == (0, 12)
    assert list(second) == list(first[:12])
    steps = [step.seconds for step in second.quality()]
    assert steps == [step.seconds for step in first.quality()]
    assert all(s > 0 for s in steps)


def test_what_the_key_depends_on(cache):
    dataset = random_graphs(2)
    weighted = [2.0 * nx.to_numpy_array(graph) for graph in dataset]
    recipes = [
        {"num_levels": 2},
        {"num_levels": 3},
        {"num_levels": 2, "ratio": 0.4},
        {"num_levels": 2, "top": None},
        {"num_levels": 2, "seed": 1},
        {"num_levels": 2, "sizes": "paper"},
        {"sizes": [5, 1]},
        {"num_levels": 2, "method": "matching"},
        {"num_levels": 2, "method": "metis"},
        {"num_levels": 2, "method": "metis", "recursive": False},
    ]
    for recipe, given_graphs in itertools.product(recipes, (dataset, weighted)):
        assert hp.precompute(given_graphs, cache=cache, **recipe).computed == 2
    for recipe in recipes:
        assert hp.precompute(dataset, cache=cache, **recipe).cached == 2
    # What is not part of the clusters is not part of the key.
    again = hp.precompute(dataset, 2, cache=cache, order="index", measure="mass")
    assert again.cached == 2
    explicit = hp.precompute(dataset, 2, method="metis", recursive=True, cache=cache)
    assert explicit.cached == 2


def test_keys_know_sizes(cache):
    """Where all content is zero, the shape is all there is."""
    z = np.zeros
    for size, width in ((2, None), (4, None), (2, 1), (4, 2), (8, 1), (2, 4)):
        features = None if width is None else [z((size, width))]
        chains = hp.precompute(
            [z((size, size))], 1, method="kmeans", features=features, cache=cache
        )
        assert chains.computed == 1
        assert chains[0].sizes[0] == size


def test_options_that_are_no_plain_values_are_not_cached(cache):
    @hp.register("table", version="1")
    def table(adjacency, num_clusters, *, seed, ids=()):
        return np.asarray(ids)[: adjacency.shape[0]]

    try:
        for ids in (np.zeros(3000, int), np.r_[0, 1, np.zeros(2998, int)]):
            chains = hp.precompute([np.eye(9)], 1, top=None, method="table", ids=ids, cache=cache)
            assert (chains.computed, chains.cached) == (1, 0)
            assert chains[0].sizes[1] == len(set(ids.tolist()))
    finally:
        del registry._METHODS["table"]


def test_one_thread_for_linear_algebra():
    """Else the sums, and so the clusters, could depend on how many there are."""
    from threadpoolctl import threadpool_info, threadpool_limits

    def spy(adjacency, num_clusters, *, seed):
        assert {library["num_threads"] for library in threadpool_info()} <= {1}
        return np.arange(adjacency.shape[0]) // 2

    with threadpool_limits(2):
        assert any(library["num_threads"] == 2 for library in threadpool_info())
        hp.precompute(random_graphs(3), 2, method=spy)


def test_another_version_of_a_method_is_another_method(cache):
    def halves(adjacency, num_clusters, *, seed):
        return np.arange(adjacency.shape[0]) % 2

    dataset = random_graphs(3)
    try:
        for version, computed in (("1", 3), ("1", 0), ("2", 3)):
            hp.register("halves", version=version)(halves)
            assert hp.precompute(dataset, 2, method="halves", cache=cache).computed == computed
    finally:
        del registry._METHODS["halves"]
    # A bare function has no version: nobody knows whether it is still the same.
    for _ in range(2):
        assert hp.precompute(dataset, 2, method=halves, cache=cache).computed == 3


def test_where_the_cache_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "here"))
    hp.precompute(random_graphs(2), 2)
    assert (tmp_path / "here" / "chains.sqlite").exists()
    assert ChainCache().info().chains == 2
    assert ChainCache(tmp_path / "there").path == tmp_path / "there" / "chains.sqlite"
    monkeypatch.delenv("HAARPOOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "system"))
    assert "haarpool" in str(ChainCache().path)


def garbage(path):
    path.write_bytes(b"this is no database " * 500)


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path):
    content = bytearray(path.read_bytes())
    for place in range(4096, len(content), 97):
        content[place] ^= 0xFF
    path.write_bytes(content)


def another_table(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE chains")
        connection.execute("CREATE TABLE chains (something TEXT)")
    connection.close()


@pytest.mark.parametrize("damage", [garbage, truncated, flipped, another_table])
def test_a_damaged_cache_is_rebuilt(cache, damage):
    dataset = random_graphs(60)
    first = hp.precompute(dataset, 3, cache=cache)
    damage(cache / "chains.sqlite")
    with pytest.warns(hp.HaarPoolWarning) as caught:
        second = hp.precompute(dataset, 3, cache=cache)
    assert len(caught) == 1
    assert "chains.sqlite" in str(caught[0].message)
    assert list(second) == list(first)
    third = hp.precompute(dataset, 3, cache=cache)
    assert (third.computed, third.cached) == (0, 60)
    assert list(third) == list(first)


def test_one_damaged_chain_is_computed_again(cache):
    dataset = random_graphs(20)
    first = hp.precompute(dataset, 3, cache=cache)
    with sqlite3.connect(cache / "chains.sqlite") as connection:
        rows = connection.execute("SELECT key, parents FROM chains LIMIT 3").fetchall()
        values = [b"", rows[1][1][:-1] + b"x", "text"]
        for (key, _), value in zip(rows, values, strict=True):
            connection.execute("UPDATE chains SET parents = ? WHERE key = ?", (value, key))
    connection.close()
    with pytest.warns(hp.HaarPoolWarning, match=r"damaged chains.*computed again"):
        second = hp.precompute(dataset, 3, cache=cache)
    assert (second.computed, second.cached) == (3, 17)
    assert list(second) == list(first)
    assert hp.precompute(dataset, 3, cache=cache).computed == 0


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("no folder")
    dataset = random_graphs(60)
    with pytest.warns(hp.HaarPoolWarning, match=r"cannot be used.*continuing without it") as caught:
        chains = hp.precompute(dataset, 3, cache=tmp_path / "file")
    assert len(caught) == 1
    assert list(chains) == [hp.build_chain(graph, 3) for graph in dataset]


def test_a_cache_that_can_only_be_read(cache, monkeypatch):
    dataset = random_graphs(40)
    hp.precompute(dataset[:10], 3, cache=cache)
    usual = ChainCache._open

    def read_only(self):
        connection = usual(self)
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(ChainCache, "_open", read_only)
    with pytest.warns(hp.HaarPoolWarning, match="cannot be used") as caught:
        chains = hp.precompute(dataset, 3, cache=cache)
    assert len(caught) == 1
    assert (chains.computed, chains.cached) == (30, 10)


def test_a_locked_cache_is_waited_for_or_left_alone(cache, monkeypatch):
    monkeypatch.setattr(import_module("haarpool.chains.cache"), "WAIT", 0.5)
    monkeypatch.setattr(import_module("haarpool.chains.dataset_chains"), "BLOCK", 1)
    dataset = random_graphs(5)
    hp.precompute(dataset, 3, cache=cache)
    other = sqlite3.connect(cache / "chains.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    attempts, attempt = [], ChainCache._open
    monkeypatch.setattr(ChainCache, "_open", lambda self: attempts.append(1) or attempt(self))
    with pytest.warns(hp.HaarPoolWarning, match="locked"):
        assert hp.precompute(dataset, 3, cache=cache).computed == 5
    assert len(attempts) == 1  # it waits once, not for each of the graphs
    other.execute("COMMIT")
    other.close()
    assert hp.precompute(dataset, 3, cache=cache).cached == 5


# ------------------------------------------------------------------ several processes, kill -9


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_in_the_middle_and_started_again(tmp_path, cache, jobs):
    """Nothing is lost, computed twice or damaged, and no process stays behind."""
    dataset = random_graphs(160, size=40)
    folder = write_tu(tmp_path, "RANDOM", dataset)
    recipe = {"num_levels": 3, "method": "spectral-kmeans"}
    arguments = ("chain", folder, "--levels", 3, "--method", recipe["method"], "--cache", cache)
    second_chunk = ("haarpool.chains.cache:ChainCache", "write", "", 2)
    # No pipe: workers hold its other end, and waiting for it would be waiting for them.
    with open(tmp_path / "workers", "w") as file:
        pipes = {"stdout": file, "stderr": subprocess.DEVNULL}
        run_until_signal(signal.SIGKILL, second_chunk, *arguments, "--jobs", jobs, **pipes)
    kept = count_cached_chains(cache)
    assert 0 < kept < 160
    workers = [int(pid) for pid in (tmp_path / "workers").read_text().split()]
    assert len(workers) >= (2 if jobs == 2 else 0)
    wait_until(lambda: not any(map(is_alive, workers)))
    again = hp.precompute(dataset, cache=cache, n_jobs=jobs, **recipe)
    assert (again.cached, again.computed) == (kept, 160 - kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = hp.precompute(dataset[::8], cache=False, **recipe)
    assert list(again)[::8] == list(fresh)


def test_several_processes_write_at_once(tmp_path, cache):
    dataset = random_graphs(120, size=30)
    folder = write_tu(tmp_path, "RANDOM", dataset)
    command = (sys.executable, "-m", "haarpool", "chain", folder, "--levels", 3, "--cache", cache)
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                start_process(
                    *command, "--method", "metis", stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
            )
            for _ in range(4)
        ]
        for process in processes:
            _, errors = process.communicate(timeout=HANGS)
            assert process.returncode == 0, errors
            assert errors == ""
    chains = hp.precompute(dataset, 3, method="metis", cache=cache)
    assert (chains.cached, chains.computed) == (120, 0)
    assert list(chains) == [hp.build_chain(graph, 3, method="metis") for graph in dataset]
