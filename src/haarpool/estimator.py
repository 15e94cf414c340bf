"""The engine of `haarpool train` in Python: estimators with `fit`, `predict`, `score`, `save`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Task
from haarpool.datasets import as_graphs
from haarpool.datasets.graphs import MISSING, Graphs
from haarpool.datasets.splits import Split, as_json
from haarpool.errors import HaarPoolError
from haarpool.training.config import RunConfig
from haarpool.training.devices import Team, find_device
from haarpool.training.metrics import scores_of
from haarpool.training.presets import BEST
from haarpool.training.repeats import go
from haarpool.training.run import describe, start_run, task_of
from haarpool.training.run_folder import SPLIT, RunFolder
from haarpool.training.trained_model import TrainedModel, load_model, save_model


class _Estimator:
    """What both estimators share."""

    task: Task

    def __init__(
        self,
        *,
        validation: float = 0.1,
        device: str = "auto",
        progress: bool | None = None,
        **settings: Any,
    ) -> None:
        known = {one.name for one in fields(RunConfig)} - {"repeats", "split"}
        if unknown := set(settings) - known:
            raise HaarPoolError(
                f"settings out of {', '.join(sorted(known))}",
                ", ".join(sorted(unknown)),
                "check the spelling",
            )
        if not 0 < validation < 1:
            raise HaarPoolError(
                "a share in (0, 1) of the graphs for validation", f"{validation}", "take 0.1"
            )
        self.validation, self.device, self.progress = validation, device, progress
        self.settings = settings
        self._trained: TrainedModel | None = None
        self._about: dict[str, Any] = {}
        self._split = "[]"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name, as scikit-learn asks for them."""
        own = {name: getattr(self, name) for name in ("validation", "device", "progress")}
        return own | self.settings

    def set_params(self, **parameters: Any) -> Self:
        """Change some parameters."""
        self.__init__(**self.get_params() | parameters)  # type: ignore[misc]
        return self

    def fit(self, graphs: Any, y: Any = None) -> Self:
        """Train; the epoch is chosen by a random part of the graphs.

        Args:
            graphs: a list of PyG `Data`, a PyG dataset, `Graphs`, or what `haarpool train` takes:
                a name, a folder in TU layout, a .csv or .pt file.
            y: a label per graph, instead of those that the graphs have.
        """
        config = RunConfig(**{**BEST, **self.settings})
        found = self._labelled(as_graphs(graphs), y)
        task_of(found)
        order = np.random.default_rng([config.seed, 0]).permutation(
            np.flatnonzero(found.is_labelled)
        )
        held = max(1, round(self.validation * len(order)))
        if len(order) <= held:
            raise HaarPoolError("at least 2 graphs with a label", f"{len(order)}", "add graphs")
        split = Split(np.sort(order[held:]), np.sort(order[:held]), order[:0])
        team = Team(device=find_device(self.device))
        run = start_run(found, config, team, progress=self.progress, splits=[split])
        go(run, progress=self.progress)
        self._trained = run.trained
        self._about = describe(run, f"{self!r}.fit(graphs)", {})
        self._split = as_json(run.splits)
        return self

    def _labelled(self, graphs: Graphs, y: Any) -> Graphs:
        """The graphs with labels that fit the task."""
        if y is not None:
            y = np.asarray(y)
            if len(y) != len(graphs):
                raise HaarPoolError(f"{len(graphs)} labels", f"{len(y)}", "pass one per graph")
            return _with_classes(graphs, y) if self.task == "classification" else _valued(graphs, y)
        if graphs.task is None or graphs.task == self.task:
            return graphs
        if self.task == "classification":
            raise HaarPoolError(
                "classes, as whole numbers", "values", "take HaarRegressor, or pass y="
            )
        names = np.array([*graphs.classes, np.nan], object)  # a missing class is the last one
        return _valued(graphs, names[graphs.targets])

    @property
    def trained(self) -> TrainedModel:
        """The network with its features, classes and scale."""
        if self._trained is None:
            raise HaarPoolError("a trained model", "one that is not", "call fit first")
        return self._trained

    def _outputs(self, graphs: Any) -> NDArray[np.float64]:
        return self.trained.predict(as_graphs(graphs))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write a folder that `haarpool.load` and `haarpool predict` read."""
        trained = self.trained
        about = {name: value for name, value in self._about.items() if name != "format"}
        save_model(trained, RunFolder.create(folder, about, self._split))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({given})"


class HaarClassifier(_Estimator):
    """Classify graphs with HaarPooling.

    Args:
        validation: the share of the graphs that chooses the epoch.
        device: "auto", "cpu", "cuda", ...
        progress: whether to show a bar; `None` shows it on a terminal.
        settings: of `RunConfig`: arch, epochs, lr, batch_size, seed, ...

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> ring = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))
    >>> path = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> ring.edge_index = torch.cat([ring.edge_index, ring.edge_index.flip(0)], 1)
    >>> model = HaarClassifier(arch="GC8-HP-FC8", epochs=30, lr=0.05, dropout=0.0)
    >>> model.fit([ring, path] * 10, ["ring", "path"] * 10).predict([path, ring]).tolist()
    ['path', 'ring']
    """

    task: Task = "classification"

    @property
    def classes_(self) -> NDArray[Any]:
        """(C,) the classes: whole numbers if all of them are, else text."""
        names = self.trained.classes
        whole = all(name.removeprefix("-").isdecimal() for name in names)
        return np.array([int(name) for name in names] if whole else names)

    def predict_proba(self, graphs: Any) -> NDArray[np.float64]:
        """(G, C) probabilities of the classes."""
        return self._outputs(graphs)

    def predict(self, graphs: Any) -> NDArray[Any]:
        """(G,) the most probable class of each graph."""
        return np.asarray(self.classes_[self._outputs(graphs).argmax(axis=1)])

    def score(self, graphs: Any, y: Any = None) -> float:
        """Accuracy, by the labels `y` or those that the graphs have; others are left out."""
        found = self._labelled(as_graphs(graphs), y)
        if found.task is None or not found.is_labelled.any():
            raise HaarPoolError("graphs with classes", "graphs without", "pass y=")
        known = found.take(np.flatnonzero(found.is_labelled))
        own = np.array(self.trained.classes)[self._outputs(known).argmax(axis=1)]
        return float(np.mean(own == np.array(known.classes)[known.targets]))

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks before it cross-validates."""
        return _tags("classifier")


