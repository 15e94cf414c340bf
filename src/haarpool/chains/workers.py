"""Work in chunks through joblib: on the cores of this machine, or on a Dask or Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any

import joblib
from joblib.parallel import LokyBackend, get_active_backend

from haarpool._validate import choice, whole_number
from haarpool.errors import HaarPoolError, import_extra

CHUNK_SECONDS = 0.5  # of work per chunk; sending it takes a few milliseconds
FIRST_CHUNK = 32  # items of a chunk before the time per item is known
CONNECT_SECONDS = 10
PROC = "/proc"


class Pace:
    """The number of items of a chunk, learnt from the time of finished chunks."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_jobs: int = joblib.effective_n_jobs(n_jobs)
        self._number = FIRST_CHUNK

    def learn(self, items: int, seconds: float) -> None:
        """Update the number with a finished chunk."""
        fitting = int(CHUNK_SECONDS * items / max(seconds, 1e-6))
        self._number = max(1, min(fitting, 4 * self._number))

    def number(self, remaining: int) -> int:
        """Return the items of the next chunk; fewer at the end, so that all workers are busy."""
        if self.n_jobs == 1:
            return self._number
        share = -(-remaining // (2 * self.n_jobs))
        return max(1, min(self._number, share), self._number // 8)


def check_jobs(n_jobs: Any) -> None:
    """Check a number of processes; joblib counts negative numbers from the number of cores."""
    if n_jobs is not None and not (isinstance(n_jobs, Integral) and n_jobs < 0):
        whole_number("n_jobs", n_jobs, remedy="pass {n_jobs} for all cores", n_jobs=-1)


def spread(
    function: Callable[..., Any], chunks: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[tuple[Any, float]]:
    """Call a function with the arguments of each chunk, in parallel.

    A chunk is read when a worker is free. `n_jobs` is the number of processes, as joblib counts.

    Yields:
        (result, seconds) of each call, in the order in which they finish.
    """
    calls = (joblib.delayed(_timed)(function, *chunk) for chunk in chunks)
    settings: dict[str, Any] = {"n_jobs": n_jobs, "batch_size": 1, "max_nbytes": None}
    backend, _ = get_active_backend()
    if isinstance(backend, LokyBackend) and "initializer" not in backend.backend_kwargs:
        settings |= {"initializer": end_with_parent, "initargs": (os.getpid(),)}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **settings)
    except ValueError:  # a backend such as Ray's that only returns lists: send rounds of calls
        with joblib.Parallel(**settings) as parallel:
            while round_ := list(islice(calls, 4 * joblib.effective_n_jobs(n_jobs))):
                yield from parallel(round_)
    else:
        yield from parallel(calls)


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def end_with_parent(parent: int) -> None:
    """Start a thread in a worker that ends it soon after its parent, the process of this id.

    Without it, workers would wait for more work forever if the parent was killed.
    """
    if os.name != "posix":  # there, the id of the parent never changes
        return
    # They differ if the parent has already ended, or if a wrapper started this interpreter.
    is_child = os.getppid() == parent

    def watch() -> None:
        while os.getppid() == parent if is_child else _is_running(parent):
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _is_running(process: int) -> bool:
    """Return whether a process of the same user runs.

    A killed process keeps its number, and receives signals, until its own parent waits for it; in a
    container that may be never.
    """
    try:
        os.kill(process, 0)
    except OSError:
        return False
    try:
        state = Path(f"{PROC}/{process}/stat").read_text().rpartition(")")[2].strip()
    except OSError:  # it has just ended, or this is not Linux
        state = _state_by_ps(process)
    return state[:1] not in ("Z", "X")


def _state_by_ps(process: int) -> str:
    ps = ["ps", "-o", "stat=", "-p", str(process)]
    try:
        return subprocess.run(ps, check=False, stdout=subprocess.PIPE, text=True).stdout.strip()
    except OSError:  # no such program
        return ""


@contextmanager
def connected(backend: str | None, address: str | None) -> Iterator[None]:
    """Run the calls of `spread` in this context on an existing cluster.

    Args:
        backend: "dask" or "ray"; `None` for this machine.
        address: Address of the Dask scheduler ("tcp://host:8786") or the Ray head ("host:6379").
    """
    if backend is None:
        yield
        return
    connect = {"dask": _dask, "ray": _ray}[choice("backend", backend, ("dask", "ray"))]
    with connect(address), joblib.parallel_config(backend=backend):
        yield


@contextmanager
def _dask(address: str | None) -> Iterator[None]:
    distributed = import_extra("distributed", "dask")
    if address is None:
        expected, remedy = "of a Dask scheduler", "pass for example {address}"
        example = "tcp://host:8786"
        raise HaarPoolError(expected, "none", remedy, parameter="address", address=example)
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=True)
    except (OSError, ValueError, TimeoutError) as error:
        raise _unreachable("Dask scheduler", address, error) from error
    with client:
        yield


@contextmanager
def _ray(address: str | None) -> Iterator[None]:
    ray = import_extra("ray", "ray")
    import_extra("ray.util.joblib", "ray").register_ray()
    try:
        if address is not None:  # Ray would try for minutes and then end the process
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        raise _unreachable("Ray cluster", address or "auto", error) from error
    try:
        yield
    finally:
        ray.shutdown()


def _unreachable(name: str, address: str, error: Exception) -> HaarPoolError:
    reason = str(error).partition("\n")[0]
    return HaarPoolError(
        f"a {name} at {address}",
        f"no connection within {CONNECT_SECONDS} s ({reason})",
        "start it, or check {address}",
        address=...,
    )
