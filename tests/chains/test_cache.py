"""The cache of chains: keys, damage, locks, several processes."""

import contextlib
import itertools
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

import haarpool as hp
from haarpool.chains.cache import ChainCache, pack, unpack
from haarpool.chains.clustering import registry
from haarpool.chains.recipe import Recipe
from helpers.commands import HANGS, is_alive, run_until_signal, start_process, wait_until
from helpers.files import count_cached_chains, write_tu
from helpers.graphs import random_graphs


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


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
        {"num_levels": 2, "method": "metis", "options": {"recursive": False}},
    ]
    for recipe, given_graphs in itertools.product(recipes, (dataset, weighted)):
        assert hp.precompute(given_graphs, cache=cache, **recipe).computed == 2
    for recipe in recipes:
        assert hp.precompute(dataset, cache=cache, **recipe).cached == 2
    # What is not part of the clusters is not part of the key.
    again = hp.precompute(dataset, 2, cache=cache, order="index", measure="mass")
    assert again.cached == 2
    explicit = hp.precompute(dataset, 2, method="metis", options={"recursive": True}, cache=cache)
    assert explicit.cached == 2


def test_keys_depend_on_sizes(cache):
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
            recipe = Recipe(1, top=None, method="table", options={"ids": ids})
            chains = hp.precompute([np.eye(9)], recipe, cache=cache)
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


def test_location_of_the_cache(tmp_path, monkeypatch):
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
    assert caught[0].filename == __file__
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
    with pytest.warns(hp.HaarPoolWarning, match=r"damaged chains.*computed again") as caught:
        second = hp.precompute(dataset, 3, cache=cache)
    assert caught[0].filename == __file__
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


def test_a_read_only_cache(cache, monkeypatch):
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


def test_a_locked_cache(cache, monkeypatch):
    monkeypatch.setattr(import_module("haarpool.chains.cache"), "WAIT", 0.5)
    monkeypatch.setattr(import_module("haarpool.chains.dataset_chains"), "BLOCK_GRAPHS", 1)
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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_in_the_middle_and_started_again(tmp_path, cache, jobs):
    """Nothing is lost, computed twice or damaged, and no process stays behind."""
    dataset = random_graphs(80)
    folder = write_tu(tmp_path, "RANDOM", dataset)
    recipe = {"num_levels": 3, "method": "metis"}
    arguments = ("chain", folder, "--levels", 3, "--method", recipe["method"], "--cache", cache)
    second_chunk = ("haarpool.chains.cache:ChainCache", "write", "", 2)
    # No pipe: workers hold its other end, and waiting for it would be waiting for them.
    with open(tmp_path / "workers", "w") as file:
        pipes = {"stdout": file, "stderr": subprocess.DEVNULL}
        run_until_signal(signal.SIGKILL, second_chunk, *arguments, "--jobs", jobs, **pipes)
    kept = count_cached_chains(cache)
    assert 0 < kept < 80
    workers = [int(pid) for pid in (tmp_path / "workers").read_text().split()]
    assert len(workers) >= (2 if jobs == 2 else 0)
    wait_until(lambda: not any(map(is_alive, workers)))
    again = hp.precompute(dataset, cache=cache, n_jobs=jobs, **recipe)
    assert (again.cached, again.computed) == (kept, 80 - kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = hp.precompute(dataset[::8], cache=False, **recipe)
    assert list(again)[::8] == list(fresh)


@pytest.mark.slow
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
