"""Estimators in the style of scikit-learn: `fit`, `predict`, `score`, `save`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
import sklearn.exceptions
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from haarpool._types import Domain, Floats
from haarpool._validate import real_number
from haarpool.datasets import as_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import class_values
from haarpool.datasets.reading import labelled_graphs, words_of_graphs
from haarpool.datasets.splits import as_json, hold_out
from haarpool.errors import HaarPoolError, errors_in_words
from haarpool.tasks import Task, find_task
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, find_device
from haarpool.training.results import describe_run
from haarpool.training.run import check_labels, start_run
from haarpool.training.run_folder import CONFIG, MODEL, SPLIT, RunFolder
from haarpool.training.train import train_run
from haarpool.training.trained_model import TrainedModel, load_model, model_tensors

# Those of `RunConfig` that an estimator has: it trains once.
SETTINGS = tuple(one.name for one in fields(RunConfig) if one.name not in ("repeats", "split"))


class NotFittedError(HaarPoolError, sklearn.exceptions.NotFittedError):  # type: ignore[misc]
    """The estimator is used before `fit`."""


@dataclass(kw_only=True, eq=False, repr=False)
class _Parameters:
    """Parameters of both estimators; settings of `RunConfig` have the defaults of `BEST`.

    A class of its own, because type checkers let classes with untyped bases take any parameter.
    """

    arch: str = "haarnet"
    features: str = "auto"
    domain: Domain | None = None
    dropout: float = 0.5
    width: int = 64
    tied: Literal["authors"] | tuple[int, ...] | None = None
    pooling: Mapping[str, Any] | None = None
    chain: Mapping[str, Any] | None = None
    epochs: int = 50
    lr: float = 0.002
    weight_decay: float = 0.0001
    batch_size: int = 0
    patience: int = 50
    monitor: Literal["loss", "score", "last"] = "last"
    schedule: Literal["constant", "cosine", "one-cycle"] = "one-cycle"
    optimizer: Literal["adam", "adamw"] = "adamw"
    label_smoothing: float = 0.05
    class_weights: bool = False
    seed: int = 0
    ensemble: int = 1
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    compile: bool = False
    threads: int = 0
    validation: float = 0.1
    device: str = "auto"
    progress: bool | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class _ClassifierParameters(_Parameters):
    task: str = "classification"


@dataclass(kw_only=True, eq=False, repr=False)
class _RegressorParameters(_Parameters):
    task: str = "regression"


@dataclass(kw_only=True, eq=False, repr=False)
class _NodeClassifierParameters(_Parameters):
    arch: str = "haarunet"
    task: str = "node_classification"


@dataclass(kw_only=True, eq=False, repr=False)
class _NodeRegressorParameters(_Parameters):
    arch: str = "haarunet"
    task: str = "node_regression"


class _Estimator(_Parameters, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The common part of all estimators."""

    task: str
    _of_nodes: ClassVar[bool] = False
    _model: TrainedModel | None = None

    def fit(self, graphs: Any, y: Any = None) -> Self:
        """Train a network, or the members of an ensemble.

        A random part of the graphs, of each class, is not trained on (`validation`).

        Args:
            graphs: A PyG `Data` or a list of them, a PyG dataset, `Graphs`, or what
                `haarpool train` takes: a name, a folder in TU layout, a .csv, .npz or .pt file.
            y: Labels instead of those of the graphs: (G,), or (G, T) for several targets. For a
                classifier these have the classes 0 and 1; other classes are booleans, numbers or
                text, and `predict` returns them in the same dtype. None and NaN are missing labels.
        """
        self._check_task()
        real_number("validation", self.validation, 0, 1, includes_minimum=False)
        settings = {name: getattr(self, name) for name in SETTINGS}
        config = RunConfig(**settings | {"chain": self.chain or {}})
        with self._words():
            labelled, dtype = labelled_graphs(graphs, y, find_task(self.task))
            check_labels(labelled)
            split = hold_out(labelled, self.validation, config.seed)
            group = ProcessGroup(device=find_device(self.device))
            run = start_run(labelled, config, group, progress=self.progress, splits=[split])
            train_run(run, progress=self.progress)
        self._model = run.model
        self._config = describe_run(run, f"{self!r}.fit(graphs)", {})
        self._config["data"]["class_dtype"] = dtype
        self._split = as_json(run.splits)
        return self

    def _check_task(self) -> None:
        """Raise an error if the task is that of another estimator."""
        task = find_task(self.task)
        is_mine = task is not None and isinstance(self, _estimator_of(task))
        if task is None or not is_mine or task.of_nodes != self._of_nodes:
            kind = "classes" if isinstance(self, HaarClassifier) else "values"
            kind += " of nodes" * self._of_nodes
            remedy = "choose one of `haarpool.tasks.task_names()`"
            if task is not None:
                remedy = f"use {_estimator_of(task).__name__}"
            raise HaarPoolError(f"with {kind} as labels", f"{task!r}", remedy, parameter="task")

    def _words(self) -> AbstractContextManager[None]:
        """Let errors of other functions mention what this class has."""
        return errors_in_words(partial(_words, _estimator_of(find_task(self.task))))

    def _graphs(self, graphs: Any) -> Graphs:
        with self._words():
            return as_graphs(graphs, labels=False)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the estimator is fitted; `check_is_fitted` asks this."""
        return self._model is not None

    @property
    def trained(self) -> TrainedModel:
        """The networks with their features, classes and scale."""
        if self._model is None:
            raise NotFittedError("a fitted estimator", "one that is not fitted", "call fit first")
        return self._model

    def _predict(self, graphs: Any) -> Floats:
        return self.trained.predict(self._graphs(graphs))

    def predict_uncertainty(self, graphs: Any) -> Floats:
        """Compute the standard deviation of the predictions over the members of an ensemble.

        Args:
            graphs: G graphs, as in `fit`.

        Returns:
            (G,) standard deviations of the value, or of the probability of the predicted class;
            (G, T) if there are several targets.

        Example:
            >>> model = HaarClassifier(arch="GC8-HP-FC8", epochs=2, ensemble=3).fit("rings")
            >>> model.predict_uncertainty("rings").shape
            (240,)
        """
        model = self.trained
        if len(model.networks) == 1:
            raise HaarPoolError("an ensemble", "one network", "fit with ensemble=5")
        members = model.predict_members(self._graphs(graphs))
        spread = model.task.uncertainty(members, model.names)
        return spread[:, 0] if spread.shape[1] == 1 else spread

    def _score(self, graphs: Any, y: Any) -> float:
        """Compute what `score` returns."""
        model = self.trained
        with self._words():
            labelled, dtype = labelled_graphs(graphs, y, find_task(self.task))
        number, wanted = len(labelled.target_names) or 1, len(model.names.targets) or 1
        if (model.task, wanted) != (labelled.task, number):
            raise HaarPoolError(
                f"labels for {model.task}, {wanted} per graph, as in fit",
                f"labels for {labelled.task}, {number} per graph",
                "pass others",
            )
        labelled = labelled.take(np.flatnonzero(labelled.is_labelled))
        targets = labelled.targets
        assert targets is not None
        if model.task.reads_classes:
            targets = self._to_classes(labelled, dtype)
        return model.task.estimator_score(model.predict(labelled), targets, model.names)

    def _to_classes(self, graphs: Graphs, dtype: str | None) -> NDArray[Any]:
        """Return labels as numbers of classes of the model, C for one that it does not have."""
        model, targets = self.trained, graphs.targets
        assert targets is not None
        own = class_values(model.names.classes, self._config["data"].get("class_dtype")).tolist()
        pairs = [*zip(model.names.classes, own, strict=True)]
        others = zip(graphs.classes, class_values(graphs.classes, dtype).tolist(), strict=True)
        # 1 of the graphs is True of y, and "1" of a table is 1.
        same = [[name == n or value == v for n, v in pairs] + [True] for name, value in others]
        numbers = np.argmax(same, axis=1)
        if model.task.classes and len(pairs) in numbers:
            return targets  # the first class and the second one, under other names
        known, targets = model.task.known(targets), targets.copy()
        targets[known] = numbers[targets[known].astype(np.int64)]
        return targets

    def save(self, folder: str | PathLike[str]) -> None:
        """Write a folder that `haarpool.load` and `haarpool predict` read."""
        tensors = model_tensors(self.trained)
        RunFolder.create(folder, self._config, self._split).write_tensors(MODEL, tensors)


class HaarClassifier(ClassifierMixin, _ClassifierParameters, _Estimator):  # type: ignore[misc]
    """Classify graphs with HaarPooling: one target, or several with two classes each.

    Several targets are labels of shape (G, T): 0, 1, or NaN where the label is missing. Then
    `predict` returns (G, T) classes and `predict_proba` (G, T) probabilities of class 1. With
    `ensemble=M` predictions are means over M networks, which `predict_uncertainty` compares.

    Args:
        validation: Share of the graphs that is not trained on, in (0, 1). It chooses the epoch
            if `monitor` is "loss" or "score"; the default "last" keeps the last epoch.
        device: "auto", "cpu", "cuda", ...
        task: A task whose labels are classes, see `haarpool.tasks`; "classification" of several
            targets is "multilabel".
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal.

    The other parameters are settings of a run, see `haarpool.training.config.RunConfig`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> ring = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))
        >>> path = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> ring.edge_index = torch.cat([ring.edge_index, ring.edge_index.flip(0)], 1)
        >>> model = HaarClassifier(arch="GC8-HP-FC8", epochs=30, lr=0.05, dropout=0.0)
        >>> model.fit([ring, path] * 10, ["ring", "path"] * 10).predict([path, ring]).tolist()
        ['path', 'ring']

        Two targets, some labels of which are missing, and two networks:

        >>> y = [[1, 0], [0, 1], [1, float("nan")], [float("nan"), 1]] * 5
        >>> settings = {"arch": "GC8-HP-FC8", "epochs": 30, "lr": 0.05, "validation": 0.4}
        >>> several = HaarClassifier(**settings, ensemble=2)
        >>> several.fit([ring, path] * 10, y).predict([path, ring]).tolist()
        [[0, 1], [1, 0]]
        >>> several.predict_proba([path]).shape, several.predict_uncertainty([path]).shape
        ((1, 2), (1, 2))
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """(C,) the classes, of every target, in the dtype of y.

        Classes of the graphs themselves are whole numbers if all of them are, else text.
        """
        return class_values(self.trained.names.classes, self._config["data"].get("class_dtype"))

    def predict_proba(self, graphs: Any) -> Floats:
        """Predict (G, C) class probabilities; for several targets (G, T) of the second class."""
        return self._predict(graphs)

    def predict(self, graphs: Any) -> NDArray[Any]:
        """Predict (G,) the most probable class of each graph; for several targets (G, T)."""
        model = self.trained
        return model.task.decide(self._predict(graphs), self.classes_, model.names)

    def score(self, graphs: Any, y: Any = None) -> float:
        """Compute the accuracy on graphs with labels; for several targets the mean ROC-AUC.

        For a task of your own it is what `Task.estimator_score` returns: the main score, minus it
        if it is an error.

        Args:
            graphs: Graphs as in `fit`; those without label are left out.
            y: Labels instead of those of the graphs, as in `fit`.

        Returns:
            The score; the mean ROC-AUC is over the targets with both classes, NaN without any.
        """
        return self._score(graphs, y)


