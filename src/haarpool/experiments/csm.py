"""CSM: the subgraph matching kernel of grakel with a support vector machine.

Kriege and Mutzel, "Subgraph Matching Kernels for Attributed Graphs", ICML 2012. The kernel counts
pairs of matching subgraphs of up to k nodes. It does not depend on the split, so a process computes
it once per dataset. Its time grows with the fourth power of the number of nodes and with the
square of the number of graphs; it ends on small datasets only.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from haarpool._types import Floats
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError, import_extra

PENALTIES = tuple(10.0**power for power in range(-3, 4))  # values of C
WAIT = 120  # seconds before the time of all pairs is estimated: some take a thousand times longer


class CsmScores(NamedTuple):
    """Accuracies of the SVM with the best C on the validation part."""

    validation: float
    test: float
    C: float


def score_csm(graphs: Graphs, split: Split, *, subgraph_size: int, minutes: float) -> CsmScores:
    """Train the SVM on a split.

    Args:
        graphs: The dataset, with classes.
        split: The split.
        subgraph_size: k, the largest number of nodes of a subgraph.
        minutes: Longest time for the kernel. If it would take longer, an error says so soon.
    """
    from sklearn.svm import SVC

    kernel, targets = _kernel(graphs, subgraph_size, minutes), graphs.targets
    if isinstance(kernel, HaarPoolError):
        raise kernel
    assert targets is not None
    best = CsmScores(-1.0, 0.0, 0.0)
    for penalty in PENALTIES:
        machine = SVC(C=penalty, kernel="precomputed")
        machine.fit(kernel[np.ix_(split.train, split.train)], targets[split.train])
        scores = [
            float(np.mean(machine.predict(kernel[np.ix_(part, split.train)]) == targets[part]))
            for part in (split.validation, split.test)
        ]
        if scores[0] > best.validation:
            best = CsmScores(scores[0], scores[1], penalty)
    return best


@lru_cache(maxsize=1)
def _kernel(graphs: Graphs, subgraph_size: int, minutes: float) -> Floats | HaarPoolError:
    """Return the (G, G) kernel matrix with ones on its diagonal, or why there is none."""
    kernels = import_extra("grakel.kernels", "csm")
    matching = kernels.SubgraphMatching(k=subgraph_size)
    matching.initialize()
    inputs = [_as_grakel(graphs, g) for g in range(len(graphs))]
    rows, columns = np.triu_indices(len(graphs))
    # In random order, so that the time of the first pairs tells the time of all.
    order = np.random.default_rng(0).permutation(len(rows))
    kernel: Floats = np.zeros((len(graphs), len(graphs)))
    start = time.perf_counter()
    for n, pair in enumerate(order.tolist(), 1):
        i, j = int(rows[pair]), int(columns[pair])
        kernel[i, j] = kernel[j, i] = matching.pairwise_operation(inputs[i], inputs[j])
        seconds = time.perf_counter() - start
        if seconds > WAIT and seconds / n * len(order) > 60 * minutes:
            return HaarPoolError(
                f"a kernel matrix within {minutes:g} minutes",
                f"{seconds / n * len(order) / 3600:.1f} hours, by its first {n:,} pairs of graphs",
                "allow more minutes",
            )
    scale = np.sqrt(np.diag(kernel))
    return np.asarray(kernel / np.outer(scale, scale))


def _as_grakel(graphs: Graphs, graph: int) -> tuple[int, Any, Any, Any]:
    """Return a graph as grakel parses it: size, edges, labels of nodes and of edges."""
    nodes = slice(*graphs.start[graph : graph + 2].tolist())
    edges = slice(*graphs.edge_start[graph : graph + 2].tolist())
    pairs = list(map(tuple, (graphs.edges[:, edges] - nodes.start).T.tolist()))
    labels = _labels(graphs.columns, nodes)
    of_edges = _labels(graphs.edge_columns, edges)
    return (
        nodes.stop - nodes.start,
        {pair for pair in pairs if pair[0] != pair[1]},
        dict(enumerate(labels)),
        dict(zip(pairs, of_edges, strict=True)),
    )


def _labels(columns: Any, part: slice) -> list[Any]:
    """Return one label per node or edge; all the same if there are none."""
    if "labels" not in columns:
        return [0] * (part.stop - part.start)
    rows = columns["labels"][part].reshape(part.stop - part.start, -1)
    return [tuple(row) for row in rows.tolist()]
