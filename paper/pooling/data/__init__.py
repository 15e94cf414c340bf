"""The datasets of the study: each is made once, by its module, and then read from a folder.

A module has one function `make`, which returns a `Dataset`: arrays and five splits. `load` stores
these as files that haarpool reads, so that they can be carried to a machine without the packages
that made them:

- `NAME.npz` is one graph, or signals on it; `NAME.pt` a list of graphs.
- `NAME.split.json` has the splits of signals or graphs. The masks of nodes are in the `.npz` file.

Nothing of this is committed: some of the data may not be redistributed, and all can be made again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from haarpool.chains.cache import cache_folder
from haarpool.datasets import Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from paper.pooling.data.files import SPLITS, Dataset, find, read, save

# By name: the module, and the arguments of its `make`.
DATASETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "power": ("power", {"case": "case2869pegase"}),
    "power-2848": ("power", {"case": "case2848rte"}),
    "power-regions": ("power", {"case": "case2869pegase", "regions": 40}),
    "power-change": ("power", {"case": "case2869pegase", "change": True}),
    "outages": ("outages", {}),
    "outages-change": ("outages", {"change": True}),
    "huangpu": ("huangpu", {}),
    "traffic-blocks": ("traffic", {"blocks": True}),
    "traffic-random": ("traffic", {"blocks": False}),
    "poisson": ("poisson", {}),
    "colours": ("colours", {}),
    "peptides": ("peptides", {}),
}


def make(name: str, **changes: Any) -> Dataset:
    """Make a dataset of the study.

    Args:
        name: One of `DATASETS`.
        **changes: Other arguments of the `make` of its module, for example a smaller number.
    """
    if name not in DATASETS:
        raise HaarPoolError(f"one of {', '.join(DATASETS)}", name, "choose one of these")
    module, arguments = DATASETS[name]
    made: Dataset = import_module(f"{__name__}.{module}").make(**{**arguments, **changes})
    return made


def load(name: str, folder: str | Path) -> tuple[Graphs, list[Split]]:
    """Read a dataset and its five splits from a folder; it is made if it is not there.

    Args:
        name: One of `DATASETS`.
        folder: Where the files are, or will be.

    Returns:
        The graphs, and one split for each of the five seeds.
    """
    graphs, splits = read(prepare(name, folder))
    # With a single published split, the seeds differ in the weights of the networks alone.
    return graphs, (splits * SPLITS)[:SPLITS]


def prepare(name: str, folder: str | Path | None = None) -> Path:
    """Make a dataset that is not there, and return its file.

    Args:
        name: One of `DATASETS`.
        folder: Where it is, or will be; by default `study_folder`.
    """
    folder = folder or study_folder()
    return find(name, folder) or save(make(name), name, folder)


def study_folder() -> Path:
    """Return the folder of the datasets: HAARPOOL_STUDY, by default a folder of the cache."""
    return Path(os.environ.get("HAARPOOL_STUDY") or cache_folder() / "study")


def read_task(name: str) -> Graphs:
    """Read a dataset from the folder of the study; it is made if it is not there."""
    return load(name, study_folder())[0]


def splits_file(name: str) -> Path:
    """Return the file of the splits of a dataset; without it they are masks."""
    return study_folder() / f"{name}.split.json"