class HaarRegressor(RegressorMixin, _RegressorParameters, _Estimator):  # type: ignore[misc]
    """Predict values of graphs with HaarPooling: one target, or several.

    Several targets are labels of shape (G, T), NaN where the value is missing. Parameters are as in
    `HaarClassifier`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> sizes = [2, 3, 4, 5] * 5
        >>> alone = [Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0).long()) for n in sizes]
        >>> model = HaarRegressor(arch="GC8-SUM-FC8", epochs=2, ensemble=2).fit(alone, sizes)
        >>> model.predict(alone).shape, model.predict_uncertainty(alone).shape
        ((20,), (20,))
    """

    def predict(self, graphs: Any) -> Floats:
        """Predict (G,) values in the units of the labels; (G, T) if there are several targets."""
        model = self.trained
        return model.task.decide(self._predict(graphs), np.zeros(0), model.names)

    def score(self, graphs: Any, y: Any = None) -> float:
        """Compute the coefficient of determination R², averaged over targets.

        For a task of your own it is what `Task.estimator_score` returns: R² if it is one of its
        scores and the task is a `Regression`, else the main score, minus it if it is an error.

        Args:
            graphs: Graphs as in `fit`.
            y: One value per graph, or (G, T), instead of the labels of the graphs.

        Returns:
            R²; NaN if it is not defined, as for a single graph or for equal labels.
        """
        return self._score(graphs, y)


