"""Settings to start from: those of the paper, and those that validate best so far."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from haarpool.datasets.names import ALIASES
from haarpool.errors import HaarPoolError

Settings = Mapping[str, Any]  # of `RunConfig`

_NCI109 = "3GC256-HP-2FC256-FC128"


def _paper(
    arch: str, epochs: int, patience: int, batch_size: int, lr: float, **more: Any
) -> Settings:
    sizes = {"chain": {"sizes": "paper"}} if "HP" in arch else {}
    return sizes | {
        "arch": arch,
        "epochs": epochs,
        "patience": patience,
        "batch_size": batch_size,
        "lr": lr,
        "weight_decay": 0.0005,
        **more,
    }


# The tables of the paper and its appendix; for Triangles and QM7 what its text says. The epochs of
# Triangles are those that the text gives for all datasets.
PAPER: Mapping[str, Settings] = MappingProxyType(
    {
        "mutag": _paper("GC60-HP-FC60-FC180-FC60", 30, 15, 60, 0.01),
        "proteins": _paper("2GC128-HP-2GC128-HP-2GC128-HP-GC128-2FC128-FC64", 20, 20, 50, 0.001),
        "nci1": _paper("2GC256-HP-FC256-FC1024-FC2048", 150, 50, 100, 0.001),
        "nci109": _paper(_NCI109, 150, 50, 100, 0.01, weight_decay=0.0001, dropout=0.6),
        "mutagenicity": _paper(_NCI109, 50, 50, 100, 0.01),
        "triangles": _paper("GIN64-HP-GIN64-HP-GIN64-MP", 150, 50, 60, 0.001),
        "qm7": _paper("GC64-HP-3FC64", 50, 50, 60, 0.0005, dropout=0.0, weight_decay=0.0),
    }
)

# Chosen by the mean validation score; `benchmarks/presets.py` has the candidates, and
# `results/presets.json` what they reached.
BEST: Settings = MappingProxyType(
    {
        "arch": "3GIN64-HP-GIN64-SUM-FC64",
        "features": "auto+degree",
        "domain": "vertex",
        "epochs": 100,
        "patience": 100,
        "batch_size": 32,
        "lr": 0.005,
        "weight_decay": 0.0,
        "schedule": "cosine",
        "monitor": "score",
    }
)
PRESETS = ("best", "paper")


def preset(which: str, dataset: str) -> Settings:
    """The settings of a preset for a dataset.

    >>> preset("paper", "MUTAG")["arch"]
    'GC60-HP-FC60-FC180-FC60'
    """
    if which == "best":
        return BEST
    if which != "paper":
        raise HaarPoolError(f"a preset out of {', '.join(PRESETS)}", f"{which!r}", "take best")
    try:
        name = dataset.lower()
        return PAPER[ALIASES.get(name, name).lower()]
    except KeyError:
        raise HaarPoolError(
            f"a dataset of the paper for --preset paper: {', '.join(PAPER)}",
            dataset,
            "take --preset best, and say --arch and the like yourself",
        ) from None
