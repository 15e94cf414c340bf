"""What trains the trials of the study: networks, and the trials that choose their learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from haarpool.comparison.checkpoints import Checkpoints
from haarpool.comparison.learners import Line, NetworkLearner, TrainedNetworks
from haarpool.comparison.table import Cell
from haarpool.datasets.splits import Split
from paper.pooling.data import splits_file
from paper.pooling.peers import register_peers
from paper.pooling.reach import reach


@dataclass(frozen=True)
class StudyCell(Cell):
    """A cell whose splits may be in a file beside the dataset.

    Attributes:
        large: Test graphs with more nodes are scored apart; 0 for none.
    """

    large: int = 0

    @property
    def split_rule(self) -> str:
        """The rule of `make_splits`."""
        path = splits_file(self.dataset)
        return str(path) if path.exists() else self.protocol


class StudyLearner(NetworkLearner):
    """Trains a network; the line has the scores of each target, and of larger test graphs."""

    cell: StudyCell

    def more(self, line: Line, networks: TrainedNetworks, split: Split) -> Line:
        """Return the scores of parts."""
        parts = {}
        if targets := networks.trained.result.targets:
            names = networks.task.column_names(networks.run.graphs.names)
            parts = {
                name: scores[line["metric"]]
                for name, scores in zip(names, targets["test"], strict=True)
            }
        if self.cell.large:
            parts |= size_scores(self.cell.large, line["metric"], networks, split)
        main = {"value": parts["original sizes"]} if self.cell.large else {}
        return {"parts": parts} | main | self.reach(networks, split)

    def reach(self, networks: TrainedNetworks, split: Split) -> Line:
        """Return how far the network of the first seed looks, if each node has an output."""
        if split is not networks.run.splits[0] or not networks.task.of_nodes:
            return {}
        batch = networks.run.batches.take(split.graphs(split.test)[:1])
        return {"reach": round(reach(networks.trained.members[0].network, batch), 3)}

    @classmethod
    def config(cls, cell: Cell) -> dict[str, Any]:
        """Return all settings; the splits are named by their rule, not by their file."""
        register_peers()  # a process that trains asks for the settings first
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
        scores = {"validation": line["scores"]["validation"]}
        return line | {"value": line["validation"], "scores": scores}

    def more(self, line: Line, networks: TrainedNetworks, split: Split) -> Line:
        """Return nothing: parts are those of the test part."""
        return {}


def size_scores(
    largest: int, metric: str, networks: TrainedNetworks, split: Split
) -> dict[str, float]:
    """Return the scores of test graphs by their size.

    Args:
        largest: Larger graphs than this are scored apart.
        metric: Name of the score.
        networks: The networks.
        split: The split.
    """
    graphs, task = networks.run.graphs, networks.task
    assert graphs.targets is not None
    is_large = graphs.sizes[split.test] > largest
    rows, of_large = graphs.rows(split.test), is_large
    if task.of_nodes:
        of_large = np.repeat(is_large, graphs.sizes[split.test])
    scores = {}
    for part, chosen in (("original sizes", ~of_large), ("large", of_large)):
        score = task.score(networks.test[chosen], graphs.targets[rows[chosen]])
        scores[part] = score[metric]
    return scores
