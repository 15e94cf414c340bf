"""Chains of datasets: the same as one by one, on any number of workers."""

import itertools
import os
import sys
from importlib import import_module

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import haarpool as hp
from haarpool.chains.graph_batch import GraphBatch, as_graph_batch
from helpers.graphs import random_graphs
from helpers.strategies import at_most, graphs


@at_most(40)
@given(st.lists(graphs(), min_size=1, max_size=8), st.integers(1, 4), st.sampled_from([1, None]))
def test_a_batch_gives_the_chains_of_its_graphs(batch, num_levels, top):
    """To the last bit, weights or not, connected or not."""
    chains = hp.precompute(batch, num_levels, top=top, cache=False)
    assert list(chains) == [hp.build_chain(graph, num_levels, top=top) for graph in batch]


def test_components_of_very_different_weight():
    """Each is scaled by itself, in a batch and alone."""
    path = nx.to_scipy_sparse_array(nx.path_graph(4), dtype=float)
    graph = sparse.block_diag([path, 1e-150 * path], format="csr")
    chain = hp.build_chain(graph, 1, top=None)
    assert hp.precompute([graph, path], 1, top=None, cache=False)[0] == chain
    assert chain.parents[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@at_most(20)
@given(st.lists(graphs(), min_size=1, max_size=6))
def test_down_to_one_node_each(batch):
    chains = hp.precompute(batch, cache=False)
    assert list(chains) == [hp.build_chain(graph) for graph in batch]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NCI1", "Mutagenicity"])
def test_real_graphs_in_batches(tu_graphs, name):
    sample = tu_graphs(name)[::7]
    chains = hp.precompute(sample, 3, sizes="paper", cache=False)
    for chain, graph in zip(chains, sample, strict=True):
        assert chain == hp.build_chain(graph, 3, sizes="paper")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spectral", "metis", "kmeans", "leiden"])
def test_any_number_of_workers(method):
    dataset = random_graphs(90)
    one = hp.precompute(dataset, 3, method=method, cache=False, n_jobs=1)
    two = hp.precompute(dataset, 3, method=method, cache=False, n_jobs=2)
    assert list(one) == list(two)
    assert list(one)[:5] == [hp.build_chain(graph, 3, method=method) for graph in dataset[:5]]


@pytest.mark.slow
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
    monkeypatch.setattr(import_module("haarpool.chains.dataset_chains"), "BLOCK_GRAPHS", 4)
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
    with pytest.raises(hp.HaarPoolError, match=r"symmetric.*A\[0, 1\].* in graph 2"):
        hp.precompute([good, good, bad], 1, cache=False)
    chains = hp.precompute([good, bad], 1, cache=False, symmetrize=True)
    assert chains[1].adjacency(0).sum() == 6
    with pytest.raises(hp.HaarPoolError, match=r"one node.*an empty graph in graph 1"):
        hp.precompute(GraphBatch(sparse.csr_array(np.eye(3)), np.array([0, 3, 3])), 1, cache=False)
    wrong = {
        r"features of shape \(3, d\).*in graph 1": [np.ones((3, 1)), np.ones((2, 1))],
        "features of every graph": [np.ones((3, 1))],
        "same width": [np.ones((3, 1)), np.ones((3, 2))],
    }
    for message, features in wrong.items():
        with pytest.raises(hp.HaarPoolError, match=message):
            hp.precompute([good, good], 1, method="kmeans", features=features, cache=False)


@pytest.mark.slow
def test_an_error_in_a_worker_arrives():
    def nonsense(adjacency, num_clusters, *, seed):
        return "clusters"

    with pytest.raises(hp.HaarPoolError, match="one whole number per node"):
        hp.precompute(random_graphs(9), 2, method=nonsense, n_jobs=2)


@pytest.mark.slow
def test_an_error_of_a_users_own_method_arrives_as_it_is():
    def broken(adjacency, num_clusters, *, seed, share=0.5):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        hp.precompute(random_graphs(9), 2, method=broken, n_jobs=2)
    assert not isinstance(caught.value, hp.HaarPoolError)


@pytest.mark.slow
def test_workers_load_neither_torch_nor_pyg():
    parent = os.getpid()

    def spy(adjacency, num_clusters, *, seed):
        assert os.getpid() != parent, "not in a worker"
        heavy = {"torch", "torch_geometric"} & set(sys.modules)
        assert not heavy, heavy
        return np.arange(adjacency.shape[0]) // 2

    chains = hp.precompute(random_graphs(80), 2, method=spy, n_jobs=2)
    assert chains[0].num_levels == 2
