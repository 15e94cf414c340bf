"""Rings: generated graphs in two classes, for a first run without any data.

A graph looks like a molecule of 16 to 28 nodes: two or three rings of 5 or 6 nodes in a row, and
side chains at random nodes. In the class "fused" neighbouring rings share an edge, in "linked" a
path over 1 or 2 nodes connects them. Nodes have random labels. Both classes have about the same
numbers of nodes and edges, so a network has to learn how the rings are joined.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from haarpool.datasets.readers.registry import Reader, register

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from haarpool._types import Ints
    from haarpool.datasets.graphs import Graphs

CLASSES = ("fused", "linked")
NUM_GRAPHS = 240
LABEL_SHARES = (0.7, 0.15, 0.15)  # of the node labels 0, 1, 2


@register
class Rings(Reader):
    """240 generated graphs, half of them in each class.

    Example:
        >>> graphs = Rings().read("rings")
        >>> len(graphs), graphs.classes, graphs.sizes.min(), graphs.sizes.max()
        (240, ('fused', 'linked'), np.int64(16), np.int64(28))
    """

    names = ("rings",)
    generates = True
    tasks = ("classification",)

    def read(self, source: str, task: str | None = None, *, seed: int = 0) -> Graphs:
        """Generate the graphs; the same seed gives the same graphs."""
        import numpy as np

        from haarpool import _validate
        from haarpool.datasets.graphs import Graphs
        from haarpool.tasks import find_task

        rng = np.random.default_rng(_validate.seed(seed))
        targets = np.arange(NUM_GRAPHS) % 2
        drawn = [_draw(rng, fused=target == 0) for target in targets]
        start = np.cumsum([0, *(size for size, _ in drawn)])
        one_way = np.concatenate(
            [edges + first for first, (_, edges) in zip(start, drawn, strict=False)], axis=1
        )
        edges = np.concatenate([one_way, one_way[::-1]], axis=1)
        labels = np.searchsorted(np.cumsum(LABEL_SHARES[:-1]), rng.random(start[-1]), side="right")
        return Graphs(
            "rings",
            start,
            edges[:, np.lexsort(edges[::-1])],
            {"labels": labels[:, None]},
            **find_task(task or "classification").label_fields(targets, CLASSES),
        )

    def sample(self, folder: Path) -> str:
        """Return the name."""
        return "rings"


def _draw(rng: np.random.Generator, *, fused: bool) -> tuple[int, Ints]:
    """Draw a graph: its number of nodes, and (2, E) its edges in one direction."""
    import numpy as np

    size = int(rng.integers(5, 7))
    ring = list(range(size))
    edges = [*zip(ring, [*ring[1:], ring[0]], strict=True)]
    for _ in range(rng.integers(1, 3)):  # further rings
        length, at = int(rng.integers(5, 7)), int(rng.integers(1, len(ring) - 2))
        if fused:
            first, last = ring[at], ring[at + 1]
            ring = [first, *range(size, size + length - 2), last]
        else:
            bridge = int(rng.integers(1, 3))
            path = [ring[at], *range(size, size + bridge + 1)]
            edges += pairwise(path)
            size += bridge
            ring = [*range(size, size + length)]
            edges.append((ring[0], ring[-1]))
        edges += pairwise(ring)
        size = ring[-2 if fused else -1] + 1
    total = int(rng.integers(max(size, 16), 29))
    edges += [(int(rng.integers(node)), node) for node in range(size, total)]  # side chains
    return total, np.array(edges).T
