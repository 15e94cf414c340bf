"""Digits: the handwritten digits that scikit-learn ships, as graphs; they need no network.

Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
1998. An image has 8 × 8 pixels of 0 to 16. The pixels with ink are nodes, each joined with those of
its eight neighbours that have ink, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haarpool.datasets.readers.registry import Reader, register

if TYPE_CHECKING:
    from pathlib import Path

    from haarpool.datasets.graphs import Graphs

SIZE = 8  # pixels in a row and in a column
NEIGHBOURS = ((0, 1), (1, -1), (1, 0), (1, 1))  # those behind a pixel, row by row


@register
class Digits(Reader):
    """1,797 graphs of 16 to 42 nodes in ten classes.

    Features "x" are intensity, column and row of a pixel; "pos" is where it is drawn.

    Example:
        >>> graphs = Digits().read("digits")
        >>> len(graphs), len(graphs.classes), graphs.columns["x"].shape[1]
        (1797, 10, 3)
    """

    names = ("digits",)
    generates = True
    tasks = ("classification", "regression")

    def read(self, source: str, task: str | None = None) -> Graphs:
        """Make the graphs."""
        import numpy as np
        from sklearn.datasets import load_digits

        from haarpool.datasets.graphs import Graphs
        from haarpool.tasks import find_task

        images, digits = load_digits(return_X_y=True)
        images = images.reshape(-1, SIZE, SIZE)
        graph, row, column = np.nonzero(images)
        number = np.full((len(images), SIZE + 1, SIZE + 2), -1)  # a frame without ink
        number[graph, row, column + 1] = np.arange(len(graph))
        one_way = []
        for down, right in NEIGHBOURS:
            other = number[graph, row + down, column + 1 + right]
            one_way.append(np.stack([np.arange(len(graph)), other])[:, other >= 0])
        edges = np.concatenate([*one_way, *(pairs[::-1] for pairs in one_way)], axis=1)
        kind = find_task(task or "classification")
        labels = digits if kind.reads_classes else digits[:, None].astype(float)
        return Graphs(
            "digits",
            np.searchsorted(graph, np.arange(len(images) + 1)),
            edges[:, np.lexsort(edges[::-1])],
            {
                "x": np.stack([images[graph, row, column], column, row], 1).astype(np.float32),
                "pos": np.stack([column, -row], 1).astype(np.float32),
            },
            **kind.label_fields(labels, tuple(map(str, range(10))), ("digit",)),
        )

    def sample(self, folder: Path) -> str:
        """Return the name."""
        return "digits"
