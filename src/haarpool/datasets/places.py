"""Where a dataset lies: the folder given, HAARPOOL_DATA, a package that ships it, the network."""

from __future__ import annotations

import difflib
import os
from hashlib import sha256
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from haarpool.cache import cache_folder
from haarpool.datasets.download import download_qm7, download_tu
from haarpool.datasets.names import ALIASES, TU_NAMES
from haarpool.datasets.tu import tu_name
from haarpool.errors import HaarPoolError

Source = str | PathLike[str]

FILES = (".csv", ".pt", ".mat", ".zip")
EXPECTED = "the name of a dataset, or a folder in TU layout, a .csv or a .pt file"
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

    Args:
        source: a name, without regard to case, or the path of a folder in TU layout, of a zip file
            with one, of a `.csv`, a `.pt` or of `qm7.mat`.
        root: the folder that holds datasets; else the environment variable HAARPOOL_DATA.
    """
    if root is not None and not Path(root).is_dir():
        raise HaarPoolError("a folder that holds datasets", f"{root}", "check --root")
    name = ALIASES.get(str(source).lower(), str(source))
    base = root or os.environ.get("HAARPOOL_DATA")
    places = [*_under(Path(base), name)] if base else []
    places.append(Path(source))
    for place in places:
        if (found := _dataset_in(place)) is not None:
            return found
    for place in places:
        if place.is_dir():
            got = f"the folder {place} without NAME_A.txt and NAME_graph_indicator.txt"
            raise HaarPoolError(EXPECTED, got, "check the folder")
    wanted = name.lower()
    if wanted == "triangles":
        return None
    if wanted == "mutag" and (shipped := _shipped()) is not None:
        return shipped
    if wanted == "qm7":
        return download_qm7(cache_folder() / "downloads")
    for known in TU_NAMES:
        if known.lower() == wanted:
            return download_tu(known, cache_folder() / "downloads")
    raise _unknown(str(source), base)


def known_datasets(root: Source | None = None) -> list[tuple[str, str]]:
    """Names of datasets and where each comes from; those that lie here come first.

    >>> dict(known_datasets())["COLLAB"]
    'download'
    """
    base = root or os.environ.get("HAARPOOL_DATA")
    found: dict[str, str] = {}
    for folder in [*([Path(base)] if base else []), cache_folder() / "downloads"]:
        for place in sorted(folder.iterdir()) if folder.is_dir() else []:
            if place.is_dir() and _dataset_in(place) is not None:
                found.setdefault(place.name, str(place))
    here = {name.lower() for name in found}
    others = {"MUTAG": "grakel" if _shipped() else "download", "triangles": "generated"}
    others |= {"qm7": "download"} | {name: "download" for name in TU_NAMES if name != "MUTAG"}
    return [*found.items(), *(pair for pair in others.items() if pair[0].lower() not in here)]


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


def _unknown(name: str, base: Source | None) -> HaarPoolError:
    folder = Path(base) if base else None
    here = (
        sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder and folder.is_dir() else []
    )
    if Path(name).suffix.lower() in FILES or Path(name).name != name:
        return HaarPoolError(EXPECTED, f"{name!r}, which is not there", "check the path")
    known = {known.lower(): known for known in ("triangles", "qm7", *TU_NAMES, *here)}
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    if close:
        remedy = f"did you mean {known[close[0]]}?"
    elif base:
        remedy = f"{base} has {', '.join(here) or 'none'}"
    else:
        remedy = REMEDY
    return HaarPoolError(EXPECTED, f"{name!r}", remedy)
