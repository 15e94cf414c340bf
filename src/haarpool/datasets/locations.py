"""Where a dataset is: a given folder, HAARPOOL_DATA, an installed package, or the network."""

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
from haarpool.datasets.readers.tu.layout import tu_name
from haarpool.datasets.readers.tu.names import ALIASES, TU_NAMES
from haarpool.errors import HaarPoolError

Source = str | PathLike[str]

TABLES = (".csv", ".tsv")
FILES = (*TABLES, ".pt", ".mat", ".zip")
GENERATED = ("triangles", "rings")
EXPECTED = "the name of a dataset, or a folder or .zip in TU layout, a .csv, .tsv or .pt file"
REMEDY = "pass root=DIR or set HAARPOOL_DATA to the folder that holds datasets"
# The files of MUTAG in the wheel of grakel.
GRAKEL = {
    "MUTAG_A.txt": "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2",
    "MUTAG_edge_labels.txt": "4669ce755075ff86c3240709345745886400908fa637a49310459b9c267b3e56",
    "MUTAG_graph_indicator.txt": "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056",
    "MUTAG_graph_labels.txt": "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c",
    "MUTAG_node_labels.txt": "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863",
}


def find_dataset(
    source: Source, root: Source | None = None, *, download: bool = True
) -> Path | None:
    """Find the file, or the folder of raw files, of a dataset; download it if necessary.

    A name is searched in `root`, then in HAARPOOL_DATA, then in the current folder, then among the
    published datasets. A source that contains a separator is a path and nothing else.

    Args:
        source: A name, in upper or lower case, or the path of a folder in TU layout, of a zip file
            with such a folder, of a `.csv`, `.tsv` or `.pt` file, or of `qm7.mat`.
        root: Folder that holds datasets.
        download: False downloads nothing.

    Returns:
        The path; None for a dataset that is generated, or that would be downloaded.
    """
    if root is not None and not Path(root).is_dir():
        raise HaarPoolError("a folder that holds datasets", f"{root}", "check root=")
    *below_bases, as_path = _candidates(source, root)
    for candidate in (*below_bases, as_path):
        if (path := _dataset_in(candidate)) is not None:
            return path
    if _is_path(source):
        raise _no_dataset_at(as_path)
    for candidate in below_bases:
        if candidate.is_dir():  # a folder of this name, but without dataset
            raise _no_dataset_at(candidate)
    name = _full_name(source).lower()
    if name in GENERATED:
        return None
    if name == "mutag" and (packaged := _packaged_mutag()) is not None:
        return packaged
    if name == "qm7":
        return download_qm7(_downloads()) if download else None
    for tu in TU_NAMES:
        if tu.lower() == name:
            return download_tu(tu, _downloads()) if download else None
    if as_path.exists() or as_path.suffix.lower() in FILES:
        raise _no_dataset_at(as_path)
    raise _unknown_name(str(source), _bases(root))


def is_available(source: Source, root: Source | None = None) -> bool:
    """Return whether a dataset can be read without a download. Nothing is downloaded or read.

    Args:
        source: As in `find_dataset`.
        root: As in `find_dataset`.

    Example:
        >>> is_available("rings"), is_available("no such dataset")
        (True, False)
    """
    candidates = _candidates(source, root)
    if any(_dataset_in(candidate) is not None for candidate in candidates):
        return True
    if _is_path(source) or any(candidate.is_dir() for candidate in candidates[:-1]):
        return False
    name = _full_name(source).lower()
    if name in GENERATED:
        return True
    try:
        if name == "mutag" and _packaged_mutag() is not None:
            return True
    except HaarPoolError:  # its files are damaged
        return False
    # Folders in the cache of downloads are always complete.
    return name in {path.name.lower() for path in _downloads().glob("*") if path.is_dir()}


def is_download(path: Path) -> bool:
    """Return whether `find_dataset` downloaded this file or folder."""
    return _downloads() in path.parents


def local_source(source: Source, root: Source | None = None) -> Path | None:
    """Return the absolute path of a source that is a path, so that it is found from any folder.

    Args:
        source: As in `find_dataset`.
        root: As in `find_dataset`.

    Returns:
        The path; None for a dataset that is found by its name, and if there is no dataset.

    Example:
        >>> local_source("MUTAG") is None
        True
    """
    for candidate in _candidates(source, root):
        if _dataset_in(candidate) is not None:
            return candidate.absolute() if candidate == Path(source) else None
    return None


