"""Baselines without a graph network, which belong beside all results of networks.

Parameters are chosen by the validation part, as those of networks are.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier

from haarpool._types import Floats, Ints
from haarpool.comparison.checkpoints import Checkpoints
from haarpool.comparison.learners import Learner, Line
from haarpool.datasets.splits import Split

Predict = Callable[[Ints], Floats]  # of graphs, signals or nodes, by their numbers
FACTORS = np.logspace(-6, 6, 13)  # of the penalty of ridge regression
PENALTIES = np.logspace(-3, 0, 4)  # of the regression on known sensors
NEIGHBOURS = (1, 3, 5, 10, 20, 50)


class ShortcutLearner(Learner):
    """Fits a model that is no graph network.

    Attributes:
        title: Its name in the page.
    """

    title: ClassVar[str]

    @abstractmethod
    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield fitted models, of which the validation part chooses one.

        Args:
            split: The split.
        """

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Fit and score."""
        graphs, task, split = self.graphs, self.graphs.task, splits[seed]
        assert task is not None
        start, metric = time.perf_counter(), task.scores[0].name
        true = {
            part: self.labels[split.rows(getattr(split, part), graphs)]
            for part in ("validation", "test")
        }
        scored = []
        for predict in self.candidates(split):
            predicted = predict(split.validation)
            score = task.higher_is_better(task.main_score(predicted, true["validation"]))
            scored.append((score, predict))
        best, predict = max(scored, key=lambda pair: pair[0])
        predicted, names = predict(split.test), graphs.names
        test = task.score(predicted, true["test"], names)
        parts = {}
        if len(task.column_names(names)) > 1:
            each = task.score_targets(predicted, true["test"], names)
            columns = task.column_names(names)
            parts = {name: one[metric] for name, one in zip(columns, each, strict=True)}
        return {
            "metric": metric, "value": test[metric], "validation": task.higher_is_better(best),
            "scores": {"test": test}, "parts": parts, "device": "cpu",
            "training_seconds": round(time.perf_counter() - start, 2),
        }  # fmt: skip

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of all nodes."""
        assert self.graphs.targets is not None
        return self.graphs.targets

    def signals(self, values: NDArray[Any]) -> Floats:
        """Return (S, N * columns) rows of nodes as one row for each signal."""
        return values.reshape(len(self.graphs), -1).astype(np.float64)


class MeanLearner(ShortcutLearner):
    """The mean of each node over the training part."""

    title = "mean of each node"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield the means."""
        targets = self.labels.shape[1]
        mean = np.nanmean(self.signals(self.labels)[split.train], axis=0).reshape(-1, targets)
        yield lambda rows: np.tile(mean, (len(rows), 1))


class RidgeLearner(ShortcutLearner):
    """Ridge regression from all inputs of all nodes to the labels of all nodes."""

    title = "ridge regression from all inputs"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield fits with several penalties."""
        x, y = self.signals(self.graphs.columns["x"]), self.signals(self.labels)
        x = x - x[split.train].mean(0)  # in the units of the data: a large load counts more
        products = x @ x[split.train].T
        y = y[split.train]
        mean, targets = y.mean(0), self.labels.shape[1]
        for factor in FACTORS:
            model = KernelRidge(alpha=factor, kernel="precomputed")
            model.fit(products[split.train], y - mean)
            yield partial(_predict_rows, model, products, mean, targets)


