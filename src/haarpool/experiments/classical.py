"""Regression without graph networks: the rows of QM7 that scikit-learn has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from haarpool._types import Floats, Ints
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.readers.qm7.molecules import ELEMENTS
from haarpool.datasets.splits import Split

Predict = Callable[[Floats], Floats]
Candidates = Iterator[tuple[dict[str, Any], Predict]]


class RegressionScores(NamedTuple):
    """Mean absolute errors of the parameters that are best on the validation part."""

    validation: float
    test: float
    parameters: dict[str, Any]


def score_regression(
    graphs: Graphs, split: Split, *, model: str, features: str, seed: int
) -> RegressionScores:
    """Train a model for each of a few parameters; the validation part chooses one.

    Args:
        graphs: The dataset, with values and charges.
        split: The split.
        model: One of `MODELS`.
        features: One of `FEATURES`.
        seed: Seed of random models.
    """
    assert graphs.targets is not None
    x, y = _features(graphs, features), graphs.targets[:, 0]
    best = RegressionScores(np.inf, np.inf, {})
    for parameters, predict in MODELS[model](x[split.train], y[split.train], seed):
        errors = [
            float(np.abs(predict(x[part]) - y[part]).mean())
            for part in (split.validation, split.test)
        ]
        if errors[0] < best.validation:
            best = RegressionScores(errors[0], errors[1], parameters)
    return best


@lru_cache(maxsize=1)
def _features(graphs: Graphs, name: str) -> Floats:
    return FEATURES[name](graphs)


def atom_counts(graphs: Graphs) -> Floats:
    """Return (G, 5) the number of atoms of each element."""
    charge = graphs.columns["z"][:, 0]
    counts = [np.bincount(graphs.owner, charge == z, len(graphs)) for z in ELEMENTS]
    return np.stack(counts, axis=1).astype(np.float64)


def coulomb_matrices(graphs: Graphs) -> Floats:
    """Return (G, n (n + 1) / 2) Coulomb matrices with rows sorted by their norm, as in QM7."""
    assert graphs.edge_weight is not None
    largest = int(graphs.sizes.max())
    upper = np.triu_indices(largest)
    rows = np.zeros((len(graphs), len(upper[0])))
    for g in range(len(graphs)):
        size = int(graphs.sizes[g])
        weights = graphs.edge_weight[graphs.edge_start[g] : graphs.edge_start[g + 1]]
        matrix = weights.reshape(size, size)  # complete graphs with self-loops, row by row
        order: Ints = np.argsort(-np.linalg.norm(matrix, axis=1), kind="stable")
        padded = np.zeros((largest, largest))
        padded[:size, :size] = matrix[np.ix_(order, order)]
        rows[g] = padded[upper]
    return rows


def _linear(x: Floats, y: Floats, seed: int) -> Candidates:
    weights = np.linalg.lstsq(np.c_[x, np.ones(len(x))], y, rcond=None)[0]
    yield {}, lambda new: np.asarray(np.c_[new, np.ones(len(new))] @ weights)


def _random_forest(x: Floats, y: Floats, seed: int) -> Candidates:
    from sklearn.ensemble import RandomForestRegressor

    for share in (0.3, 0.1):
        forest = RandomForestRegressor(100, max_features=share, random_state=seed, n_jobs=1)
        yield {"max_features": share}, forest.fit(x, y).predict


def _kernel_ridge(x: Floats, y: Floats, seed: int) -> Candidates:
    """Laplacian kernel, exp(-|x - x'|₁ / width), as Hansen et al. 2013 use it on QM7."""
    distance, mean = cdist(x, x, "cityblock"), y.mean()
    for width in (250.0, 1000.0, 4000.0):
        kernel = np.exp(-distance / width)
        for penalty in (1e-7, 1e-4):
            factor = cho_factor(kernel + penalty * np.eye(len(x)))
            weights = cho_solve(factor, y - mean)

            def predict(new: Floats, weights: Floats = weights, width: float = width) -> Floats:
                return np.asarray(np.exp(-cdist(new, x, "cityblock") / width) @ weights + mean)

            yield {"width": width, "penalty": penalty}, predict


def _network(x: Floats, y: Floats, seed: int) -> Candidates:
    from sklearn.neural_network import MLPRegressor

    mean, std = x.mean(axis=0), x.std(axis=0)
    std[std == 0] = 1
    centre, scale = y.mean(), y.std()
    for widths in ((256,), (256, 64)):
        model = MLPRegressor(
            hidden_layer_sizes=widths,
            early_stopping=True,
            n_iter_no_change=20,
            max_iter=200,
            random_state=seed,
        )
        model.fit((x - mean) / std, (y - centre) / scale)

        def predict(new: Floats, model: Any = model) -> Floats:
            return np.asarray(model.predict((new - mean) / std) * scale + centre)

        yield {"widths": widths}, predict


FEATURES: Mapping[str, Callable[[Graphs], Floats]] = {
    "atom_counts": atom_counts,
    "coulomb_matrices": coulomb_matrices,
}
MODELS: Mapping[str, Callable[[Floats, Floats, int], Candidates]] = {
    "linear": _linear,
    "random_forest": _random_forest,
    "kernel_ridge": _kernel_ridge,
    "network": _network,
}
