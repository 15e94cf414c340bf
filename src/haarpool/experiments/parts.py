"""Scores of parts of a dataset, for tables whose columns they are."""

from __future__ import annotations

from haarpool._types import Floats
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split
from haarpool.experiments.lines import Line
from haarpool.tasks import Task


def score_parts(
    line: Line, task: Task, graphs: Graphs, split: Split, train: Floats, test: Floats
) -> dict[str, float]:
    """Return the scores of all parts, of test graphs also by size.

    Args:
        line: Its validation and test scores.
        task: The task.
        graphs: The dataset.
        split: The split.
        train: Predictions for the training part.
        test: Predictions for the test part; large graphs are larger than all of the training part.
    """
    targets = graphs.targets
    assert targets is not None
    is_large = graphs.sizes[split.test] > graphs.sizes[split.train].max()
    predicted = {
        "train": (train, split.train),
        "original sizes": (test[~is_large], split.test[~is_large]),
        "large": (test[is_large], split.test[is_large]),
    }
    scores = {
        part: task.score(output, targets[part_graphs])[line["metric"]]
        for part, (output, part_graphs) in predicted.items()
        if len(part_graphs)
    }
    return {"validation": line["validation"], "test": line["value"]} | scores
