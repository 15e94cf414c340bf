"""Launch kernels of Triton with little work on the host.

`kernel[grid](...)` inspects all arguments in each call to find the variant that it has compiled for
them, which takes longer than our kernels need for a minibatch. A `Launch` inspects its arguments
once; in a call it looks at the signals only.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import torch
from torch import Tensor
from triton.runtime import JITFunction

from haarpool.haar.kernels._torch_internals import DirectLaunch, direct_launch

# A number for each kind of arguments, for a short key in each launch.
_numbers: dict[tuple[Any, ...], int] = {}
_next_number = count()
_variants: dict[tuple[Any, ...], DirectLaunch] = {}


class Launch:
    """The grid of a launch and all arguments but the signals, for any number of calls.

    Args:
        grid: Number of programs in both directions.
        arguments: Tensors, whole numbers, None, and tuples of them, which follow the signals.
        constants: The other arguments of the kernel, which are compiled in, and its options.
    """

    def __init__(self, grid: tuple[int, int], *arguments: Any, **constants: Any) -> None:
        self.grid, self.arguments, self.constants = grid, arguments, constants
        kinds = (*_kinds(arguments), *constants.values())
        self._number = _numbers.setdefault(kinds, next(_next_number))

    def __call__(self, kernel: Any, *signals: Tensor | None) -> None:
        """Launch a kernel on the device of its first signal."""
        if not isinstance(kernel, JITFunction):  # Triton's interpreter
            kernel[self.grid](*signals, *self.arguments, **self.constants)
            return
        device = signals[0].get_device()  # type: ignore[union-attr]
        if device != torch.cuda.current_device():
            with torch.cuda.device(device):
                self(kernel, *signals)
            return
        arguments = (*signals, *self.arguments)
        # The function of a kernel, since the hash of a kernel itself takes longer than the rest.
        key = (kernel.fn, device, self._number, _kinds(signals))
        known = _variants.get(key)
        if known is None:
            constants = self.constants | {"enable_fp_fusion": True}  # Triton 3.10: False by default
            compiled = kernel[self.grid](*arguments, **constants)
            _variants[key] = direct_launch(kernel, compiled, len(arguments), constants)
            return
        known(self.grid, arguments)


def _kinds(arguments: Iterable[Any]) -> tuple[Any, ...]:
    """Return what Triton compiles for; at least as much as its own key tells apart."""
    return tuple(
        [
            (value.dtype, value.data_ptr() % 16) if isinstance(value, Tensor) else _kind(value)
            for value in arguments
        ]
    )


def _kind(value: Any) -> Any:
    if isinstance(value, int):
        return 1 if value == 1 else (value % 16 == 0, value >> 31)
    return _kinds(value) if isinstance(value, tuple) else value
