"""A training step on a padded minibatch, which a GPU replays as one CUDA graph.

A step of a small network starts hundreds of short kernels, and Python needs much longer to start
them than the GPU to run them. In a padded minibatch all shapes are fixed. So the whole step - cut
the minibatch, forward, backward, optimiser - is captured once and replayed with other graphs.
"""

from __future__ import annotations

import atexit
import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from haarpool._types import Ints
from haarpool.errors import HaarPoolWarning
from haarpool.training.devices import Captures
from haarpool.training.minibatches import Minibatches

_WARM_UP = 3  # steps before the capture, in which libraries allocate what they keep


class PaddedStep:
    """Calls a function on padded minibatches.

    Args:
        batches: The dataset.
        size: Number of graphs of a minibatch.
        step: Function of a minibatch and the numbers of its graphs; it must not wait for a GPU.
        captures: Shared by all steps of a run.
    """

    def __init__(
        self,
        batches: Minibatches,
        size: int,
        step: Callable[[dict[str, torch.Tensor], torch.Tensor], None],
        captures: Captures,
    ) -> None:
        self._batches, self._step, self._captures, self._calls = batches, step, captures, 0
        self._capacity = batches.capacity(size)
        self._numbers = torch.zeros(size, dtype=torch.int64, device=batches.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._on_gpu = batches.device.type == "cuda"

    def fits(self, chosen: Ints) -> bool:
        """Return whether some graphs fit into the padded minibatch."""
        return self._capacity.fits(chosen)

    def __call__(self, chosen: Ints) -> None:
        """Run the step on the minibatch of these graphs."""
        self._numbers.copy_(torch.from_numpy(chosen), non_blocking=True)
        self._calls += 1
        if not self._on_gpu or self._captures.failed:
            self._run()
        elif self._calls <= _WARM_UP:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._run()
            torch.cuda.current_stream().wait_stream(stream)
        elif self._graph is not None or self._capture():
            assert self._graph is not None
            self._graph.replay()
        else:
            self._run()

    def _run(self) -> None:
        self._step(self._batches.take_padded(self._numbers, self._capacity), self._numbers)

    def _capture(self) -> bool:
        """Capture the step, which does not run, and return whether that succeeded."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with _no_garbage_collection(), torch.cuda.graph(graph):
                self._run()
        except RuntimeError as error:  # if the step itself is wrong, it fails again when it runs
            self._captures.failed = True
            # The memory allocator still asks the failed graph, which must not be destroyed.
            atexit.register(lambda: graph)
            # A failed capture leaves its own stream and random numbers behind.
            torch.cuda.set_stream(stream)
            generator = torch.cuda.default_generators[stream.device_index]
            generator.graphsafe_set_state(generator.clone_state())
            reason = str(error).split("\n", 1)[0]
            warnings.warn(
                f"training steps were not captured in a CUDA graph and are slower: {reason}",
                HaarPoolWarning,
                stacklevel=2,
            )
            return False
        self._graph = graph
        return True


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect no garbage: a network that was trained before may be in it, with its CUDA graph.

    Destroying a CUDA graph invalidates a capture that is under way.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
