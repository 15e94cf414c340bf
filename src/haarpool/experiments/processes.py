"""Calls in several processes, of which any may die without harm to the others."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

from tqdm import tqdm

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
    waiting = list(reversed(inputs))
    workers: dict[Connection, tuple[Any, Input]] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                _give(_start(function), waiting.pop(), workers)
            for ready in wait(list(workers)):
                assert isinstance(ready, Connection)
                process, one = workers.pop(ready)
                try:
                    result = ready.recv()
                except (EOFError, OSError):
                    process.join()
                    yield one, Died(process.exitcode)
                    continue
                if waiting and not is_broken(result):
                    _give((process, ready), waiting.pop(), workers)
                else:
                    ready.close()
                yield one, result
    finally:
        for process, _ in workers.values():
            process.kill()
        for connection, (process, _) in workers.items():
            process.join()
            connection.close()


def _start(function: Callable[[Input], Any]) -> tuple[Any, Connection]:
    # A forked process could not use a GPU.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(function, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _give(
    worker: tuple[Any, Connection], one: Input, workers: dict[Connection, tuple[Any, Input]]
) -> None:
    process, connection = worker
    with suppress(OSError):  # it died: receiving says so
        connection.send(one)
    workers[connection] = (process, one)


def _work(function: Callable[[Any], Any], connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The lock of tqdm is a semaphore of the system, about which Python warns if this one is killed.
    tqdm.set_lock(threading.RLock())
    with suppress(EOFError, OSError):  # the parent has no more inputs, or is gone
        while True:
            connection.send(function(connection.recv()))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
