"""Where a dataset is: a given folder, HAARPOOL_DATA, or the network, which is asked last."""

from __future__ import annotations

import difflib
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from http.client import HTTPResponse
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from haarpool.chains.cache import cache_folder
from haarpool.datasets.readers.registry import (
    Reader,
    find_by_name,
    find_by_suffix,
    full_name,
    readers,
    sources,
)
from haarpool.errors import HaarPoolError

Source = str | PathLike[str]

REMEDY = "pass {root} or set HAARPOOL_DATA to the folder that holds datasets"
TIMEOUT = 5.0  # seconds for a server to answer
SILENCE = 60.0  # seconds for it to continue


class Found(NamedTuple):
    """A dataset that was found."""

    reader: Reader  # what reads it
    path: Path | None  # its file, or folder of files; None if generated or not on this machine
    name: str = ""  # if it was found by its name


def find_source(source: Source, root: Source | None = None, *, download: bool = True) -> Found:
    """Find a dataset and its reader; the arguments are those of `find_dataset`."""
    if root is not None and not Path(root).is_dir():
        expected = "as a folder that holds datasets"
        raise HaarPoolError(expected, f"{root}", "check {root}", parameter="root", root=...)
    if found := find_here(source, root):
        return found
    *below_bases, as_path = _candidates(source, root)
    if _is_path(source):
        raise _no_dataset_at(as_path)
    for candidate in below_bases:
        if candidate.is_dir():  # a folder of this name, but without dataset
            raise _no_dataset_at(candidate)
    if named := find_by_name(str(source)):
        return _published(*named, download=download)
    if as_path.exists() or find_by_suffix(as_path):
        raise _no_dataset_at(as_path)
    raise _unknown_name(str(source), _bases(root))


def find_here(source: Source, root: Source | None = None) -> Found | None:
    """Find a dataset that is a path, or in a folder of datasets; None if there is none."""
    return next(filter(None, map(_dataset_at, _candidates(source, root))), None)


def find_dataset(
    source: Source, root: Source | None = None, *, download: bool = True
) -> Path | None:
    """Find the file, or the folder of raw files, of a dataset; download it if necessary.

    A name is searched in `root`, then in HAARPOOL_DATA, then in the current folder, then among the
    published datasets. A source that contains a separator is a path and nothing else.

    Args:
        source: A name, in upper or lower case, or the path of a file or folder that a reader reads.
        root: Folder that holds datasets.
        download: False downloads nothing.

    Returns:
        The path; None for a dataset that is generated, or that would be downloaded.
    """
    return find_source(source, root, download=download).path


def is_available(source: Source, root: Source | None = None) -> bool:
    """Return whether a dataset can be read without a download. Nothing is downloaded or read.

    The arguments are those of `find_dataset`.

    Example:
        >>> is_available("rings"), is_available("no such dataset")
        (True, False)
    """
    try:
        found = find_source(source, root, download=False)
    except HaarPoolError:  # there is none, or its files are damaged
        return False
    return found.path is not None or found.reader.generates


def local_source(source: Source, root: Source | None = None) -> Path | None:
    """Return the absolute path of a source that is a path, so that it is found from any folder.

    The arguments are those of `find_dataset`.

    Returns:
        The path; None for a dataset that is found by its name, and if there is no dataset.

    Example:
        >>> local_source("MUTAG") is None
        True
    """
    candidate = next(filter(_dataset_at, _candidates(source, root)), None)
    return candidate.absolute() if candidate == Path(source) else None


def known_datasets(root: Source | None = None) -> list[tuple[str, str]]:
    """List the names of datasets and where each comes from, those on this machine first.

    Args:
        root: Folder that holds datasets.

    Example:
        >>> dict(known_datasets())["COLLAB"]
        'download'
    """
    local: dict[str, str] = {}
    for base in [*_bases(root), downloads()]:
        for folder in sorted(base.iterdir()) if base.is_dir() else []:
            if folder.is_dir() and _dataset_at(folder):
                local.setdefault(folder.name, str(folder))
    here = {name.lower() for name in local}
    generated, published = [], []
    for reader in readers():
        for name in (name for name in reader.names if name.lower() not in here):
            if reader.url(name):
                published.append((name, "download"))
            elif reader.generates:
                generated.append((name, "generated"))
    return [*local.items(), *generated, *published]


def downloads() -> Path:
    """Return the folder of all downloads."""
    return cache_folder() / "downloads"


