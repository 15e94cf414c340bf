"""Files written whole or not at all; named arrays in one `.npz` file, without pickle."""

from __future__ import annotations

import os
import struct
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from haarpool.errors import HaarPoolError

# What reading a damaged zip file of arrays can raise; unknown compression is a RuntimeError.
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    MemoryError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)

Arrays = dict[str, NDArray[np.generic]]


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[Path]:
    """A file to write to, which takes its place at `path` in one move, or leaves nothing behind."""
    path = Path(path)
    partial = path.parent / f".{uuid.uuid4().hex}"
    try:
        if "\0" in str(path):
            raise OSError("no file can have this name")
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise HaarPoolError(
            "a place to write to", f"{path} ({error})", "choose another file"
        ) from error
    finally:
        with suppress(OSError, ValueError):
            partial.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text file whole or not at all."""
    with written_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_arrays(path: str | PathLike[str], arrays: Arrays) -> None:
    """Write `arrays` to `path`; an earlier file there is replaced in one move or left alone."""
    with written_whole(path) as partial, open(partial, "xb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # numpy's stub: names


def read_arrays(path: str | PathLike[str]) -> Arrays:
    """Read all arrays of a file that `write_arrays` wrote."""
    try:
        with open(path, "rb") as file:  # opened here, since numpy leaves a broken one open
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, NpzFile):
                raise ValueError("it holds one bare array")
            return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError as error:
        raise HaarPoolError("an .npz file", f"nothing at {path}", "check the path") from error
    except _DAMAGE as error:
        raise unreadable(path, error) from error


def unreadable(path: str | PathLike[str], reason: Exception) -> HaarPoolError:
    """The error for a file that is there but does not hold what it should."""
    return HaarPoolError(
        "a whole .npz file as haarpool writes it",
        f"{path}, which cannot be used ({reason})",
        "it is damaged or something else; write it again",
    )
