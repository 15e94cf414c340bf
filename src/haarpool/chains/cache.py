"""Chains on disk: one SQLite file, addressed by content, safe to share, rebuilt when damaged."""

from __future__ import annotations

import os
import sqlite3
import struct
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from haarpool._types import Ints
from haarpool.errors import HaarPoolWarning

WAIT = 60.0  # seconds for another process to finish its transaction
_CHECK = 8  # bytes of checksum behind every chain
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_TABLE = "CREATE TABLE IF NOT EXISTS chains (key BLOB PRIMARY KEY, parents BLOB NOT NULL)"


def cache_folder(folder: str | PathLike[str] | None = None) -> Path:
    """Where caches lie: `folder`, else `HAARPOOL_CACHE`, else the place the system has for it."""
    chosen = folder or os.environ.get("HAARPOOL_CACHE") or platformdirs.user_cache_dir("haarpool")
    return Path(chosen).expanduser()


class CacheInfo(NamedTuple):
    """What lies in a cache."""

    path: Path
    chains: int
    bytes: int


class ChainCache:
    """Parent vectors by key. Trouble with the disk never stops the work: it is said, once.

    Every write is one transaction, so a process may be killed at any moment and several may write
    at the same time. Every chain carries a checksum; one that does not fit is computed again.
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.path = cache_folder(folder) / "chains.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._given_up: set[str] = set()  # reading or writing, after it failed
        self._damaged = False

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The packed chains (see `unpack`) of those keys that are here and whole."""
        found = {}
        for start in range(0, len(keys), 500):  # below the limit of SQLite
            some = keys[start : start + 500]
            query = f"SELECT key, parents FROM chains WHERE key IN ({','.join('?' * len(some))})"
            for key, value in self._run("read", partial(_fetch, query, some)):
                if isinstance(value, bytes) and value[-_CHECK:] == _checksum(key, value[:-_CHECK]):
                    found[key] = value[:-_CHECK]
                elif not self._damaged:
                    self._damaged = True
                    _say(f"damaged chains in {self.path} are computed again")
        return found

    def write(self, chains: Iterable[tuple[bytes, bytes]]) -> None:
        """Add packed chains, all or none of them."""
        rows = [(key, value + _checksum(key, value)) for key, value in chains]

        def insert(connection: sqlite3.Connection) -> list[tuple[bytes, bytes]]:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO chains VALUES (?, ?)", rows)
            return []

        self._run("write", insert)

    def info(self) -> CacheInfo:
        """The file, the number of chains in it and its size."""
        if not self.path.exists():
            return CacheInfo(self.path, 0, 0)
        count = self._run("read", partial(_fetch, "SELECT count(*) FROM chains", []))
        return CacheInfo(self.path, count[0][0] if count else 0, self.path.stat().st_size)

    def clear(self) -> None:
        """Remove the file."""
        self.close()
        for suffix in ("-journal", "-wal", "-shm", ""):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, what: str, action: Callable[[sqlite3.Connection], list[Any]]) -> list[Any]:
        """Do something with the database; a damaged one is replaced, a hopeless one left alone."""
        if what in self._given_up:
            return []
        try:
            try:
                return action(self._open())
            except sqlite3.DatabaseError as error:
                if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _DAMAGE:
                    raise
                _say(f"the cache {self.path} is damaged ({error}) and built anew")
                self.clear()
                return action(self._open())
        except (sqlite3.Error, OSError) as error:
            if not self._given_up:
                _say(f"the cache {self.path} cannot be used ({error}); going on without it")
            self._given_up |= {"read", "write"} if what == "read" else {"write"}
            return []

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=WAIT)
            with suppress(sqlite3.OperationalError):  # it may be there and read-only
                self._connection.execute(_TABLE)
        return self._connection


def _say(message: str) -> None:
    warnings.warn(message, HaarPoolWarning, stacklevel=5)


def _fetch(query: str, values: Sequence[bytes], connection: sqlite3.Connection) -> list[Any]:
    return connection.execute(query, values).fetchall()


def _checksum(key: bytes, value: bytes) -> bytes:
    return blake2b(key + value, digest_size=_CHECK).digest()


def pack(parents: Sequence[Ints], seconds: Sequence[float]) -> bytes:
    """Steps as bytes: their number, lengths and seconds, then the ids, as narrow as fits."""
    width = next(w for w in (1, 2, 4, 8) if len(parents[0]) <= 256**w)
    steps = len(parents)
    head = struct.pack(f"<BH{steps}q{steps}f", width, steps, *map(len, parents), *seconds)
    return head + np.concatenate(parents).astype(f"<u{width}").tobytes()


def unpack(value: bytes) -> tuple[list[Ints], list[float]]:
    """The parent vectors and seconds that `pack` packed."""
    width, steps = struct.unpack_from("<BH", value)
    numbers = struct.unpack_from(f"<{steps}q{steps}f", value, 3)
    ids = np.frombuffer(value, f"<u{width}", offset=3 + 12 * steps).astype(np.int64)
    parents, end = [], 0
    for length in numbers[:steps]:
        parents.append(ids[end : end + length])
        end += length
    return parents, list(numbers[steps:])
