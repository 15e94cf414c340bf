"""Classification: each graph has one of C classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from haarpool._numbers import six_digits
from haarpool._text import count
from haarpool._types import Floats, Ints
from haarpool.errors import HaarPoolError
from haarpool.tasks._figures import Figure, Matrix
from haarpool.tasks._labels import MISSING, NO_NAMES, PARTS, Names, balanced
from haarpool.tasks._registry import infer_task, register
from haarpool.tasks._scale import Scale
from haarpool.tasks._scores import ACCURACY, BALANCED_ACCURACY, F1, ROC_AUC, Score
from haarpool.tasks._task import Task

if TYPE_CHECKING:
    from torch import Tensor

MAX_CLASSES = 40  # of a confusion matrix; a larger one is unreadable


@register("classification")
class Classification(Task):
    """One of C classes per graph: targets are (n,) numbers of classes, -1 without label.

    A network has a score for each class; predictions are (n, C) probabilities.
    """

    __slots__ = ()

    scores: ClassVar[tuple[Score, ...]] = (ACCURACY, BALANCED_ACCURACY, F1, ROC_AUC)
    headline: ClassVar[tuple[Score, ...]] = (ACCURACY, ROC_AUC)
    reads_classes = True
    has_targets = False
    of_several = "multilabel"
    dtype = np.int64
    remedy = "pass {split}"

    def infers(self, num_targets: int, num_classes: int | None) -> bool:
        """Take one label that looks like a class."""
        return num_targets == 1 and num_classes is not None

    def label_fields(
        self, labels: NDArray[Any], classes: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Leave the name of the target out."""
        return super().label_fields(labels, classes)

    def known(self, targets: NDArray[Any]) -> NDArray[np.bool_]:
        """Return (n,) which classes are known."""
        return np.asarray(targets != MISSING)

    def check(self, targets: NDArray[Any], names: Names, dataset: str) -> None:
        """Raise an error if all graphs are of one class."""
        present = np.unique(targets[self.known(targets)])
        if len(present) < 2:
            raise HaarPoolError(
                f"at least two classes in {dataset}",
                f"only {names.classes[present[0]]!r}",
                f"add {self.unit}s of another class, or pass {{task}}",
                task=str(infer_task(1, of_nodes=self.of_nodes)),
            )

    def check_parts(
        self, targets: NDArray[Any], names: Names, splits: Sequence[Sequence[Ints]]
    ) -> str:
        """Say which part lacks a class that the dataset has."""
        present = np.unique(targets[self.known(targets)])
        messages: list[str] = []
        for repeat, split in enumerate(splits):
            for part_name, part in zip(PARTS, split, strict=True):
                missing = np.setdiff1d(present, targets[part])
                if len(part) and len(missing):
                    where = f" of repeat {repeat + 1}" if len(splits) > 1 else ""
                    others = len(missing) - 1
                    more = f" and {count(others, 'other class', 'other classes')}" * (others > 0)
                    label = f"{names.classes[missing[0]]!r}{more}"
                    messages.append(
                        f"no {self.unit} of class {label} in the {part_name} part{where}"
                    )
        more = f" (and {len(messages) - 1} more)" if len(messages) > 1 else ""
        return messages[0] + more if messages else ""

    def strata(self, targets: NDArray[Any]) -> Ints | None:
        """Return the classes."""
        return targets

    def summary(self, targets: NDArray[Any], names: Names) -> dict[str, Any]:
        """Count the graphs of each class."""
        counts = np.bincount(targets[self.known(targets)], minlength=len(names.classes))
        return {"classes": dict(zip(names.classes, counts.tolist(), strict=True))}

    def example_labels(self, rng: np.random.Generator, n: int) -> tuple[NDArray[Any], Names]:
        """Return three classes."""
        return rng.integers(3, size=n), Names(classes=("a", "b", "c"))

    def output_names(self, names: Names) -> tuple[str, ...]:
        """Return the classes."""
        return names.classes

    def loss(
        self, output: Tensor, target: Tensor, weight: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """Compute the cross entropy; weights are (C,)."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(output, target.view(-1), weight, label_smoothing=smoothing)

    def class_weights(self, targets: NDArray[Any], num_classes: int) -> Floats | None:
        """Return (C,) weights of the classes."""
        return balanced(np.bincount(targets[self.known(targets)], minlength=num_classes))

    def mass(self, targets: NDArray[Any], weights: Floats | None = None) -> Floats:
        """Return the weight of the class of each graph; 0 without label."""
        known = self.known(targets).astype(np.float64)
        return known if weights is None else known * weights[targets]

    def to_predictions(self, output: Tensor, scale: Scale | None, names: Names) -> Floats:
        """Turn scores into probabilities of classes."""
        return output.double().softmax(dim=1).numpy()

    def uncertainty(self, members: Floats, names: Names) -> Floats:
        """Compute the (n, 1) standard deviation of the probability of the predicted class.

        Example:
            >>> from haarpool.tasks import find_task
            >>> members, names = np.array([[[0.9, 0.1]], [[0.7, 0.3]]]), Names(("a", "b"))
            >>> find_task("classification").uncertainty(members, names).round(3)
            array([[0.141]])
        """
        predicted = members.mean(axis=0).argmax(axis=1)[:, None]
        return np.take_along_axis(super().uncertainty(members, names), predicted, axis=1)

    def columns(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return the probabilities and the classes, as one column."""
        known = self.known(targets)
        return [(predicted[known], targets[known])]

    def predicts_one_class(self, scores: Mapping[str, float]) -> bool:
        """Return whether scores are those of one class.

        Only this class has a recall, 1, and an F1, 2a / (1 + a) with its share a of the graphs,
        which is the accuracy; both are divided by the number of classes.
        """
        share, recall, f1 = (scores.get(one.name) for one in (ACCURACY, BALANCED_ACCURACY, F1))
        if share is None or f1 is None or recall is None or not 0 < recall <= 1 / 2:
            return False
        num_classes = round(1 / recall)
        expected = 2 * share / (1 + share) / num_classes
        return math.isclose(recall * num_classes, 1) and math.isclose(f1, expected)

    def prediction_columns(self, names: Names) -> list[str]:
        """Return a column for the class, and one for each probability."""
        return ["prediction", *(f"p({name})" for name in names.classes)]

    def prediction_cells(self, predicted: Floats, names: Names) -> list[str]:
        """Return the class, and the probabilities."""
        return [names.classes[int(predicted.argmax())], *six_digits(predicted)]

    def test_columns(self, names: Names) -> list[str]:
        """Return a column for the true class before those of the prediction."""
        return ["target", *self.prediction_columns(names)]

    def test_cells(self, target: Any, predicted: Floats, names: Names) -> list[str]:
        """Return the true class before the cells of the prediction."""
        return [names.classes[target], *self.prediction_cells(predicted, names)]

    def read_test_rows(
        self, rows: Sequence[Sequence[str]], names: Names
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read (n,) true and (n,) predicted classes."""
        number = {name: c for c, name in enumerate(names.classes)}
        classes = np.array([[number[name] for name in row[:2]] for row in rows], np.int64)
        true, predicted = classes.reshape(-1, 2).T
        return true, predicted

    def decide(self, predicted: Floats, classes: NDArray[Any], names: Names) -> NDArray[Any]:
        """Return the most probable class of each graph."""
        return np.asarray(classes[predicted.argmax(axis=1)])

    def describe(self, names: Names) -> str:
        """Say how many classes there are."""
        return f"Classification into {self.describe_output(names)}"

    def describe_output(self, names: Names) -> str:
        """Say how many classes there are."""
        return count(len(names.classes), "class", "classes")

    def figure(
        self, target: NDArray[Any], prediction: NDArray[Any], names: Names, repeats: int
    ) -> Figure:
        """Return the confusion matrix of the test parts of all repeats together."""
        size, known = len(names.classes), self.known(target)
        if size > MAX_CLASSES:
            return Figure(f"{size} classes are too many for a confusion matrix.")
        counts = np.zeros((size, size), np.int64)
        np.add.at(counts, (target[known].astype(int), prediction[known].astype(int)), 1)
        matrix = Matrix(names.classes, counts)
        most_frequent = counts.sum(axis=1).max() / max(int(counts.sum()), 1)
        return Figure(
            f"Confusion matrix of {counts.sum():,} predictions"
            f"{f' of the {repeats} test parts together' if repeats > 1 else ''}: the number of "
            f"{self.unit}s and{'' if matrix.shows_shares else ', when pointed at,'} their share of "
            "the row. Correct predictions are on the diagonal. Always predicting the most frequent "
            f"class would give an accuracy of {100 * most_frequent:.0f} %.",
            matrix=matrix,
        )
