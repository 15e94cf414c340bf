"""Calls in several processes, of which any may die without harm to the others."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

from tqdm import tqdm

from haarpool.chains.workers import end_with_parent

Input = TypeVar("Input")


class Died(NamedTuple):
    """The process of a call ended without a result.

    Attributes:
        exit_code: Its exit code; -9 is a process that was killed, often for its memory.
    """

    exit_code: int | None

    def __str__(self) -> str:
        killed = " (killed, often for memory)" if self.exit_code == -9 else ""
        return f"ended with code {self.exit_code}{killed}"


def run_in_processes(
    function: Callable[[Input], Any],
    inputs: Sequence[Input],
    jobs: int,
    is_broken: Callable[[Any], bool] = lambda result: False,
) -> Generator[tuple[Input, Any]]:
    """Call a function for each input and yield inputs with results, in the order they end.

    With one job the calls happen in this process. Worker processes end when the caller stops
    iterating, or when this process ends in any way.

    Args:
        function: The function; for several jobs it can be pickled.
        inputs: The inputs, in the order they start.
        jobs: Number of processes.
        is_broken: Whether the process of a result must not be used again: after an error of a GPU
            all further calls in the same process fail.

    Yields:
        An input and its result, or `Died`.
    """
    if jobs == 1:
        for one in inputs:
            yield one, function(one)
        return
    waiting, workers = list(reversed(inputs)), list[_Worker]()
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_Worker(function, waiting.pop()))
            ready = wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in ready]:
                one, result = worker.input, worker.take()
                if waiting and not isinstance(result, Died) and not is_broken(result):
                    worker.give(waiting.pop())
                else:
                    workers.remove(worker)
                    worker.connection.close()
                yield one, result
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.connection.close()


class _Worker:
    """A process that calls a function for one input after the other."""

    def __init__(self, function: Callable[[Any], Any], first: Any) -> None:
        context = get_context("spawn")  # a forked process could not use a GPU
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_work, args=(function, theirs, os.getpid()), daemon=True
        )
        self.process.start()
        theirs.close()
        self.give(first)

    def give(self, one: Any) -> None:
        self.input = one
        with suppress(OSError):  # it died: `take` says so
            self.connection.send(one)

    def take(self) -> Any:
        """Return the result, or how the process died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return Died(self.process.exitcode)


def _work(function: Callable[[Any], Any], connection: Connection, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this one
    end_with_parent(parent)
    # The lock of tqdm is a semaphore of the system, about which Python warns if this one is killed.
    tqdm.set_lock(threading.RLock())
    with suppress(EOFError, OSError):  # the parent has no more inputs, or is gone
        while True:
            connection.send(function(connection.recv()))
