"""Where a dataset lies: the folder given, HAARPOOL_DATA, a package that ships it, the network."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from os import PathLike
from pathlib import Path

from haarpool.chains.cache import cache_folder
from haarpool.datasets.download import download_qm7, download_tu
from haarpool.datasets.names import ALIASES, TU_NAMES
from haarpool.datasets.tu import tu_name
from haarpool.errors import HaarPoolError

Source = str | PathLike[str]

TABLES = (".csv", ".tsv")
FILES = (*TABLES, ".pt", ".mat", ".zip")
EXPECTED = "the name of a dataset, or a folder in TU layout, a .csv, .tsv or .pt file"
REMEDY = "pass --root DIR or set HAARPOOL_DATA to the folder that holds datasets"
# The files of MUTAG as the wheel of grakel carries them.
GRAKEL = {
    "MUTAG_A.txt": "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2",
    "MUTAG_edge_labels.txt": "4669ce755075ff86c3240709345745886400908fa637a49310459b9c267b3e56",
    "MUTAG_graph_indicator.txt": "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056",
    "MUTAG_graph_labels.txt": "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c",
    "MUTAG_node_labels.txt": "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863",
}


def find_dataset(source: Source, root: Source | None = None) -> Path | None:
    """The file, or the folder of raw files, of a dataset; None for one that has to be generated.

    A name is looked for below `root`, then below HAARPOOL_DATA, then in the current folder, then
    among the published datasets. A source with a separator in it is a path and nothing else.

    Args:
        source: a name, without regard to case, or the path of a folder in TU layout, of a zip file
            with one, of a `.csv`, a `.tsv`, a `.pt` or of `qm7.mat`.
        root: a folder that holds datasets.
    """
    if root is not None and not Path(root).is_dir():
        raise HaarPoolError("a folder that holds datasets", f"{root}", "check --root")
    *below, here = _places(source, root)
    for place in (*below, here):
        if (found := _dataset_in(place)) is not None:
            return found
    if _is_path(source):
        raise _none_at(here)
    for place in below:
        if place.is_dir():  # a dataset of that name was meant to be there
            raise _none_at(place)
    wanted = _name(source).lower()
    if wanted == "triangles":
        return None
    if wanted == "mutag" and (shipped := _shipped()) is not None:
        return shipped
    if wanted == "qm7":
        return download_qm7(cache_folder() / "downloads")
    for known in TU_NAMES:
        if known.lower() == wanted:
            return download_tu(known, cache_folder() / "downloads")
    if here.exists() or here.suffix.lower() in FILES:
        raise _none_at(here)
    raise _unknown(str(source), _bases(root))


def local_source(source: Source, root: Source | None = None) -> Path | None:
    """The absolute path of a source that is read from where it says, so that any folder can use it.

    None for a dataset that is found by its name, and for what is no dataset.

    Args:
        source, root: as in `find_dataset`.

    >>> local_source("MUTAG") is None
    True
    """
    for place in _places(source, root):
        if _dataset_in(place) is not None:
            return place.absolute() if place == Path(source) else None
    return None


def known_datasets(root: Source | None = None) -> list[tuple[str, str]]:
    """Names of datasets and where each comes from; those that lie here come first.

    >>> dict(known_datasets())["COLLAB"]
    'download'
    """
    found: dict[str, str] = {}
    for folder in [*_bases(root), cache_folder() / "downloads"]:
        for place in sorted(folder.iterdir()) if folder.is_dir() else []:
            if place.is_dir() and _dataset_in(place) is not None:
                found.setdefault(place.name, str(place))
    here = {name.lower() for name in found}
    others = {"MUTAG": "grakel" if _shipped() else "download", "triangles": "generated"}
    others |= {"qm7": "download"} | {name: "download" for name in TU_NAMES if name != "MUTAG"}
    return [*found.items(), *(pair for pair in others.items() if pair[0].lower() not in here)]


def _bases(root: Source | None) -> list[Path]:
    """The folders that hold datasets."""
    given = (root, os.environ.get("HAARPOOL_DATA"))
    return [Path(base) for base in given if base]


def _is_path(source: Source) -> bool:
    return os.path.basename(source) != str(source) or str(source) in (os.curdir, os.pardir)


def _name(source: Source) -> str:
    return ALIASES.get(str(source).lower(), str(source))


def _places(source: Source, root: Source | None) -> list[Path]:
    """Where to look for a dataset, in this order; the last place is the source as a path."""
    bases = [] if _is_path(source) else _bases(root)
    return [*(place for base in bases for place in _under(base, _name(source))), Path(source)]


def _under(base: Path, name: str) -> list[Path]:
    """Places below `base` that may hold the dataset: as it is spelt, then in any other case."""
    spelt = [base / name, base / f"{name}.zip", base / f"{name}.mat"]
    if not base.is_dir():
        return spelt
    wanted = {path.name.lower() for path in spelt}
    return spelt + sorted(path for path in base.iterdir() if path.name.lower() in wanted)


def _dataset_in(place: Path) -> Path | None:
    """What there is to read at a place: the file itself, or raw files in a folder."""
    if place.is_file() and place.suffix.lower() in FILES:
        return place
    for folder in (place / "raw", place):
        if tu_name(folder):
            return folder
        for file in (f"{place.name}.zip", "qm7.mat"):
            if (folder / file).is_file():
                return folder / file
    return None


def _shipped() -> Path | None:
    """The folder of MUTAG in the package grakel, which is not imported; its files are checked."""
    spec = find_spec("grakel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "tests" / "data" / "MUTAG"
    if not folder.is_dir():
        return None
    for file, digest in GRAKEL.items():
        path = folder / file
        if not path.is_file() or sha256(path.read_bytes()).hexdigest() != digest:
            raise HaarPoolError(
                f"MUTAG as the package grakel ships it, with sha256 {digest[:12]}... of {file}",
                f"another or no file {path}",
                "reinstall grakel, or pass --root DIR with MUTAG in it",
            )
    return folder


def _none_at(place: Path) -> HaarPoolError:
    """The error for a path without dataset."""
    if place.is_dir():
        got = f"the folder {place} without NAME_A.txt and NAME_graph_indicator.txt"
        return HaarPoolError(EXPECTED, got, "check the folder")
    if place.exists():
        return HaarPoolError(EXPECTED, f"the file {place}", "check the file")
    return HaarPoolError(EXPECTED, f"{str(place)!r}, which is not there", "check the path")


def _unknown(name: str, bases: Sequence[Path]) -> HaarPoolError:
    """The error for a name that nobody knows."""
    here = {
        base: sorted(path.name for path in base.iterdir() if path.is_dir())
        for base in bases
        if base.is_dir()
    }
    names = ("triangles", "qm7", *TU_NAMES, *chain.from_iterable(here.values()))
    known = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    if close:
        remedy = f"did you mean {known[close[0]]}?"
    elif here:
        remedy = "; ".join(f"{base} has {', '.join(own) or 'none'}" for base, own in here.items())
    else:
        remedy = REMEDY
    return HaarPoolError(EXPECTED, f"{name!r}", remedy)
