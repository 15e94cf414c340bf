"""Time that Python needs for a layer on a GPU, measured without one: nothing is launched.

The layer runs with the code for a GPU on tensors of the processor, and a launch does nothing but
read the addresses of its arguments, as Triton does. What is left is the time of the host, which is
what a call on small graphs takes. It is compared with `index_add_` on graphs of three nodes,
whose time is that of autograd and of one operation of torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from torch import Tensor

from benchmarks.layers import MODES, OWN
from benchmarks.measure import BenchOptions, measure
from benchmarks.parts.eager import make_layers, minibatch
from benchmarks.results import Measurement
from haarpool.training.devices import num_threads

TITLE = "time of Python for a layer on a GPU, nothing launched, one thread; value: index_add_s"
FILE = "host_time"
LIMIT = 3.0  # forward + backward over that of index_add_


class _Launches(dict[Any, Any]):
    """For each kind of arguments a launch that does nothing."""

    def get(self, key: Any, default: Any = None) -> Any:
        return _read_addresses


def _read_addresses(grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
    for value in arguments:
        if isinstance(value, Tensor):
            value.data_ptr()
        elif isinstance(value, tuple):
            _read_addresses(grid, value)


@contextmanager
def without_gpu() -> Iterator[None]:
    """Take the code for a GPU on a processor, and launch nothing."""
    from haarpool.haar.kernels import cuda

    with ExitStack() as stack:
        for name, value in {
            "haarpool.haar.operators._kernels": lambda device: cuda,
            "haarpool.haar.kernels.launch._variants": _Launches(),
            "torch.cuda.current_device": lambda: -1,  # where tensors of a processor are
        }.items():
            stack.enter_context(mock.patch(name, value))
        yield


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure the layers at two sizes of their chains."""
    with num_threads(1):
        yield from _measure(options.on_host)


def _measure(options: BenchOptions) -> Iterator[Measurement]:
    small = make_layers(minibatch(3, options))["index_add_"]
    for num_nodes in (20,) if options.quick else (30, 1000):
        layers = make_layers(minibatch(num_nodes, options))
        names = [*OWN[::-1], *(f"{name}, new batch" for name in OWN[::-1])]
        chosen = {"index_add_": small} | {name: layers[name] for name in names}
        for mode in MODES:
            actions = {name: layer.action(mode) for name, layer in chosen.items()}
            with without_gpu():
                times = measure(actions, options)
            for name, spent in times.items():
                is_limited = name in OWN and mode == MODES[1]
                yield Measurement(
                    f"{name}, {num_nodes} nodes, {mode}, over index_add_",
                    spent.median / times["index_add_"].median,
                    times=spent,
                    at_most=LIMIT if is_limited else None,
                    note=f"{1000 * spent.median:.1f} microseconds",
                )
