"""Work in chunks: on this machine's cores, or on a Dask or Ray cluster, through joblib."""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, cast

import joblib

from haarpool.errors import HaarPoolError

CHUNK_SECONDS = 0.5  # of work; handing a chunk out and back takes a few milliseconds
FIRST = 32  # items of a chunk before it is known how long one takes
CONNECT_SECONDS = 10


class Pace:
    """How many items make a chunk, learnt from the chunks that have come back."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_jobs: int = joblib.effective_n_jobs(n_jobs)
        self._number = FIRST

    def learn(self, items: int, seconds: float) -> None:
        """Take note of a finished chunk."""
        fitting = int(CHUNK_SECONDS * items / max(seconds, 1e-6))
        self._number = max(1, min(fitting, 4 * self._number))

    def number(self, left: int) -> int:
        """Items for the next chunk: less towards the end, so that all workers end together."""
        if self.n_jobs == 1:
            return self._number
        share = -(-left // (2 * self.n_jobs))
        return max(1, min(self._number, share), self._number // 8)


def check_jobs(n_jobs: Any) -> None:
    """Raise unless this is a number of processes as joblib counts them."""
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs == 0):
        raise HaarPoolError(
            "n_jobs >= 1, or -1 for all cores", f"{n_jobs!r}", "leave it out for one process"
        )


def spread(
    function: Callable[..., Any], chunks: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[tuple[Any, float]]:
    """(result, seconds) of `function(*chunk)` for every chunk, as they come in.

    Chunks are taken from their iterator only when somebody is free to work on them.
    """
    calls = (joblib.delayed(_timed)(function, *chunk) for chunk in chunks)
    shared: dict[str, Any] = {"n_jobs": n_jobs, "batch_size": 1, "max_nbytes": None}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **shared)
    except ValueError:  # a backend (Ray's) that hands out whole lists: one round after the other
        with joblib.Parallel(**shared) as parallel:
            while round_ := list(islice(calls, 4 * joblib.effective_n_jobs(n_jobs))):
                yield from parallel(round_)
    else:
        yield from parallel(calls)


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        _end_with_parent()
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


@cache
def _end_with_parent() -> None:
    """Joblib's workers wait minutes for more work, even if who started them was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def connected(backend: str | None, address: str | None) -> Iterator[None]:
    """Run what stands inside on an existing cluster.

    Args:
        backend: "dask" or "ray"; `None` is this machine.
        address: of the Dask scheduler ("tcp://host:8786") or the Ray head ("host:6379").
    """
    if backend is None:
        yield
    elif backend == "dask":
        with _dask(address), joblib.parallel_config(backend="dask"):
            yield
    elif backend == "ray":
        with _ray(address), joblib.parallel_config(backend="ray"):
            yield
    else:
        raise HaarPoolError("backend 'dask' or 'ray'", f"{backend!r}", "leave it out for this one")


@contextmanager
def _dask(address: str | None) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError as error:
        raise _missing("dask", error) from error
    if address is None:
        raise HaarPoolError("the address of a Dask scheduler", "none", "pass tcp://host:8786")
    try:
        client: Any = cast(Any, Client)(address, timeout=CONNECT_SECONDS, set_as_default=True)
    except (OSError, ValueError, TimeoutError) as error:
        raise _unreachable("Dask scheduler", address, error) from error
    with client:
        yield


@contextmanager
def _ray(address: str | None) -> Iterator[None]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise _missing("ray", error) from error
    cast(Any, register_ray)()
    try:
        if address is not None:  # Ray itself tries for minutes and then ends the process
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        raise _unreachable("Ray cluster", address or "auto", error) from error
    try:
        yield
    finally:
        ray.shutdown()


def _missing(name: str, error: ImportError) -> HaarPoolError:
    return HaarPoolError(f"{name}", f"{error}", f'pip install "haarpool[{name}]"')


def _unreachable(what: str, address: str, error: Exception) -> HaarPoolError:
    reason = str(error).partition("\n")[0]
    return HaarPoolError(
        f"a {what} at {address}",
        f"no connection within {CONNECT_SECONDS} s ({reason})",
        "start it, or check the address",
    )
