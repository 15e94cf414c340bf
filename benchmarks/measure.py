"""How time and memory are measured.

The actions of a comparison run in turns, so that a change of the machine's speed meets all of them,
and the median over the rounds counts. Compiling and first allocations are not measured.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import torch

Action = Callable[[], object]
Result = TypeVar("Result")

MIN_ROUNDS = 5
BLOCK_MS = 4.0  # an action is repeated for at least this long between two looks at the clock
MAX_CALLS = 500
SLOW_MS = 500.0  # such an action needs no further warm-up


@dataclass(frozen=True)
class BenchOptions:
    """What is measured, and where.

    Attributes:
        device: The device to measure.
        quick: Use tiny sizes and no limits; this only shows that everything runs.
        layers: Names of the pooling layers to measure; by default all.
    """

    device: torch.device
    quick: bool = False
    layers: tuple[str, ...] = ()

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU with CUDA."""
        return self.device.type == "cuda"

    def includes(self, layer: str) -> bool:
        """Return whether a pooling layer is to be measured."""
        return not self.layers or layer in self.layers

    @property
    def on_host(self) -> BenchOptions:
        """The options for what the processor does."""
        return BenchOptions(torch.device("cpu"), self.quick)

    @property
    def max_rounds(self) -> int:
        """Number of rounds of fast actions."""
        return 3 if self.quick else 21

    @property
    def seconds(self) -> float:
        """Time for all rounds of an action; slow actions exceed it."""
        return 0.02 if self.quick else 0.4 if self.on_gpu else 2.0


@dataclass(frozen=True)
class Times:
    """Times of one action in ms, one per round.

    Attributes:
        values: The times; none if the action failed or was left out.
        error: Why there are none.
    """

    values: tuple[float, ...] = ()
    error: str = ""

    @property
    def median(self) -> float:
        """The median, NaN if there are no times."""
        return float(np.median(self.values)) if self.values else math.nan

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile."""
        low, high = np.percentile(self.values or (math.nan,), [25, 75])
        return float(low), float(high)

    def divided_by(self, number: int) -> Times:
        """Return the times of one of several equal steps of the action."""
        return Times(tuple(value / number for value in self.values), self.error)


def measure(
    actions: Mapping[str, Action], options: BenchOptions, *, once: Collection[str] = ()
) -> dict[str, Times]:
    """Measure some actions in turns; slow ones take part in the first rounds only.

    Args:
        actions: Actions by name.
        options: Device and number of rounds.
        once: Names of slow actions, which are called once and without warm-up.

    Returns:
        Times by name; those of an action that raises an exception hold its message.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    errors: dict[str, str] = {}
    calls, rounds = dict[str, int](), dict[str, int]()
    for name, action in actions.items():
        try:
            if name in once:
                times[name].append(_block(action, 1, options))
                continue
            spent = max(_warm_up(action, options), 1e-6)
        except Exception as error:  # for example out of memory; the others go on
            errors[name] = describe(error)
            if options.on_gpu:
                torch.cuda.empty_cache()
            continue
        calls[name] = min(math.ceil(BLOCK_MS / spent), MAX_CALLS)
        fitting = int(1000 * options.seconds / (calls[name] * spent))
        rounds[name] = min(max(fitting, MIN_ROUNDS), options.max_rounds)
    for turn in range(max(rounds.values(), default=0)):
        for name, number in calls.items():
            if turn < rounds[name]:
                times[name].append(_block(actions[name], number, options))
    return {name: Times(tuple(times[name]), errors.get(name, "")) for name in actions}


def _warm_up(action: Action, options: BenchOptions) -> float:
    """Call an action until its time is typical, and return that time in ms."""
    spent = 0.0
    _block(action, 1, options)  # compiles
    for _ in range(3):
        spent = _block(action, 1, options)
        if spent > SLOW_MS:
            break
    return spent


def _block(action: Action, calls: int, options: BenchOptions) -> float:
    """Return the ms per call of several calls."""
    if not options.on_gpu:
        start = time.perf_counter()
        for _ in range(calls):
            action()
        return 1000 * (time.perf_counter() - start) / calls
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    first.record()
    for _ in range(calls):
        action()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / calls


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one call.

    Args:
        action: What is called.
        clock: `time.process_time` measures the processor alone.
    """
    start = clock()
    action()
    return clock() - start


def captured(action: Action) -> Action:
    """Return the replay of an action that is captured in a CUDA graph."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            action()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        action()
    replay: Action = graph.replay
    return replay


_CALL = """\
import pickle, sys
result, sys.stdout = sys.stdout.buffer, sys.stderr
sys.path[:], function, arguments = pickle.load(sys.stdin.buffer)
pickle.dump(function(*arguments), result)
"""


def in_new_process(
    function: Callable[..., Result], *arguments: Any, environment: Mapping[str, str] | None = None
) -> Result:
    """Call a function in a new process: a failed capture leaves the old one unusable.

    Args:
        function: The function.
        *arguments: Its arguments.
        environment: Variables of the new process beside those of this one.
    """
    process = subprocess.run(
        [sys.executable, "-c", _CALL],
        input=pickle.dumps((sys.path, function, arguments)),
        stdout=subprocess.PIPE,
        env=os.environ | (environment or {}),
        check=True,
    )
    result: Result = pickle.loads(process.stdout)
    return result


def describe(error: BaseException) -> str:
    """Return the type and the first line of an exception."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


# ---------------------------------------------------------------------- memory


def peak_memory(action: Action, options: BenchOptions) -> int:
    """Return the bytes that an action takes at its peak, its result included.

    On a processor this is the growth of the process.
    """
    action()  # compiles
    if options.on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        action()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    return growth_of_process(action)


def growth_of_process(action: Action) -> int:
    """Return the bytes by which this process grows at its peak while an action runs (Linux).

    Memory that an earlier call has left to the process does not count.
    """
    with suppress(AttributeError):  # of other C libraries
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = read_proc("VmRSS")
    action()
    return max(read_proc("VmHWM") - before, 0)


_COMMAND = """\
import sys
from pathlib import Path
from haarpool.cli import main
code = main(sys.argv[2:])
Path(sys.argv[1]).write_bytes(Path("/proc/self/status").read_bytes())
sys.exit(code)
"""


def run_haarpool(*command: object, **environment: object) -> tuple[float, float]:
    """Run `haarpool` in a new process; return its peak memory in GB and its seconds."""
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        status = f"{folder}/status"
        subprocess.run(
            [sys.executable, "-c", _COMMAND, status, *map(str, command)],
            stdout=subprocess.DEVNULL,
            env=os.environ | {name: str(value) for name, value in environment.items()},
            check=True,
        )
        return read_proc("VmHWM", status) / 1e9, time.perf_counter() - start


def free_memory(options: BenchOptions) -> float:
    """Return the bytes that are free on the device."""
    if options.on_gpu:
        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return torch.cuda.mem_get_info()[0] + cached
    if Path("/proc/meminfo").exists():
        return read_proc("MemAvailable", "/proc/meminfo")
    return math.inf


def read_proc(key: str, file: str = "/proc/self/status") -> int:
    """Return a number of bytes from a file of /proc.

    Args:
        key: Its name. Of this process, VmRSS is the memory in use and VmHWM its peak.
        file: The file.
    """
    lines = Path(file).read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))
