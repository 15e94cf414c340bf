"""`Task`: what a network predicts, and all that follows from it; and the list of tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from haarpool._numbers import six_digits
from haarpool._text import count
from haarpool._types import Floats, Ints
from haarpool.errors import HaarPoolError
from haarpool.tasks._figures import Figure
from haarpool.tasks._labels import NO_NAMES, Names, spread
from haarpool.tasks._scale import Scale
from haarpool.tasks._scores import Score

if TYPE_CHECKING:
    from torch import Tensor


class Task(str):
    """What is predicted, and all that follows from it: loss, scores, tables, pictures.

    A task is a string, its name: so it prints, compares and goes to JSON. `find_task` returns the
    one object of a name.

        >>> from haarpool.tasks import find_task
        >>> task = find_task("regression")
        >>> task, [score.name for score in task.scores]
        ('regression', ['mae', 'rmse', 'r2'])

    It is asked for everything that depends on the labels:

        >>> labels = np.array([[1.0], [np.nan], [3.0]])
        >>> task.labelled(labels), task.main_score(np.zeros((3, 1)), labels)
        (array([ True, False,  True]), 2.0)
        >>> task.prediction_columns(Names(targets=("energy",)))
        ['energy']

    This class has what is true for (n, T) targets with NaN as missing labels. A new task is a class
    in a file of this folder:

        >>> from haarpool.tasks import SCORES
        >>> from haarpool.tasks import register
        >>> @register("squares")
        ... class Squares(Task):
        ...     scores = headline = (SCORES["rmse"],)
        ...     def loss(self, output, target, weight=None, smoothing=0.0):
        ...         known = target.isfinite()
        ...         return (output - target).square().nansum() / known.sum().clamp(min=1)
        >>> find_task("squares").label_fields(labels, targets=("atoms",))["target_names"]
        ('atoms',)
        >>> from haarpool.tasks import _registry
        >>> del _registry._TASKS["squares"]

    Attributes:
        scores: Its scores. The first one is the main score, by which the best epoch (with
            `monitor="score"`) and the best repeat are found.
        headline: The main score, and those that people compare beside it: on the screen, and in the
            table of targets.
        scale: The class of the scale that networks see the targets on, for example `Scale`; None if
            they see them as they are.
        of_nodes: Labels belong to the nodes of graphs: their arrays have a row per node.
        reads_classes: Labels are classes, not values.
        has_targets: Several targets have labels of their own.
        classes: Names of the classes of labels in arrays; by default those that occur.
        of_several: Name of the task that several targets of this kind are, if it is another one.
        dtype: Type of the labels in a minibatch.
        is_linear: Outputs are the targets but for their scale, so that a linear fit is a start.
        remedy: What helps if a part of a split lacks a class.
    """

    __slots__ = ()

    scores: ClassVar[tuple[Score, ...]]
    headline: ClassVar[tuple[Score, ...]]
    scale: ClassVar[type[Scale] | None] = None
    of_nodes: ClassVar[bool] = False
    reads_classes: ClassVar[bool] = False
    has_targets: ClassVar[bool] = True
    classes: ClassVar[tuple[str, ...]] = ()
    of_several: ClassVar[str] = ""
    dtype: ClassVar[type[np.generic]] = np.float32
    is_linear: ClassVar[bool] = False
    remedy: ClassVar[str] = "leave these targets out"

    @property
    def unit(self) -> str:
        """What has labels: "graph" or "node"."""
        return "node" if self.of_nodes else "graph"

    def __reduce__(self) -> tuple[Any, ...]:
        from haarpool.tasks._registry import find_task

        return find_task, (str(self),)

    # ------------------------------------------------------------------ labels

    def reads_like(self, other: Task) -> bool:
        """Return whether another task reads labels of the same kind: classes or values."""
        kinds = ((one.reads_classes, one.has_targets, one.of_nodes) for one in (self, other))
        mine, theirs = kinds
        return mine == theirs

    def infers(self, num_targets: int, num_classes: int | None) -> bool:
        """Return whether labels are of this task if none is given, see `infer_task`.

        Args:
            num_targets: Number of labels of each graph.
            num_classes: Number of different labels; None if they look like values.
        """
        return False

    def label_fields(
        self, labels: NDArray[Any], classes: Sequence[str] = (), targets: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return the fields of `Graphs` about labels.

        Args:
            labels: (G, T) values; for tasks that read classes (G,), or (G * T,) graph by graph,
                numbers of classes, -1 without label.
            classes: (C,) Names of the classes.
            targets: (T,) Names of the targets.
        """
        names = {"classes": tuple(classes), "target_names": tuple(targets)}
        return {"task": self, "targets": labels, **names}

    def known(self, targets: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which labels are known, in the shape of the targets."""
        return np.asarray(np.isfinite(targets))

    def labelled(self, targets: NDArray[Any]) -> NDArray[np.bool_]:
        """Return (n,) which graphs have a label, or at least one of several."""
        known = self.known(targets)
        return known if known.ndim == 1 else np.asarray(known.any(axis=1))

    def check(self, targets: NDArray[Any], names: Names, dataset: str) -> None:
        """Raise a `HaarPoolError` if labels cannot train a network, for example negative counts.

        Args:
            targets: Labels of all graphs, at least one of which is known.
            names: Their names.
            dataset: Name of the dataset.
        """

    def check_parts(
        self, targets: NDArray[Any], names: Names, splits: Sequence[Sequence[Ints]]
    ) -> str:
        """Say which parts of which splits lack a class; "" if none does.

        Args:
            targets: Labels of all graphs.
            names: Their names.
            splits: For each repeat the graphs of the parts, as in `PARTS`.

        Raises:
            HaarPoolError: A network cannot be trained on a part.
        """
        return ""

    def strata(self, targets: NDArray[Any]) -> Ints | None:
        """Return (n,) classes that splits spread evenly; None if graphs have no class each."""
        return None

    def summary(self, targets: NDArray[Any], names: Names) -> dict[str, Any]:
        """Return statistics of the labels of a dataset, ready for JSON."""
        return {
            "targets": {
                name: self._summary(column[self.known(column)], names)
                | {"missing": int((~self.known(column)).sum())}
                for name, column in zip(names.targets, targets.T, strict=True)
            }
        }

    def _summary(self, labels: NDArray[Any], names: Names) -> dict[str, Any]:
        """Return statistics of the known labels of a target."""
        return spread(labels) | {"std": float(labels.std()) if labels.size else None}

    def example_labels(self, rng: np.random.Generator, n: int) -> tuple[NDArray[Any], Names]:
        """Return labels of n graphs, all known, and their names, for tests of all tasks."""
        return rng.standard_normal((n, 2)), Names(targets=("a", "b"))

    # ------------------------------------------------------------------ training

    def output_names(self, names: Names) -> tuple[str, ...]:
        """Return a name for each output of a network."""
        return names.targets

    def loss(
        self, output: Tensor, target: Tensor, weight: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """Compute the loss, a mean over the labels that are known; 0 if none is.

        Args:
            output: (B, out_channels) output of a network.
            target: (B,) classes, or (B, T) zeros and ones or values on the `scale`, NaN without
                label.
            weight: What `class_weights` returned.
            smoothing: Share of the target that is spread over all classes.
        """
        raise NotImplementedError

    def class_weights(self, targets: NDArray[Any], num_classes: int) -> Floats | None:
        """Return weights that make classes equally important; None for values.

        Args:
            targets: Labels of the training part.
            num_classes: Number of classes.
        """
        return None

    def mass(self, targets: NDArray[Any], weights: Floats | None = None) -> Floats:
        """Return (n,) the weight of each graph in a mean of losses over minibatches.

        It is the number by which `loss` divides, less what other graphs add to it.

        Args:
            targets: Labels of the graphs.
            weights: What `class_weights` returned, if classes are weighted.
        """
        known = self.known(targets)
        return np.asarray(known.sum(axis=1), np.float64)

    def to_predictions(self, output: Tensor, scale: Scale | None, names: Names) -> Floats:
        """Turn (n, out_channels) outputs of a network into probabilities, or values in their units.

        Args:
            output: The outputs.
            scale: Scale of the training part.
            names: Names of what is predicted.

        Returns:
            (n, columns) array; several columns per target are those of one target after the other.
        """
        return (output if scale is None else scale.restore(output)).numpy()

    @final
    def predictions(self, output: Tensor, scale: Scale | None, names: Names) -> Floats:
        """Return what `to_predictions` returns, checked."""
        predicted = self.to_predictions(output, scale, names)
        shape = f"({len(output)}, columns)"
        got = f"{type(predicted).__name__} {tuple(getattr(predicted, 'shape', ()))}"
        if not isinstance(predicted, np.ndarray):
            remedy = "end it with .numpy()"
        elif predicted.ndim != 2 or len(predicted) != len(output):
            remedy = "return a row per graph"
        else:
            return predicted
        expected = f"a numpy array {shape} from {type(self).__name__}.to_predictions"
        raise HaarPoolError(expected, got, remedy)

    def uncertainty(self, members: Floats, names: Names) -> Floats:
        """Compute the standard deviation of predictions over the members of an ensemble.

        Args:
            members: (M, n, C) or (M, n, T) predictions, M >= 2.
            names: Names of what is predicted.

        Returns:
            (n, T), one column per target; (n, 1) if each graph has one class.
        """
        return np.asarray(members.std(axis=0, ddof=1))

    # ------------------------------------------------------------------ scores

    def columns(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> Iterable[tuple[NDArray[Any], NDArray[Any]]]:
        """Return for each target the predictions and the labels of graphs whose label is known.

        Args:
            predicted: (n, C) probabilities of the classes, (n, T) probabilities of ones, or (n, T)
                values in the units of the targets.
            targets: (n,) classes, -1 without label, or (n, T) zeros and ones, or values, NaN
                without label.
            names: Names of what is predicted; a task whose networks have several outputs per target
                needs them.
        """
        if predicted.shape[1:] != targets.shape[1:]:
            raise HaarPoolError(
                f"a prediction of {self} for each of {count(targets.shape[1], 'target')}",
                f"{predicted.shape[1]}",
                f"override {type(self).__name__}.columns, which pairs predictions with labels",
            )
        pairs = zip(predicted.T.astype(np.float64), targets.T.astype(np.float64), strict=True)
        return ((p[known], t[known]) for p, t in pairs for known in [self.known(t)])

    def column_names(self, names: Names) -> tuple[str, ...]:
        """Return the names of several `columns`; the scores of each are shown."""
        return names.targets

    def score_targets(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> list[dict[str, float]]:
        """Compute the scores of each of several targets, those that are defined.

        The arguments are those of `columns`.

        Returns:
            (T,) Scores by name; {} for a target without any label.

        Example:
            >>> output, target = np.array([[0.1, 0.2], [0.8, 0.4]]), np.array([[0, 0], [1, 0]])
            >>> from haarpool.tasks import find_task
            >>> each = find_task("multilabel").score_targets(output, target)
            >>> [scores.get("roc_auc") for scores in each]
            [1.0, None]
        """
        return [
            {s.name: v for s in self.scores if len(true) and (v := s.compute(p, true)) is not None}
            for p, true in self.columns(predicted, targets, names)
        ]

    def score(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> dict[str, float]:
        """Compute all scores; those of several targets are means over the targets.

        The arguments are those of `columns`.

        Returns:
            Scores by name. A mean is over the targets for which the score is defined; it is NaN if
            there is none, and for R² if there is one target for which it is not defined. Without
            targets, a score that is not defined is left out.
        """
        each = [scores for scores in self.score_targets(predicted, targets, names) if scores]
        if not each:
            raise _no_labels()
        return {
            one.name: _mean([scores[one.name] for scores in each if one.name in scores])
            for one in self.scores
            if self.has_targets or one.name in each[0]
        }

    def main_score(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> float:
        """Compute the main score alone, which is faster than `score`.

        The arguments are those of `columns`.

        Example:
            >>> labels = np.array([0, 0])
            >>> from haarpool.tasks import find_task
            >>> find_task("classification").main_score(np.array([[0.9, 0.1], [0.4, 0.6]]), labels)
            0.5
        """
        compute = self.scores[0].compute
        pairs = self.columns(predicted, targets, names)
        values = [compute(*pair) for pair in pairs if len(pair[1])]
        if not values:
            raise _no_labels()
        return _mean([value for value in values if value is not None])

    def higher_is_better(self, value: float) -> float:
        """Return a main score with the sign that makes higher better; -∞ if it is not defined."""
        if math.isnan(value):
            return -math.inf
        return -value if self.scores[0].lower_is_better else value

    def estimator_score(
        self, predicted: NDArray[Any], targets: NDArray[Any], names: Names = NO_NAMES
    ) -> float:
        """Return what `score` of an estimator returns: the main score; minus it if it is an error.

        The arguments are those of `columns`.
        """
        value = self.main_score(predicted, targets, names)
        return -value if self.scores[0].lower_is_better else value

    def predicts_one_class(self, scores: Mapping[str, float]) -> bool:
        """Return whether scores are those of a network that predicts one class for all graphs."""
        return False

    # ------------------------------------------------------------------ tables and estimators

    def prediction_columns(self, names: Names) -> list[str]:
        """Return the header of a table of predictions."""
        return list(names.targets)

    def prediction_cells(self, predicted: Floats, names: Names) -> list[str]:
        """Return the cells of a graph in a table of predictions.

        Args:
            predicted: (C,) or (T,) prediction for the graph.
            names: Names of what is predicted.
        """
        return six_digits(predicted)

    def uncertainty_columns(self, names: Names) -> list[str]:
        """Return the header of the columns of `uncertainty` in a table of predictions."""
        several = len(names.targets) > 1
        return [f"{one} uncertainty" for one in names.targets] if several else ["uncertainty"]

    def test_columns(self, names: Names) -> list[str]:
        """Return the header of a table of targets and predictions: `test.csv`."""
        return [f"{kind} {name}" for kind in ("target", "prediction") for name in names.targets]

    def test_cells(self, target: Any, predicted: Floats, names: Names) -> list[str]:
        """Return the cells of a graph in such a table.

        Args:
            target: Its class, or (T,) labels.
            predicted: (C,) or (T,) prediction for the graph.
            names: Names of what is predicted.
        """
        return six_digits([*target, *predicted])

    def read_test_rows(
        self, rows: Sequence[Sequence[str]], names: Names
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read the rows of such a table: targets and predictions of one shape, (n,) or (n, T)."""
        width = len(names.targets)
        values = np.array(rows, np.float64).reshape(-1, 2 * width)
        return values[:, :width], values[:, width:]

    def decide(self, predicted: Floats, classes: NDArray[Any], names: Names) -> NDArray[Any]:
        """Return what an estimator predicts: (n,), or (n, T) for several targets.

        Args:
            predicted: (n, C) or (n, T) predictions.
            classes: (C,) The classes as they were in the labels.
            names: Names of what is predicted.
        """
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted

    # ------------------------------------------------------------------ the report

    def describe(self, names: Names) -> str:
        """Say what is predicted, in a few words."""
        return f"{self.capitalize()} of {', '.join(names.targets)}"

    def describe_output(self, names: Names) -> str:
        """Say what a network returns."""
        return count(len(names.targets), "value")

    def figure(
        self, target: NDArray[Any], prediction: NDArray[Any], names: Names, repeats: int
    ) -> Figure:
        """Return what the report shows of the predictions for the test parts of all repeats.

        Args:
            target: (n,) classes, or (n, T) labels.
            prediction: (n,) classes, or (n, T) predictions.
            names: Names of what is predicted.
            repeats: Number of repeats.
        """
        return Figure("This task has no picture of its predictions.")


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _no_labels() -> HaarPoolError:
    return HaarPoolError("at least one graph with a label", "none", "pass graphs with labels")
