"""Datasets by name or folder, as batches of graphs; read with numpy alone."""

from __future__ import annotations

import difflib
import os
from os import PathLike
from pathlib import Path

from haarpool.datasets.tu import TUGraphs, read_tu, tu_files
from haarpool.errors import HaarPoolError

__all__ = ["TUGraphs", "find_dataset", "read_dataset"]


def read_dataset(name: str | PathLike[str], root: str | PathLike[str] | None = None) -> TUGraphs:
    """The graphs of a dataset; see `find_dataset` for where it is looked for."""
    return read_tu(find_dataset(name, root))


def find_dataset(name: str | PathLike[str], root: str | PathLike[str] | None = None) -> Path:
    """The folder with the raw files of a dataset.

    Args:
        name: of a dataset in TU layout, or the path of its folder.
        root: the folder that holds datasets; else the environment variable HAARPOOL_DATA.
    """
    base = root or os.environ.get("HAARPOOL_DATA")
    places = [Path(base) / name] if base else []
    for place in [*places, Path(name)]:
        for folder in (place / "raw", place):
            if tu_files(folder):
                return folder
    expected, got = "a dataset in TU layout or its folder", f"{str(name)!r}"
    for place in [*places, Path(name)]:
        if place.is_dir():
            got = f"the folder {place} without NAME_A.txt and NAME_graph_indicator.txt"
            raise HaarPoolError(expected, got, "check the folder")
    if not base:
        remedy = "pass --root DIR or set HAARPOOL_DATA to the folder that holds datasets"
        raise HaarPoolError(expected, got, remedy)
    here = sorted(p.name for p in Path(base).glob("*") if p.is_dir())
    close = difflib.get_close_matches(str(name), here, n=1, cutoff=0.5)
    remedy = f"did you mean {close[0]}?" if close else f"{base} has {', '.join(here) or 'none'}"
    raise HaarPoolError(expected, got, remedy)