class HaarNodeClassifier(_NodeClassifierParameters, HaarClassifier):
    """Classify the nodes of graphs with a `HaarUNet`.

    `y` is (N,) for the N nodes of all graphs, graph by graph, or (S, N) for S signals on one graph;
    NaN is a missing label. All that is predicted has these rows. Of a single graph, nodes are held
    out, or those of `val_mask`; else graphs are. Parameters are as in `HaarClassifier`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> path = torch.stack([torch.arange(29), torch.arange(1, 30)])
        >>> halves = (torch.arange(30) < 15).long()
        >>> data = Data(x=halves[:, None] + 0.1 * torch.randn(30, 1), y=halves,
        ...             edge_index=torch.cat([path, path.flip(0)], 1))
        >>> model = HaarNodeClassifier(epochs=10, lr=0.01).fit(data)
        >>> model.predict(data).shape, model.predict_proba(data).shape
        ((30,), (30, 2))
    """

    _of_nodes = True


class HaarNodeRegressor(_NodeRegressorParameters, HaarRegressor):
    """Predict values at the nodes of graphs with a `HaarUNet`: one target, or several.

    `y` is (N,) or (N, T) for the N nodes of all graphs, graph by graph, or (S, N) or (S, N, T) for
    S signals on one graph, whose `x` is (S, N, d); NaN is a missing label. `predict` returns the
    rows of all nodes, signal by signal. Parameters are as in `HaarClassifier`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
        >>> x = torch.randn(40, 12, 1)
        >>> data = Data(x=x, y=x.roll(1, 1)[..., 0] + x.roll(-1, 1)[..., 0], num_nodes=12,
        ...             edge_index=torch.cat([ring, ring.flip(0)], 1))
        >>> HaarNodeRegressor(epochs=10).fit(data).predict(data).shape
        (480,)
    """

    _of_nodes = True


