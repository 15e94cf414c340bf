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

Task = TypeVar("Task")


class Died(NamedTuple):
    """The process of a task ended without a result.

    Attributes:
        exit_code: Its exit code; -9 is a process that was killed, often for its memory.
    """

    exit_code: int | None


def run_in_processes(
    function: Callable[[Task], Any],
    tasks: Sequence[Task],
    jobs: int,
    is_broken: Callable[[Any], bool] = lambda result: False,
) -> Generator[tuple[Task, Any]]:
    """Call a function for each task and yield tasks with results, in the order they end.

    With one job the calls happen in this process. Worker processes end when the caller stops
    iterating, or when this process ends in any way.

    Args:
        function: The function; for several jobs it can be pickled.
        tasks: The tasks, in the order they start.
        jobs: Number of processes.
        is_broken: Whether the process of a result must not be used again: after an error of a GPU
            all further calls in the same process fail.

    Yields:
        A task and its result, or `Died`.
    """
    if jobs == 1:
        for task in tasks:
            yield task, function(task)
        return
    waiting = list(reversed(tasks))
    workers: dict[Connection, tuple[Any, Task]] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                _give(_start(function), waiting.pop(), workers)
            for ready in wait(list(workers)):
                assert isinstance(ready, Connection)
                process, task = workers.pop(ready)
                try:
                    result = ready.recv()
                except (EOFError, OSError):
                    process.join()
                    yield task, Died(process.exitcode)
                    continue
                if waiting and not is_broken(result):
                    _give((process, ready), waiting.pop(), workers)
                else:
                    ready.close()
                yield task, result
    finally:
        for process, _ in workers.values():
            process.kill()
        for connection, (process, _) in workers.items():
            process.join()
            connection.close()


def _start(function: Callable[[Task], Any]) -> tuple[Any, Connection]:
    # A forked process could not use a GPU.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(function, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _give(
    worker: tuple[Any, Connection], task: Task, workers: dict[Connection, tuple[Any, Task]]
) -> None:
    process, connection = worker
    with suppress(OSError):  # it died: receiving says so
        connection.send(task)
    workers[connection] = (process, task)


def _work(function: Callable[[Any], Any], connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The lock of tqdm is a semaphore of the system, about which Python warns if this one is killed.
    tqdm.set_lock(threading.RLock())
    with suppress(EOFError, OSError):  # the parent has no more tasks, or is gone
        while True:
            connection.send(function(connection.recv()))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