class HaarRegressor(_Estimator):
    """Predict values of graphs with HaarPooling; parameters as in `HaarClassifier`."""

    task: Task = "regression"

    def predict(self, graphs: Any) -> NDArray[np.float64]:
        """(G,) values in the units of the labels; (G, T) if there are several per graph."""
        values = self._outputs(graphs)
        return values[:, 0] if values.shape[1] == 1 else values

    def score(self, graphs: Any, y: Any = None) -> float:
        """The coefficient of determination R², the mean of several targets."""
        found = self._labelled(as_graphs(graphs), y)
        if found.targets is None:
            raise HaarPoolError("graphs with values", "graphs without", "pass y=")
        return scores_of(self.task, self._outputs(found), found.targets)["r2"]

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks before it cross-validates."""
        return _tags("regressor")


def _with_classes(graphs: Graphs, y: NDArray[Any]) -> Graphs:
    """Graphs with these labels as classes; None and NaN are no label."""
    known = np.array([one is not None and one == one for one in y.tolist()], bool)
    names, numbers = np.unique(y[known], return_inverse=True)
    targets = np.full(len(y), MISSING)
    targets[known] = numbers
    classes = tuple(
        str(int(v) if isinstance(v, float) and v == int(v) else v) for v in names.tolist()
    )
    return replace(graphs, task="classification", classes=classes, targets=targets)


def _valued(graphs: Graphs, y: NDArray[Any]) -> Graphs:
    """Graphs with these labels as values."""
    try:
        values = y.astype(np.float64).reshape(len(graphs), -1)
    except (ValueError, TypeError) as error:
        raise HaarPoolError("numbers as labels", f"{error}", "take HaarClassifier") from error
    names = tuple(f"y{i}" if values.shape[1] > 1 else "y" for i in range(values.shape[1]))
    return replace(graphs, task="regression", classes=(), targets=values, target_names=names)


def _tags(kind: str) -> Any:
    from sklearn.utils import Tags, TargetTags

    return Tags(estimator_type=kind, target_tags=TargetTags(required=False))


def load(run: str | PathLike[str], device: str = "auto") -> HaarClassifier | HaarRegressor:
    """The model of a run, as an estimator that is ready to predict.

    Args:
        run: the folder that `haarpool train` or `save` made.
        device: where it shall compute.
    """
    folder = RunFolder.open(run)
    model = load_model(folder, find_device(device))
    config: Mapping[str, Any] = folder.config()
    cls = HaarClassifier if model.task == "classification" else HaarRegressor
    kept = {k: v for k, v in config["training"].items() if k not in ("repeats", "split")}
    estimator = cls(device=device, **kept)
    estimator._trained, estimator._about = model, dict(config)
    if folder.has(SPLIT):
        estimator._split = (folder.path / SPLIT).read_text()
    return estimator
