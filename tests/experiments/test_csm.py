"""CSM: the kernel is grakel's, computed pair by pair."""

import numpy as np
import pytest

from haarpool.datasets import read_graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.experiments import csm
from helpers.tolerances import close

kernels = pytest.importorskip("grakel.kernels")


@pytest.fixture(scope="module")
def graphs():
    return read_graphs("MUTAG").take(np.arange(60, 72))


def test_the_kernel_is_that_of_grakel(graphs):
    inputs = []
    for g in range(len(graphs)):
        size, edges, labels, edge_labels = csm._as_grakel(graphs, g)
        inputs.append([dict.fromkeys(edges, 1), labels, edge_labels])
        assert size == graphs.sizes[g]
    expected = kernels.SubgraphMatching(k=3, normalize=True).fit_transform(inputs)
    ours = csm._kernel(graphs, 3, 10.0)
    assert close(ours, expected)


def test_scores_are_accuracies_of_the_best_penalty(graphs):
    split = Split(np.arange(8), np.arange(8, 10), np.arange(10, 12))
    scores = csm.score_csm(graphs, split, subgraph_size=3, minutes=10.0)
    assert 0 <= scores.test <= 1
    assert scores.C in csm.PENALTIES


def test_a_kernel_that_takes_too_long_is_refused_once_for_all_splits(graphs, monkeypatch):
    clock = iter(range(0, 200, 10))
    monkeypatch.setattr(csm.time, "perf_counter", lambda: next(clock))
    split = Split(np.arange(8), np.arange(8, 10), np.arange(10, 12))
    for _ in range(3):
        with pytest.raises(HaarPoolError, match=r"1 minutes, got 0\.2 hours, by its first 13 "):
            csm.score_csm(graphs, split, subgraph_size=2, minutes=1)
