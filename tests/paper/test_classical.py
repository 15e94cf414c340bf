"""Regression models on molecules that nobody measured; the kernel CSM is grakel's, pair by pair."""

import numpy as np
import pytest
from scipy.io import savemat

from haarpool.comparison.table import Cell
from haarpool.datasets import is_available, read_graphs
from haarpool.datasets.splits import Split, make_splits
from haarpool.errors import HaarPoolError
from helpers.tolerances import close
from paper import classical
from paper.classical import (
    FEATURES,
    CsmLearner,
    RegressionLearner,
    as_grakel,
    atom_counts,
    coulomb_matrices,
    regressions,
)

ENERGY = np.array([-1.0, -10.0, -20.0, -30.0, -40.0])  # of H, C, N, O, S


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    rng = np.random.default_rng(0)
    charge = rng.choice([1, 6, 7, 8, 16], (120, 5))
    charge[::2, -1] = 0
    energy = np.stack([(charge == z).sum(1) for z in (1, 6, 7, 8, 16)], axis=1) @ ENERGY
    folder = tmp_path_factory.mktemp("data")
    position = rng.normal(0, 3, (120, 5, 3))
    savemat(folder / "qm7.mat", {"Z": charge.astype(float), "R": position, "T": energy[None]})
    return read_graphs("qm7", folder)


def train_regression(graphs, model, features, seed=0):
    cell = Cell("QM7", "some", "random", {"model": model, "features": features}, "regression")
    splits = make_splits("random", graphs, repeats=seed + 1)
    return RegressionLearner(cell, graphs, "cpu").train(seed, splits, None)


def test_energies_of_atoms_are_found_by_the_linear_fit(graphs):
    line = train_regression(graphs, "linear", "atom_counts")
    assert close(np.array([line["value"], line["validation"]]) + 1, np.ones(2))
    assert atom_counts(graphs).sum(axis=1).tolist() == graphs.sizes.tolist()


def test_rows_of_coulomb_matrices_are_sorted(graphs):
    rows = coulomb_matrices(graphs)
    assert rows.shape == (120, 15)
    matrix = np.zeros((5, 5))
    matrix[np.triu_indices(5)] = rows[1]
    matrix += np.triu(matrix, 1).T
    norms = np.linalg.norm(matrix, axis=1)
    assert (np.diff(norms) <= 0).all()
    own = graphs.batch[1].toarray()
    assert close(np.linalg.eigvalsh(matrix), np.linalg.eigvalsh(own))


@pytest.mark.parametrize("model", regressions(0))
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer:sklearn.exceptions.ConvergenceWarning")
def test_models_are_better_than_the_mean_and_repeatable(graphs, model):
    split = make_splits("random", graphs, repeats=4)[3]
    mean = graphs.targets[split.train].mean()
    error = np.abs(graphs.targets[split.validation] - mean).mean()
    for features in FEATURES:
        line = train_regression(graphs, model, features, seed=3)
        assert line == train_regression(graphs, model, features, seed=3)
        if features == "atom_counts":
            assert line["validation"] < error


@pytest.fixture(scope="module")
def mutag():
    if not is_available("MUTAG"):
        pytest.skip("MUTAG is not on this machine")
    return read_graphs("MUTAG").take(np.arange(60, 72))


def csm_learner(graphs, **settings):
    return CsmLearner(Cell("MUTAG", "csm", "random", settings, "csm"), graphs, "cpu")


def test_the_kernel_is_that_of_grakel(mutag):
    kernels = pytest.importorskip("grakel.kernels")
    inputs = []
    for g in range(len(mutag)):
        size, edges, labels, edge_labels = as_grakel(mutag, g)
        inputs.append([dict.fromkeys(edges, 1), labels, edge_labels])
        assert size == mutag.sizes[g]
    expected = kernels.SubgraphMatching(k=3, normalize=True).fit_transform(inputs)
    assert close(csm_learner(mutag, subgraph_size=3, minutes=10.0).kernel, expected)


SPLIT = Split(np.arange(8), np.arange(8, 10), np.arange(10, 12))


def test_scores_are_accuracies_of_the_best_penalty(mutag):
    pytest.importorskip("grakel.kernels")
    line = csm_learner(mutag, subgraph_size=3, minutes=10.0).train(0, [SPLIT], None)
    assert 0 <= line["value"] <= 1
    assert line["scores"]["C"] in classical.PENALTIES


def test_a_kernel_that_takes_too_long_is_refused_once_for_all_splits(mutag, monkeypatch):
    pytest.importorskip("grakel.kernels")
    clock = iter(range(0, 200, 10))
    monkeypatch.setattr(classical.time, "perf_counter", lambda: next(clock))
    learner = csm_learner(mutag, subgraph_size=2, minutes=1)
    for _ in range(3):
        with pytest.raises(HaarPoolError, match=r"1 minutes, got 0\.2 hours, by its first 13 "):
            learner.train(0, [SPLIT], None)
