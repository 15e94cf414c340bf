"""Ablation: one factor at a time from the default network.

The paper claims that the depth of the chain has a substantial effect, that the randomness of the
clustering has little effect, and that any clustering works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from haarpool.comparison.table import Cell
from haarpool.training.presets import BEST
from paper.tables import PaperTable, Row

DATASETS = ("MUTAG", "PROTEINS", "NCI1")
DEFAULT: dict[str, Any] = {**BEST, "threads": 1}
LEVELS = (0, 1, 3, 4)  # besides the default, 2
CLUSTERINGS = ("matching", "metis", "paris", "louvain")  # besides the default, spectral
SEEDS = range(5)


def _variants() -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield rows with the settings that differ from the default."""
    note = "`haarpool train` without settings: two levels, vertex domain, spectral clustering."
    yield Row("default", "default", note), {}
    for levels in LEVELS:
        title = "no pooling" if levels == 0 else f"{levels} level{'s' * (levels > 1)}"
        yield Row(f"levels-{levels}", title), {"arch": f"haarnet:levels={levels}"}
    yield Row("haar", "Haar domain"), {"domain": "haar"}
    yield Row("mass", "measure by mass"), {"chain": {"measure": "mass"}}
    for name in CLUSTERINGS:
        yield Row(f"by-{name}", f"clusters by {name}"), {"chain": {"method": name}}
    note = "The clustering of the authors, k-means on eigenvectors, whose result is random."
    for seed in SEEDS:
        chain = {"method": "spectral-kmeans", "seed": seed}
        title = f"clusters by spectral-kmeans, seed {seed}"
        yield Row(f"seed-{seed}", title, note if seed == 0 else ""), {"chain": chain}


VARIANTS = tuple(_variants())

TABLE = PaperTable(
    name="ablation",
    title="Ablation: one factor at a time, test accuracy in per cent",
    text=(
        "The default network of haarpool with one setting changed, on the same splits as Table "
        "1: depth of the chain, domain, measure, clustering method, and seed of a random "
        "clustering."
    ),
    rows=[row for row, _ in VARIANTS],
    cells=[
        Cell(dataset, row.name, "random", DEFAULT | settings)
        for dataset in DATASETS
        for row, settings in VARIANTS
    ],
    reference="default",
    quick=("default", "levels-0", "haar"),
)
