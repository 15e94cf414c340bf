"""The numbers of the paper: Wang et al., "Haar Graph Pooling", ICML 2020.

A dash of the paper, "no public records", is a missing entry here.
"""

from __future__ import annotations

from typing import NamedTuple

from haarpool.experiments.table import Published

# Table "Performance comparison for graph classification tasks": test accuracy in per cent. Only
# HaarPool was run by the authors, ten repeats. "*": "records retrieved from EigenPool"; the others
# are quoted from the papers of the methods.
TABLE1: dict[str, dict[str, Published]] = {
    "CSM": {"MUTAG": Published(85.4)},
    "GIN": {"MUTAG": Published(89.4), "PROTEINS": Published(76.2), "NCI1": Published(82.7)},
    "SortPool": {
        "MUTAG": Published(85.8),
        "PROTEINS": Published(75.5),
        "NCI1": Published(74.4),
        "NCI109": Published(72.3, mark="*"),
        "Mutagenicity": Published(78.8, mark="*"),
    },
    "DiffPool": {
        "PROTEINS": Published(76.3),
        "NCI1": Published(76.0, mark="*"),
        "NCI109": Published(74.1, mark="*"),
        "Mutagenicity": Published(80.6, mark="*"),
    },
    "gPool": {"PROTEINS": Published(77.7)},
    "SAGPool": {
        "PROTEINS": Published(72.1),
        "NCI1": Published(74.2),
        "NCI109": Published(74.1),
    },
    "EigenPool": {
        "PROTEINS": Published(76.6),
        "NCI1": Published(77.0),
        "NCI109": Published(74.9),
        "Mutagenicity": Published(79.5),
    },
    "HaarPool": {
        "MUTAG": Published(90.0, 3.6),
        "PROTEINS": Published(80.4, 1.8),
        "NCI1": Published(78.6, 0.5),
        "NCI109": Published(75.6, 1.2),
        "Mutagenicity": Published(80.9, 1.5),
    },
}

# Table "Results on the Triangles dataset": accuracy in per cent on the three parts.
TRIANGLES: dict[str, dict[str, Published]] = {
    "GIN-SP-GIN-SP-GIN-MP": {
        "train": Published(45.6),
        "validation": Published(45.3),
        "test": Published(44.0),
    },
    "GIN-HP-GIN-HP-GIN-MP": {
        "train": Published(47.5),
        "validation": Published(46.3),
        "test": Published(46.1),
    },
    "GIN-HP-GIN-GIN-MP": {
        "train": Published(47.3),
        "validation": Published(45.8),
        "test": Published(45.5),
    },
}

# Table "Test mean absolute error (MAE) comparison on QM7", ten repeats. The first four rows are
# quoted from MoleculeNet, which used other features.
QM7: dict[str, dict[str, Published]] = {
    "RF": {"QM7": Published(122.7, 4.2)},
    "Multitask": {"QM7": Published(123.7, 15.6)},
    "KRR": {"QM7": Published(110.3, 4.7)},
    "GC": {"QM7": Published(77.9, 2.1)},
    "GCN-SAGPool": {"QM7": Published(43.3, 1.6)},
    "GCN-HaarPool": {"QM7": Published(42.9, 1.2)},
}


class Properties(NamedTuple):
    """A row of the table "Property comparison for pooling methods" of the appendix.

    Attributes:
        time: Time complexity.
        space: Space complexity.
        has: What is ticked, among `PROPERTY_NAMES`.
        layer: The layer of `haarpool bench` that measures it.
    """

    time: str
    space: str
    has: frozenset[str]
    layer: str


PROPERTY_NAMES = (
    "clustering-based",
    "spectral-based",
    "hierarchical",
    "node features",
    "graph structure",
    "sparse representation",
)
_SELECTS = frozenset({"hierarchical", "node features"})
_SPECTRAL = _SELECTS | {"clustering-based", "spectral-based", "graph structure"}
PROPERTIES: dict[str, Properties] = {
    "SortPool": Properties("|V|²", "|V|", frozenset({"node features"}), "SortAggregation"),
    "DiffPool": Properties("|V|²", "k|V|²", _SELECTS, "DiffPool"),
    "gPool": Properties("|V|²", "|V| + |E|", _SELECTS, "TopKPooling"),
    "SAGPool": Properties("|E|", "|V| + |E|", _SELECTS | {"graph structure"}, "SAGPooling"),
    "EigenPool": Properties("|V|²", "|V|²", _SPECTRAL, "EigenPooling"),
    "HaarPool": Properties(
        "|V|", "|V|²ε", _SPECTRAL | {"sparse representation"}, "HaarPooling, haar"
    ),
}
