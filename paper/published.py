"""The numbers of the paper: Wang et al., "Haar Graph Pooling", ICML 2020."""

from __future__ import annotations

from typing import NamedTuple

from haarpool._numbers import DASH
from paper.tables import Published


def _parse(text: str) -> dict[str, dict[str, Published]]:
    """Return the numbers of a table by row and column; a dash is none."""
    (_, *columns), *rows = ([x.strip() for x in line.split("|")] for line in text.splitlines()[1:])
    return {
        name: {c: _number(x) for c, x in zip(columns, numbers, strict=True) if x != DASH}
        for name, *numbers in rows
    }


def _number(text: str) -> Published:
    value, _, std = text.partition(" ± ")
    return Published(float(value.rstrip("*")), float(std) if std else None, "*" * ("*" in text))


# Table "Performance comparison for graph classification tasks": test accuracy in per cent. Only
# HaarPool was run by the authors, ten repeats. "*": "records retrieved from EigenPool"; the others
# are quoted from the papers of the methods. –: "no public records".
TABLE1 = _parse("""
          | MUTAG      | PROTEINS   | NCI1       | NCI109     | Mutagenicity
CSM       | 85.4       | –          | –          | –          | –
GIN       | 89.4       | 76.2       | 82.7       | –          | –
SortPool  | 85.8       | 75.5       | 74.4       | 72.3*      | 78.8*
DiffPool  | –          | 76.3       | 76.0*      | 74.1*      | 80.6*
gPool     | –          | 77.7       | –          | –          | –
SAGPool   | –          | 72.1       | 74.2       | 74.1       | –
EigenPool | –          | 76.6       | 77.0       | 74.9       | 79.5
HaarPool  | 90.0 ± 3.6 | 80.4 ± 1.8 | 78.6 ± 0.5 | 75.6 ± 1.2 | 80.9 ± 1.5""")

# Table "Results on the Triangles dataset": accuracy in per cent on the three parts.
TRIANGLES = _parse("""
                     | train | validation | test
GIN-SP-GIN-SP-GIN-MP | 45.6  | 45.3       | 44.0
GIN-HP-GIN-HP-GIN-MP | 47.5  | 46.3       | 46.1
GIN-HP-GIN-GIN-MP    | 47.3  | 45.8       | 45.5""")

# Table "Test mean absolute error (MAE) comparison on QM7", ten repeats. The first four rows are
# quoted from MoleculeNet, which used other features.
QM7 = _parse("""
             | QM7
RF           | 122.7 ± 4.2
Multitask    | 123.7 ± 15.6
KRR          | 110.3 ± 4.7
GC           | 77.9 ± 2.1
GCN-SAGPool  | 43.3 ± 1.6
GCN-HaarPool | 42.9 ± 1.2""")


class Properties(NamedTuple):
    """A row of the table "Property comparison for pooling methods" of the appendix.

    Attributes:
        time: Time complexity.
        space: Space complexity.
        has: What is ticked, among `PROPERTY_NAMES`.
        layer: The layer of `python -m benchmarks` that measures it.
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
