"""What trains the trials of the study: networks, and the trials that choose their learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from haarpool.comparison.checkpoints import Checkpoints
from haarpool.comparison.learners import Line, NetworkLearner, TrainedNetworks
from haarpool.comparison.table import Cell
from haarpool.datasets.splits import NodeSplit, Split
from paper.pooling import peers  # noqa: F401 (a process that trains knows the architectures)

LARGE = "large"  # part of a test part whose graphs are larger than those of the training


class StudyLearner(NetworkLearner):
    """Trains a network; the line has the scores of each target, and of larger test graphs."""

    def more(self, line: Line, networks: TrainedNetworks, split: Split) -> Line:
        """Return the scores of parts."""
        parts = {}
        if targets := networks.trained.result.targets:
            names = networks.task.column_names(networks.run.graphs.names)
            parts = {
                name: scores[line["metric"]]
                for name, scores in zip(names, targets["test"], strict=True)
            }
        return {"parts": parts | size_scores(line, networks, split)}

    @classmethod
    def config(cls, cell: Cell) -> dict[str, Any]:
        """Return all settings; the splits are named by their rule, not by their file."""
        return super().config(cell) | {"split": cell.protocol}

    @classmethod
    def has_settings(cls, made: Mapping[str, Any], cell: Cell) -> bool:
        """Return whether a line was made with the settings of a cell."""
        same_rule = made.get("split") == cell.protocol
        return same_rule and super().has_settings({**made, "split": cell.split_rule}, cell)


class SearchLearner(StudyLearner):
    """Trains a network to choose its learning rate: its line has no score of the test part."""

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train, and keep what belongs to the validation part."""
        line = super().train(seed, splits, checkpoints)
        validation = line["scores"]["validation"]
        return line | {
            "value": line["validation"], "scores": {"validation": validation}, "parts": {},
        }  # fmt: skip


def size_scores(line: Line, networks: TrainedNetworks, split: Split) -> dict[str, float]:
    """Return the scores of test graphs by their size, if there are larger ones than in training.

    Args:
        line: The line, with the name of its main score.
        networks: The networks.
        split: The split.
    """
    graphs, task = networks.run.graphs, networks.task
    if isinstance(split, NodeSplit) or graphs.signals:
        return {}
    is_large = graphs.sizes[split.test] > 1.5 * graphs.sizes[split.train].max()
    if not is_large.any():
        return {}
    assert graphs.targets is not None
    rows, predicted = graphs.rows(split.test), networks.test
    of_large = np.repeat(is_large, graphs.sizes[split.test]) if task.of_nodes else is_large
    scores = {}
    for part, chosen in (("original sizes", ~of_large), (LARGE, of_large)):
        score = task.score(predicted[chosen], graphs.targets[rows[chosen]])
        scores[part] = score[line["metric"]]
    return scores