def known_datasets(root: Source | None = None) -> list[tuple[str, str]]:
    """List the names of datasets and where each comes from, those on this machine first.

    Args:
        root: Folder that holds datasets.

    Example:
        >>> dict(known_datasets())["COLLAB"]
        'download'
    """
    local: dict[str, str] = {}
    for base in [*_bases(root), _downloads()]:
        for folder in sorted(base.iterdir()) if base.is_dir() else []:
            if folder.is_dir() and _dataset_in(folder) is not None:
                local.setdefault(folder.name, str(folder))
    names = {name.lower() for name in local}
    others = {"MUTAG": "grakel" if _packaged_mutag() else "download"}
    others |= dict.fromkeys(GENERATED, "generated") | {"qm7": "download"}
    others |= {name: "download" for name in TU_NAMES if name != "MUTAG"}
    return [*local.items(), *(pair for pair in others.items() if pair[0].lower() not in names)]


def _bases(root: Source | None) -> list[Path]:
    """Return the folders that hold datasets."""
    return [Path(base) for base in (root, os.environ.get("HAARPOOL_DATA")) if base]


def _downloads() -> Path:
    return cache_folder() / "downloads"


def _is_path(source: Source) -> bool:
    return os.path.basename(source) != str(source) or str(source) in (os.curdir, os.pardir)


def _full_name(source: Source) -> str:
    return ALIASES.get(str(source).lower(), str(source))


def _candidates(source: Source, root: Source | None) -> list[Path]:
    """Return the paths to search, in this order; the last one is the source as a path."""
    bases = [] if _is_path(source) else _bases(root)
    named = (path for base in bases for path in _paths_below(base, _full_name(source)))
    return [*named, Path(source)]


def _paths_below(base: Path, name: str) -> list[Path]:
    """Return the paths below `base` that may hold a dataset: as spelled, then in any case."""
    spelled = [base / name, base / f"{name}.zip", base / f"{name}.mat"]
    if not base.is_dir():
        return spelled
    names = {path.name.lower() for path in spelled}
    return spelled + sorted(path for path in base.iterdir() if path.name.lower() in names)


def _dataset_in(path: Path) -> Path | None:
    """Return what to read at a path: the file itself, or a folder of raw files."""
    if path.is_file() and path.suffix.lower() in FILES:
        return path
    for folder in (path / "raw", path):
        if tu_name(folder):
            return folder
        for file in (f"{path.name}.zip", "qm7.mat"):
            if (folder / file).is_file():
                return folder / file
    return None


def _packaged_mutag() -> Path | None:
    """Return the folder of MUTAG in the package grakel, without importing it; check its files."""
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
                f"MUTAG in the package grakel, with sha256 {digest[:12]}... of {file}",
                f"another or no file {path}",
                "reinstall grakel, or pass root=DIR with MUTAG in it",
            )
    return folder


def _no_dataset_at(path: Path) -> HaarPoolError:
    if path.is_dir():
        got = f"the folder {path} without NAME_A.txt and NAME_graph_indicator.txt"
        remedy = "check the folder, or save the graphs as a list of PyG Data with torch.save"
        return HaarPoolError(EXPECTED, got, remedy)
    if path.exists():
        return HaarPoolError(EXPECTED, f"the file {path}", "check the file")
    return HaarPoolError(EXPECTED, f"{str(path)!r}, which does not exist", "check the path")


def _unknown_name(name: str, bases: Sequence[Path]) -> HaarPoolError:
    folders = {
        base: sorted(path.name for path in base.iterdir() if path.is_dir())
        for base in bases
        if base.is_dir()
    }
    all_names = (*GENERATED, "qm7", *TU_NAMES, *chain.from_iterable(folders.values()))
    known = {known.lower(): known for known in all_names}
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    if close:
        remedy = f"did you mean {known[close[0]]}?"
    elif folders:
        remedy = "; ".join(
            f"{base} has {', '.join(names) or 'none'}" for base, names in folders.items()
        )
    else:
        remedy = REMEDY
    return HaarPoolError(EXPECTED, f"{name!r}", remedy)