class DiffusionLearner(ShortcutLearner):
    """The physics: a DC solve on the grid, one factor fitted. Magnitudes are the training mean."""

    title = "DC solve, one fitted factor"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield L⁺ (change of the injection), times the factor that fits the training part best."""
        graphs = self.graphs
        nodes = int(graphs.sizes[0])
        u, v = graphs.edges
        A = sparse.csc_array((graphs.edge_weight, (u, v)), shape=(nodes, nodes))
        laplacian = sparse.csc_array(sparse.diags_array(A.sum(axis=0)) - A)
        solve = splu(laplacian[1:, 1:].tocsc())  # the angle of the first bus is 0
        x = graphs.columns["x"].reshape(len(graphs), nodes, -1)
        load, share = x[:, :, 0], x[:, :, 2]
        injection = load.sum(1, keepdims=True) * share / share.sum(1, keepdims=True) - load
        angle = np.zeros((len(graphs), nodes))
        angle[:, 1:] = solve.solve(injection[:, 1:].T.astype(np.float64)).T
        angle -= angle.mean(1, keepdims=True)
        y = self.labels.reshape(len(graphs), nodes, -1)
        mean = y[split.train].mean(0)
        rest = (y[split.train] - mean)[:, :, 0]
        centre = angle[split.train].mean(0)
        factor = (rest * (angle[split.train] - centre)).sum() / (
            (angle[split.train] - centre) ** 2
        ).sum()

        def predict(rows: Ints) -> Floats:
            result = np.broadcast_to(mean, (len(rows), *mean.shape)).copy()
            result[:, :, 0] += factor * (angle[rows] - centre)
            return result.reshape(-1, mean.shape[-1])

        yield predict


class SensorMeanLearner(ShortcutLearner):
    """The mean of each sensor over the training part; it is known where the sensor is not missing.

    Inputs are (speed in other units, 0 where missing; whether it is known; ...). A line fitted to
    the training part gives the speed in the units of the labels.
    """

    title = "mean of each sensor"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield the means."""
        yield self.in_units_of_labels(lambda rows: np.tile(self.mean(split), (len(rows), 1)), split)

    def inputs(self, rows: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Return (n, N) speeds and which of them are known."""
        x = self.graphs.columns["x"].reshape(len(self.graphs), int(self.graphs.sizes[0]), -1)
        return x[rows, :, 0].astype(np.float64), x[rows, :, 1] > 0

    def mean(self, split: Split) -> Floats:
        """Return (N,) the means."""
        speed, known = self.inputs(split.train)
        mean: Floats = speed.sum(0) / known.sum(0)
        return mean

    def in_units_of_labels(self, predict: Predict, split: Split) -> Predict:
        """Return a function that predicts rows of labels."""
        some = split.train[:: max(1, len(split.train) // 500)]
        labels, predicted = self.labels[self.graphs.rows(some), 0], predict(some).ravel()
        line = np.polyfit(predicted[~np.isnan(labels)], labels[~np.isnan(labels)], 1)
        return lambda rows: line[0] * predict(rows).reshape(-1, 1) + line[1]


class SensorRegressionLearner(SensorMeanLearner):
    """Linear regression of each missing sensor on all known ones, by their covariance."""

    title = "linear regression on known sensors"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield regressions with several penalties."""
        speed, known = self.inputs(split.train)
        mean, count = self.mean(split), known.T.astype(np.float64) @ known
        centred = np.where(known, speed - mean, 0)
        covariance = centred.T @ centred / count
        for penalty in PENALTIES:

            def predict(rows: Ints, penalty: float = penalty) -> Floats:
                speed, known = self.inputs(rows)
                result = np.empty_like(speed)
                for one, (values, there) in enumerate(zip(speed, known, strict=True)):
                    inner = covariance[np.ix_(there, there)] + penalty * np.eye(there.sum())
                    weights = np.linalg.solve(inner, values[there] - mean[there])
                    result[one] = mean + covariance[:, there] @ weights
                return result

            yield self.in_units_of_labels(predict, split)


class NeighbourLearner(ShortcutLearner):
    """The nearest training nodes on the map: features are the two coordinates alone."""

    title = "nearest neighbours on the map"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield classifiers with several numbers of neighbours."""
        pos = self.graphs.columns["pos"]
        for number in NEIGHBOURS:
            model = KNeighborsClassifier(number).fit(pos[split.train], self.labels[split.train])
            yield partial(_predict_classes, model, pos)


class TreesLearner(ShortcutLearner):
    """Boosted trees on the features of each node alone."""

    title = "boosted trees on node features"

    def candidates(self, split: Split) -> Iterator[Predict]:
        """Yield classifiers of several depths."""
        x = self.graphs.columns["x"]
        for leaves in (7, 15, 31):
            model = HistGradientBoostingClassifier(
                max_leaf_nodes=leaves, max_iter=100, random_state=0
            )
            model.fit(x[split.train], self.labels[split.train])
            yield partial(_predict_classes, model, x)


def _predict_rows(model: Any, x: Floats, mean: Floats, targets: int, rows: Ints) -> Floats:
    result: Floats = (model.predict(x[rows]) + mean).reshape(-1, targets)
    return result


def _predict_classes(model: Any, x: Floats, rows: Ints) -> Floats:
    result: Floats = model.predict_proba(x[rows])
    return result


SHORTCUTS: dict[str, type[ShortcutLearner]] = {
    "mean": MeanLearner,
    "ridge": RidgeLearner,
    "diffusion": DiffusionLearner,
    "sensor-mean": SensorMeanLearner,
    "sensor-regression": SensorRegressionLearner,
    "neighbours": NeighbourLearner,
    "trees": TreesLearner,
}
