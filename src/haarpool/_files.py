"""Atomic writing of files; named arrays in one `.npz` file, without pickle."""

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

# Errors of reading a damaged `.npz` file; an unknown compression is a RuntimeError.
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
def atomic_write(path: str | PathLike[str]) -> Iterator[Path]:
    """Write a file atomically: readers see the old file or the complete new one.

    Yields:
        A temporary path in the same folder. It is renamed to `path` at the end, or deleted after
        an error.
    """
    path = Path(path)
    partial = path.parent / f".{uuid.uuid4().hex}"
    try:
        if "\0" in str(path):
            raise OSError("a null character in the name")
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise HaarPoolError(
            "a file that can be written",
            f"{path} ({error.strerror or error})",
            "choose another path",
        ) from error
    finally:
        with suppress(OSError, ValueError):
            partial.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text file atomically, as UTF-8."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_arrays(path: str | PathLike[str], arrays: Arrays) -> None:
    """Write named arrays to one `.npz` file atomically."""
    with atomic_write(path) as partial, open(partial, "xb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # numpy's stub: names


def read_arrays(path: str | PathLike[str]) -> Arrays:
    """Read all arrays of a file that `write_arrays` wrote."""
    try:
        with open(path, "rb") as file:  # numpy would leave a damaged file open
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, NpzFile):
                raise ValueError("it has one array without a name")
            return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError as error:
        raise HaarPoolError("an .npz file", f"no file {path}", "check the path") from error
    except _DAMAGE as error:
        raise unreadable(path, error) from error


def unreadable(path: str | PathLike[str], reason: Exception) -> HaarPoolError:
    """Return the error for a file with damaged or unexpected content."""
    return HaarPoolError(
        "an .npz file that haarpool wrote",
        f"{path}, which cannot be read ({reason})",
        "the file is damaged or has other content; write it again",
    )
