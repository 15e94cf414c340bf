"""The graphs that the report of a task of nodes draws: positions, targets and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from haarpool._files import Arrays, read_arrays, write_arrays
from haarpool._types import Floats, Ints
from haarpool.chains.layout import plane_layout
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import NodeSplit
from haarpool.training.run import Run
from haarpool.training.trained_model import average, predict_batches

MAX_NODES = 20_000  # of a drawn graph; dots of more are smaller than pixels
MAX_EDGES = 20_000  # of a drawn graph; more lines hide the nodes
GRAPHS = {1: 3, 2: 2}  # how many graphs are drawn, by number of targets; else one


@dataclass(frozen=True, eq=False)
class DrawnGraphs:
    """Test graphs of the repeat whose model is saved, or the graph whose nodes are split.

    Attributes:
        numbers: (k,) Number of each graph, or signal, in the dataset.
        start: (k + 1,) Graph i has the rows start[i] .. start[i + 1] - 1.
        edges: (2, E) Pairs of rows, each once; none of graphs with too many.
        positions: (N, 2) Where nodes are drawn, y upwards.
        target: (N,) classes, -1 without label; or (N, T) values, NaN without label.
        prediction: The same of the predictions.
        is_test: (N,) Whether a node is in the test part.
        num_edges: (k,) Number of edges of each graph, also of those that are not drawn.
    """

    numbers: Ints
    start: Ints
    edges: Ints
    positions: Floats
    target: NDArray[Any]
    prediction: NDArray[Any]
    is_test: NDArray[np.bool_]
    num_edges: Ints

    @classmethod
    def of_run(cls, run: Run) -> Self | None:
        """Predict and place some test graphs of a complete run; None if all are too large."""
        graphs, task, names = run.graphs, run.network.task, run.graphs.names
        split = run.splits[run.model_repeat]
        test = np.unique(split.graphs(split.test))
        test = test[graphs.sizes[test] <= MAX_NODES]
        if not task.of_nodes or not len(test):
            return None
        most = min(GRAPHS.get(max(1, len(names.targets)), 1), len(test))
        chosen = test[np.linspace(0, len(test) - 1, most).round().astype(int)]
        rows = graphs.rows(chosen)
        assert run.model is not None
        assert graphs.targets is not None
        predicted = average(
            predict_batches(run.model.networks, run.model.scale, names, run.batches, chosen, 1)
        )
        # A table of predictions has a target for each of them: missing ones get one for the time.
        target = graphs.targets[rows]
        known, labelled = task.known(target), task.labelled(graphs.targets)
        filled = np.where(known, target, graphs.targets[labelled][:1])
        cells = [task.test_cells(t, p, names) for t, p in zip(filled, predicted, strict=True)]
        shown, prediction = task.read_test_rows(cells, names)
        missing = -1 if shown.ndim == 1 else np.nan
        start = np.concatenate([[0], np.cumsum(graphs.sizes[chosen])])
        pairs, positions = _places(graphs, chosen)
        return cls(
            chosen,
            start,
            np.concatenate(
                [p + s for p, s in zip(pairs, start, strict=False) if p.shape[1] <= MAX_EDGES]
                or [np.zeros((2, 0), np.int64)],
                axis=1,
            ),
            np.concatenate(positions),
            np.where(known, shown, missing),
            prediction,
            np.isin(rows, split.test) if isinstance(split, NodeSplit) else np.ones(len(rows), bool),
            np.array([p.shape[1] for p in pairs]),
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote; a ValueError or LookupError means that the file is damaged."""
        arrays = cast("dict[str, NDArray[Any]]", read_arrays(path))
        drawn = cls(**{name: arrays[name] for name in cls.__dataclass_fields__})
        number, rows = len(drawn.numbers), int(drawn.start[-1])
        wanted: dict[str, tuple[int, ...]] = {
            "start": (number + 1,),
            "positions": (rows, 2),
            "prediction": drawn.target.shape,
            "is_test": (rows,),
            "num_edges": (number,),
        }
        for name, shape in wanted.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name} of shape {arrays[name].shape}, not {shape}")
        if len(drawn.target) != rows or drawn.edges.max(initial=-1) >= rows:
            raise ValueError("nodes without a target")
        return drawn

    def save(self, path: str | PathLike[str]) -> None:
        """Write the arrays to an .npz file, atomically; values with the digits that are seen."""
        arrays: Arrays = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name, array in arrays.items():
            if array.dtype == np.float64:
                arrays[name] = array.astype(np.float32)
        arrays["edges"] = self.edges.astype(np.int32)
        write_arrays(path, arrays)


def _places(graphs: Graphs, chosen: Ints) -> tuple[list[Ints], list[Floats]]:
    """Return the pairs of nodes, each once, and the positions of each of some graphs."""
    pairs, positions = list[Ints](), list[Floats]()
    for i, graph in enumerate(chosen.tolist()):
        place = graphs.positions(graph)
        if graphs.signals and i:  # the graph of the first signal
            pairs.append(pairs[0])
            positions.append(positions[0] if place is None else place)
            continue
        one = graphs.structure if graphs.signals else graphs.take(np.array([graph]))
        low, high = np.sort(one.edges[:, one.edges[0] != one.edges[1]], axis=0)
        pairs.append(np.stack(np.divmod(np.unique(low * one.start[-1] + high), one.start[-1])))
        positions.append(plane_layout(one.batch.adjacency) if place is None else place)
    return pairs, positions
