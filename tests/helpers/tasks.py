"""Tasks of tests, and data for them."""

from contextlib import contextmanager

import numpy as np
import torch
from torch.nn.functional import nll_loss

import haarpool as hp
from haarpool.tasks import MISSING, SCORES, Scale, _registry, find_task, register
from haarpool.tasks._task import Task
from haarpool.tasks.regression import Regression


@contextmanager
def registered(cls, name):
    """Register a task inside a block; a task with the same name comes back after it."""
    before = _registry._TASKS.pop(name, None)
    try:
        register(name)(cls)
        yield find_task(name)
    finally:
        _registry._TASKS.pop(name, None)
        if before is not None:
            _registry._TASKS[name] = before


class LogScale(Scale):
    """Networks see standardised logarithms."""

    @classmethod
    def of(cls, targets):
        return super().of(np.log(targets))

    def standardize(self, targets):
        return super().standardize(targets.log())

    def restore(self, output):
        return super().restore(output).exp()


class Positive(Regression):
    """Values > 0 that are trained on logarithms."""

    scores = headline = (SCORES["mae"],)
    scale = LogScale


class Grades(Task):
    """Several targets, each with the same C > 2 classes: a network has T * C outputs."""

    scores = headline = (SCORES["accuracy"],)
    reads_classes = True

    def label_fields(self, labels, classes=(), targets=()):
        values = np.where(labels == MISSING, np.nan, labels).reshape(-1, len(targets))
        return super().label_fields(values, classes, targets)

    def output_names(self, names):
        return tuple(f"{target}: {name}" for target in names.targets for name in names.classes)

    def loss(self, output, target, weight=None, smoothing=0.0):
        known = target.isfinite()
        rows = output.reshape(*target.shape, -1)[known].log_softmax(dim=-1)
        return nll_loss(rows, target[known].long(), reduction="sum") / known.sum().clamp(min=1)

    def to_predictions(self, output, scale, names):
        shares = (
            output.double()
            .reshape(len(output), len(names.targets), len(names.classes))
            .softmax(dim=-1)
        )
        return shares.flatten(1).numpy()

    def _split(self, predicted, names):
        return np.split(predicted, len(names.targets), axis=-1)

    def columns(self, predicted, targets, names):
        pairs = zip(self._split(predicted, names), targets.T, strict=True)
        return [(p[np.isfinite(t)], t[np.isfinite(t)].astype(int)) for p, t in pairs]

    def uncertainty(self, members, names):
        spread = super().uncertainty(members, names)
        return np.stack([one.max(axis=1) for one in self._split(spread, names)], axis=1)

    def prediction_columns(self, names):
        return [f"p({name})" for name in self.output_names(names)]

    def test_columns(self, names):
        return [*names.targets, *self.prediction_columns(names)]

    def read_test_rows(self, rows, names):
        values = np.array(rows, float).reshape(len(rows), -1)
        width = len(names.targets)
        return values[:, :width], values[:, width:]

    def decide(self, predicted, classes, names):
        chosen = [one.argmax(axis=1) for one in self._split(predicted, names)]
        return classes[np.stack(chosen, axis=1)]


def save_rings(path, label):
    """Save the dataset rings with a label of each graph, made from its number of rings."""
    saved = []
    for data in hp.load_dataset("rings"):
        rings = data.edge_index.shape[1] // 2 - data.num_nodes + 1
        y = torch.tensor(label(rings, data.num_nodes)).reshape(1, -1)
        saved.append(type(data)(x=data.x, edge_index=data.edge_index, y=y))
    torch.save(saved, path)
    return saved
