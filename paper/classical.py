"""Rows without graph networks: models of scikit-learn, and the kernel CSM of grakel.

Each model is trained with a few values of its parameters; the validation part chooses one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints
from haarpool.comparison.checkpoints import Checkpoints
from haarpool.comparison.learners import Learner, Line
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.readers.qm7.molecules import ELEMENTS
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError, import_extra

PENALTIES = tuple(10.0**power for power in range(-3, 4))  # values of C
WAIT = 120  # seconds before the time of all pairs is estimated: some take a thousand times longer

Candidates = list[tuple[dict[str, Any], Any]]  # parameters and the model with them


class RegressionLearner(Learner):
    """Trains one of `regressions` on one of `FEATURES`: the rows of QM7 without networks."""

    @cached_property
    def features(self) -> Floats:
        """Features of all graphs."""
        return FEATURES[self.cell.settings["features"]](self.graphs)

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train on a split; errors are mean absolute errors."""
        assert self.graphs.targets is not None
        split, x, y = splits[seed], self.features, self.graphs.targets[:, 0]

        def score(model: Any, part: Ints) -> float:
            return float(np.abs(model.predict(x[part]) - y[part]).mean())

        fitted = (
            (parameters, model.fit(x[split.train], y[split.train]))
            for parameters, model in regressions(seed)[self.cell.settings["model"]]
        )
        scored = [(score(m, split.validation), score(m, split.test), p) for p, m in fitted]
        validation, test, parameters = min(scored, key=lambda one: one[0])
        return _line("mae", validation, test, {"parameters": parameters})


class CsmLearner(Learner):
    """The subgraph matching kernel of grakel with a support vector machine.

    Kriege and Mutzel, "Subgraph Matching Kernels for Attributed Graphs", ICML 2012. The kernel
    counts pairs of matching subgraphs of up to k nodes. It does not depend on the split. Its time
    grows with the fourth power of the number of nodes and with the square of the number of graphs;
    it ends on small datasets only.

    The settings of the cell are "subgraph_size", k, and "minutes", the longest time for the kernel:
    if it would take longer, an error says so soon.
    """

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train on a split; scores are accuracies."""
        from sklearn.svm import SVC

        split, kernel, targets = splits[seed], self.kernel, self.graphs.targets
        if isinstance(kernel, HaarPoolError):
            raise kernel
        assert targets is not None
        scored = []
        for penalty in PENALTIES:
            machine = SVC(C=penalty, kernel="precomputed")
            machine.fit(kernel[np.ix_(split.train, split.train)], targets[split.train])
            scores = [
                float(np.mean(machine.predict(kernel[np.ix_(part, split.train)]) == targets[part]))
                for part in (split.validation, split.test)
            ]
            scored.append((*scores, penalty))
        validation, test, penalty = max(scored, key=lambda one: one[0])
        return _line("accuracy", validation, test, {"C": penalty})

    @cached_property
    def kernel(self) -> Floats | HaarPoolError:
        """(G, G) kernel matrix with ones on its diagonal, or why there is none."""
        graphs, kernels = self.graphs, import_extra("grakel.kernels", "paper")
        matching = kernels.SubgraphMatching(k=self.cell.settings["subgraph_size"])
        matching.initialize()
        inputs = [as_grakel(graphs, g) for g in range(len(graphs))]
        rows, columns = np.triu_indices(len(graphs))
        # In random order, so that the time of the first pairs tells the time of all.
        order = np.random.default_rng(0).permutation(len(rows))
        kernel: Floats = np.zeros((len(graphs), len(graphs)))
        start, minutes = time.perf_counter(), self.cell.settings["minutes"]
        for n, pair in enumerate(order.tolist(), 1):
            i, j = int(rows[pair]), int(columns[pair])
            kernel[i, j] = kernel[j, i] = matching.pairwise_operation(inputs[i], inputs[j])
            seconds = time.perf_counter() - start
            if seconds > WAIT and seconds / n * len(order) > 60 * minutes:
                return HaarPoolError(
                    f"a kernel matrix within {minutes:g} minutes",
                    f"{seconds / n * len(order) / 3600:.1f} hours, by its first {n:,} pairs of "
                    "graphs",
                    "allow more minutes",
                )
        scale = np.sqrt(np.diag(kernel))
        return np.asarray(kernel / np.outer(scale, scale))


def _line(metric: str, validation: float, test: float, scores: Mapping[str, Any]) -> Line:
    about = {"metric": metric, "value": test, "validation": validation}
    return about | {"scores": dict(scores), "device": "cpu"}


def as_grakel(graphs: Graphs, graph: int) -> tuple[int, Any, Any, Any]:
    """Return a graph as grakel parses it: size, edges, labels of nodes and of edges."""
    nodes = slice(*graphs.start[graph : graph + 2].tolist())
    edges = slice(*graphs.edge_start[graph : graph + 2].tolist())
    pairs = list(map(tuple, (graphs.edges[:, edges] - nodes.start).T.tolist()))
    labels, of_edges = _labels(graphs.columns, nodes), _labels(graphs.edge_columns, edges)
    return (
        len(labels),
        {pair for pair in pairs if pair[0] != pair[1]},
        dict(enumerate(labels)),
        dict(zip(pairs, of_edges, strict=True)),
    )


def _labels(columns: Mapping[str, NDArray[Any]], part: slice) -> list[Any]:
    """Return one label per node or edge; all the same if there are none."""
    size = part.stop - part.start
    rows = columns["labels"][part].reshape(size, -1).tolist() if "labels" in columns else []
    return [tuple(row) for row in rows] or [0] * size


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


FEATURES: Mapping[str, Callable[[Graphs], Floats]] = {
    "atom_counts": atom_counts,
    "coulomb_matrices": coulomb_matrices,
}


def regressions(seed: int) -> dict[str, Candidates]:
    """Return the models by name, each with the values of its parameters to choose from.

    The kernel of "kernel_ridge" is exp(-|x - x'|₁ / width), as Hansen et al. 2013 use it on QM7.
    """
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    def ridge(width: float, penalty: float) -> Any:
        model = KernelRidge(penalty, kernel="laplacian", gamma=1 / width)
        return TransformedTargetRegressor(model, transformer=StandardScaler(with_std=False))

    stop = {"early_stopping": True, "n_iter_no_change": 20}

    def network(*widths: int) -> Any:
        settings = {"hidden_layer_sizes": widths, "max_iter": 200, **stop}
        model = make_pipeline(StandardScaler(), MLPRegressor(random_state=seed, **settings))
        return TransformedTargetRegressor(model, transformer=StandardScaler())

    add_ones = FunctionTransformer(lambda x: np.c_[x, np.ones(len(x))])
    return {
        "linear": [({}, make_pipeline(add_ones, LinearRegression(fit_intercept=False)))],
        "random_forest": [
            ({"max_features": x}, RandomForestRegressor(100, max_features=x, random_state=seed))
            for x in (0.3, 0.1)
        ],
        "kernel_ridge": [
            ({"width": width, "penalty": penalty}, ridge(width, penalty))
            for width in (250.0, 1000.0, 4000.0)
            for penalty in (1e-7, 1e-4)
        ],
        "network": [({"widths": widths}, network(*widths)) for widths in ((256,), (256, 64))],
    }