def _estimator_of(task: Task) -> type[HaarClassifier | HaarRegressor]:
    if task.of_nodes:
        return HaarNodeClassifier if task.reads_classes else HaarNodeRegressor
    return HaarClassifier if task.reads_classes else HaarRegressor


def _words(estimator: type[HaarClassifier | HaarRegressor], name: str, value: Any = ...) -> str:
    """Return a parameter as an estimator writes it: each has the tasks of one kind of labels."""
    if name == "task" and value is not ... and _estimator_of(find_task(value)) is not estimator:
        return f"them to {_estimator_of(find_task(value)).__name__}"
    return words_of_graphs(name, value)


def load(run: str | PathLike[str], device: str = "auto") -> HaarClassifier | HaarRegressor:
    """Load the model of a run as a fitted estimator.

    Args:
        run: A folder that `haarpool train` or `save` wrote.
        device: Device of the model.
    """
    folder = RunFolder.open(run)
    model = load_model(folder, find_device(device))
    config = folder.config()
    settings = {k: v for k, v in config["training"].items() if k in SETTINGS}
    estimator = _estimator_of(model.task)(task=str(model.task), device=device, **settings)
    estimator._model, estimator._config = model, config
    try:
        class_values(model.names.classes, config["data"].get("class_dtype"))
    except (OverflowError, TypeError, ValueError) as error:
        raise folder.damaged(CONFIG, error) from error
    estimator._split = (folder.path / SPLIT).read_text() if folder.has(SPLIT) else "[]"
    return estimator
