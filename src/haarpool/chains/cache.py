"""The cache of chains: one SQLite file that several processes can use at the same time.

The key of a chain is a hash of everything that decides it: graph, features, recipe and version of
the clustering method. Equal graphs therefore share one cached chain.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from haarpool._types import Ints
from haarpool.errors import HaarPoolWarning

WAIT = 60.0  # seconds to wait for the transaction of another process
_CHECKSUM_BYTES = 8  # after every chain
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_TABLE = "CREATE TABLE IF NOT EXISTS chains (key BLOB PRIMARY KEY, parents BLOB NOT NULL)"


def cache_folder(folder: str | PathLike[str] | None = None) -> Path:
    """Return the cache folder: `folder`, else `HAARPOOL_CACHE`, else the default of the system."""
    path = folder or os.environ.get("HAARPOOL_CACHE") or platformdirs.user_cache_dir("haarpool")
    return Path(path).expanduser()


class CacheInfo(NamedTuple):
    """Path, number of chains and size of a cache."""

    path: Path
    chains: int
    bytes: int


class ChainCache:
    """Packed parent vectors by key.

    Every write is one transaction, so a process can be killed at any moment and several processes
    can write at the same time. Every chain has a checksum; a damaged chain is computed again. If
    the file cannot be read or written, there is one warning and the work continues without it.
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.path = cache_folder(folder) / "chains.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._disabled: set[str] = set()  # "read" or "write", after an error
        self._warned_damage = False

    @property
    def is_usable(self) -> bool:
        """Whether all chains so far could be read and written."""
        return not self._disabled

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the packed chains (see `unpack`) of those keys that are in the cache."""
        chains = {}
        for start in range(0, len(keys), 500):  # SQLite limits the number of parameters
            chunk = keys[start : start + 500]
            query = f"SELECT key, parents FROM chains WHERE key IN ({','.join('?' * len(chunk))})"
            for key, value in self._run("read", query, chunk):
                if _is_intact(key, value):
                    chains[key] = value[:-_CHECKSUM_BYTES]
                elif not self._warned_damage:
                    self._warned_damage = True
                    _warn(f"damaged chains in {self.path} are computed again", stacklevel=4)
        return chains

    def write(self, chains: Iterable[tuple[bytes, bytes]]) -> None:
        """Add packed chains in one transaction."""
        rows = [(key, value + _checksum(key, value)) for key, value in chains]
        self._run("write", "INSERT OR REPLACE INTO chains VALUES (?, ?)", rows)

    def info(self) -> CacheInfo:
        """Return the path of the file, the number of its chains and its size; close the file."""
        if not self.path.exists():
            return CacheInfo(self.path, 0, 0)
        count = self._run("read", "SELECT count(*) FROM chains", [])
        self.close()
        return CacheInfo(self.path, count[0][0] if count else 0, self.path.stat().st_size)

    def clear(self) -> None:
        """Delete the file."""
        self.close()
        for suffix in ("-journal", "-wal", "-shm", ""):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, mode: str, query: str, values: Sequence[Any]) -> list[Any]:
        """Run a query; rebuild a damaged file, stop using one that cannot be read or written."""
        if mode in self._disabled:
            return []
        try:
            try:
                return self._execute(mode, query, values)
            except sqlite3.DatabaseError as error:
                if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _DAMAGE:
                    raise
                _warn(f"the cache {self.path} is damaged ({error}) and is rebuilt")
                self.clear()
                return self._execute(mode, query, values)
        except (sqlite3.Error, OSError) as error:
            if not self._disabled:
                reason = getattr(error, "strerror", None) or error
                _warn(f"the cache {self.path} cannot be used ({reason}); continuing without it")
            self._disabled |= {"read", "write"} if mode == "read" else {"write"}
            return []

    def _execute(self, mode: str, query: str, values: Sequence[Any]) -> list[Any]:
        """Read rows, or write rows in one transaction."""
        connection = self._open()
        if mode == "read":
            return connection.execute(query, values).fetchall()
        with connection:
            connection.executemany(query, values)
        return []

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=WAIT)
            with suppress(sqlite3.OperationalError):  # an existing file may be read-only
                self._connection.execute(_TABLE)
        return self._connection


def _warn(message: str, stacklevel: int = 5) -> None:
    """Warn the caller of `precompute`."""
    warnings.warn(message, HaarPoolWarning, stacklevel=stacklevel)


def _checksum(key: bytes, value: bytes) -> bytes:
    return blake2b(key + value, digest_size=_CHECKSUM_BYTES).digest()


def _is_intact(key: bytes, value: Any) -> bool:
    """Whether a stored value ends with the checksum of its chain."""
    if not isinstance(value, bytes):
        return False
    return value[-_CHECKSUM_BYTES:] == _checksum(key, value[:-_CHECKSUM_BYTES])


def pack(parents: Sequence[Ints], seconds: Sequence[float]) -> bytes:
    """Pack the steps of a chain: their number, lengths and seconds, then ids of 1 to 8 bytes."""
    width = next(w for w in (1, 2, 4, 8) if len(parents[0]) <= 256**w)
    steps = len(parents)
    head = struct.pack(f"<BH{steps}q{steps}f", width, steps, *map(len, parents), *seconds)
    return head + np.concatenate(parents).astype(f"<u{width}").tobytes()


def unpack(value: bytes) -> tuple[list[Ints], list[float]]:
    """Return the parent vectors and seconds that `pack` packed."""
    width, steps = struct.unpack_from("<BH", value)
    numbers = struct.unpack_from(f"<{steps}q{steps}f", value, 3)
    ids = np.frombuffer(value, f"<u{width}", offset=3 + 12 * steps).astype(np.int64)
    parents, end = [], 0
    for length in numbers[:steps]:
        parents.append(ids[end : end + length])
        end += length
    return parents, list(numbers[steps:])
