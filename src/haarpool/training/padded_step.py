"""A training step on a padded minibatch, which a GPU replays as one CUDA graph.

A step of a small network starts hundreds of short kernels, and Python needs much longer to start
them than the GPU to run them. In a padded minibatch all shapes are fixed. So the whole step - cut
the minibatch, forward, backward, optimiser - is captured once and replayed with other graphs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from haarpool._types import Ints
from haarpool.training.minibatches import Minibatches

_WARM_UP = 3  # steps before the capture, in which libraries allocate what they keep


class PaddedStep:
    """Calls a function on padded minibatches.

    Args:
        batches: The dataset.
        size: Number of graphs of a minibatch.
        step: Function of a minibatch and the numbers of its graphs; it must not wait for a GPU.
    """

    def __init__(
        self,
        batches: Minibatches,
        size: int,
        step: Callable[[dict[str, torch.Tensor], torch.Tensor], None],
    ) -> None:
        self._batches, self._step, self._calls = batches, step, 0
        self._capacity = batches.capacity(size)
        self._numbers = torch.zeros(size, dtype=torch.int64, device=batches.device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def fits(self, chosen: Ints) -> bool:
        """Return whether some graphs fit into the padded minibatch."""
        return self._capacity.fits(chosen)

    def __call__(self, chosen: Ints) -> None:
        """Run the step on the minibatch of these graphs."""
        self._numbers.copy_(torch.from_numpy(chosen), non_blocking=True)
        self._calls += 1
        if self._batches.device.type != "cuda":
            self._run()
        elif self._calls <= _WARM_UP:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._run()
            torch.cuda.current_stream().wait_stream(stream)
        else:
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    self._run()
            self._graph.replay()

    def _run(self) -> None:
        self._step(self._batches.take_padded(self._numbers, self._capacity), self._numbers)