def _published(reader: Reader, name: str, *, download: bool) -> Found:
    """Find a dataset by its published name in the cache, or download it."""
    paths, url = _paths_below(downloads(), name), reader.url(name)
    if url and download and not any(map(_dataset_at, paths)):
        fetch(name, url, downloads(), reader.check_download)
    found = next(filter(None, map(_dataset_at, paths)), None)
    if not found and not url and not reader.generates:
        what = reader.content or " or ".join(f"{name}{suffix}" for suffix in reader.suffixes)
        expected = f"of {name} on this machine ({what})"
        raise HaarPoolError(expected, "none", REMEDY, parameter="source", root="DIR")
    return Found(reader, found.path if found else None, name)


def _bases(root: Source | None) -> list[Path]:
    """Return the folders that hold datasets."""
    return [Path(base) for base in (root, os.environ.get("HAARPOOL_DATA")) if base]


def _is_path(source: Source) -> bool:
    return os.path.basename(source) != str(source) or str(source) in (os.curdir, os.pardir)


def _candidates(source: Source, root: Source | None) -> list[Path]:
    """Return the paths to search, in this order; the last one is the source as a path."""
    bases = [] if _is_path(source) else _bases(root)
    named = (path for base in bases for path in _paths_below(base, full_name(str(source))))
    return [*named, Path(source)]


def _paths_below(base: Path, name: str) -> list[Path]:
    """Return the paths below `base` that may hold a dataset: as spelled, then in any case."""
    suffixes = (suffix for reader in readers() if reader.names for suffix in reader.suffixes)
    spelled = [base / f"{name}{suffix}" for suffix in ("", *suffixes)]
    if not base.is_dir():
        return spelled
    names = {path.name.lower() for path in spelled}
    return spelled + sorted(path for path in base.iterdir() if path.name.lower() in names)


def _dataset_at(path: Path) -> Found | None:
    """Return what to read at a path: the file itself, or what a reader finds in the folder."""
    if path.is_file() and (reader := find_by_suffix(path)):
        return Found(reader, path)
    for folder in (path / "raw", path):
        for reader in readers():
            if found := reader.find_in(folder, path.name):
                return Found(reader, found)
    return None


def _no_dataset_at(path: Path) -> HaarPoolError:
    got, remedy = f"{str(path)!r}, which does not exist", "check the path"
    if path.is_dir():
        contents = sorted(reader.content for reader in readers() if reader.content)
        got = f"the folder {path} without {', or '.join(contents)}"
        remedy = "check the folder, or pass a file in it"
    elif path.exists():
        got, remedy = f"the file {path}", "check the file"
    return HaarPoolError(f"of graphs ({sources()})", got, remedy, parameter="source")


def _unknown_name(name: str, bases: Sequence[Path]) -> HaarPoolError:
    folders = {
        base: sorted(path.name for path in base.iterdir() if path.is_dir())
        for base in bases
        if base.is_dir()
    }
    all_names = chain(*(reader.names for reader in readers()), *folders.values())
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
    expected = f"of graphs ({sources()})"
    return HaarPoolError(expected, f"{name!r}", remedy, parameter="source", root="DIR")


def fetch(name: str, url: str, folder: Path, check: Callable[[Path], None]) -> None:
    """Download the file of a dataset to the folder `folder / name`.

    `check` raises an OSError if the file is damaged.
    """
    partial = folder / f".{uuid.uuid4().hex}"
    try:
        with _open(url) as response:
            folder.mkdir(parents=True, exist_ok=True)
            with open(partial, "xb") as file:
                shutil.copyfileobj(response, file)
        check(partial)
        (folder / name).mkdir(exist_ok=True)
        partial.replace(folder / name / url.rpartition("/")[2])
    except Exception as error:  # of the network, the server or the disk
        raise HaarPoolError(
            f"{name} on this machine or at {url}",
            " ".join(str(error).split()) or "no answer",
            f"pass {{root}} or set HAARPOOL_DATA to a folder with {name}/, or use the dataset "
            "digits",
            root="DIR",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _open(url: str) -> HTTPResponse:
    """Open an address, or raise an error after a few seconds.

    Without a network, looking up a host can take minutes and cannot be stopped. So a daemon thread
    does it.
    """
    answer: Future[HTTPResponse] = Future()

    def ask() -> None:
        try:
            answer.set_result(urlopen(url, timeout=SILENCE))
        except Exception as error:
            if isinstance(error, HTTPError):
                error.close()
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    return answer.result(TIMEOUT)
