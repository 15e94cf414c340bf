"""Regression models on molecules that nobody measured."""

import numpy as np
import pytest
from scipy.io import savemat

from haarpool.datasets import read_graphs
from haarpool.datasets.splits import make_splits
from haarpool.experiments.classical import (
    FEATURES,
    MODELS,
    atom_counts,
    coulomb_matrices,
    score_regression,
)
from helpers.tolerances import close

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


def test_energies_of_atoms_are_found_by_the_linear_fit(graphs):
    (split,) = make_splits("random", graphs)
    scores = score_regression(graphs, split, model="linear", features="atom_counts", seed=0)
    assert close(np.array([scores.test, scores.validation]) + 1, np.ones(2))
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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer:sklearn.exceptions.ConvergenceWarning")
def test_models_are_better_than_the_mean_and_repeatable(graphs, model):
    (split,) = make_splits("random", graphs)
    mean = graphs.targets[split.train].mean()
    error = np.abs(graphs.targets[split.validation] - mean).mean()
    for features in FEATURES:
        settings = {"model": model, "features": features, "seed": 3}
        scores = score_regression(graphs, split, **settings)
        assert scores == score_regression(graphs, split, **settings)
        if features == "atom_counts":
            assert scores.validation < error
