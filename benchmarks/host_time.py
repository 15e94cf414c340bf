"""Time that Python needs for a layer on a GPU, measured without one: nothing is launched.

    python benchmarks/host_time.py [--out results/host_time.json]

The layer runs with the code for a GPU on tensors of the processor, and a launch does nothing but
read the addresses of its arguments, as Triton does. What is left is the time of the host, which is
what a call on small graphs takes. It is compared with `index_add_` on graphs of three nodes,
whose time is that of autograd and of one operation of torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from common import Result, report
from haarpool.bench.eager import MODES, make_layers, minibatch
from haarpool.bench.measure import Settings, measure

OUT = Path(__file__).resolve().parents[1] / "results" / "host_time.json"
LAYERS = ("HaarPooling, vertex", "HaarPooling, haar")
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


def measured(settings: Settings) -> Iterator[Result]:
    """Measure the layers at two sizes of their chains."""
    small = make_layers(minibatch(3, settings))["index_add_"]
    for num_nodes in (20,) if settings.quick else (30, 1000):
        layers = make_layers(minibatch(num_nodes, settings))
        chosen = {name: layers[name] for name in LAYERS}
        chosen |= {f"{name}, new batch": layers[f"{name}, new batch"] for name in LAYERS}
        for mode in MODES:
            actions = {
                name: one.forward if mode == MODES[0] else one.with_backward()
                for name, one in ({"index_add_": small} | chosen).items()
            }
            with without_gpu():
                times = {name: 1000 * t.median for name, t in measure(actions, settings).items()}
            for name, us in times.items():
                is_limited = name in LAYERS and mode == MODES[1] and not settings.quick
                yield Result(
                    f"{name}, {num_nodes} nodes, {mode}, over index_add_",
                    us / times["index_add_"],
                    at_most=LIMIT if is_limited else None,
                    note=f"{us:.1f} microseconds",
                )


def main() -> int:
    """Measure and report."""
    torch.set_num_threads(1)
    settings = Settings(torch.device("cpu"))
    return report(__doc__ or "", measured(settings), str(OUT), torch=torch.__version__)


if __name__ == "__main__":
    sys.exit(main())
