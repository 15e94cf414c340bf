"""Launch kernels of Triton with little work on the host.

`kernel[grid](...)` inspects all arguments in each call to find the variant that it has compiled for
them, which takes longer than our kernels need for a minibatch. Here a short key finds the variant.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from triton.runtime import JITFunction

from haarpool.haar.kernels._torch_internals import Launch, direct_launch

_variants: dict[tuple[Any, ...], Launch] = {}


def launch(kernel: Any, grid: tuple[int, int], *arguments: Any, **constants: Any) -> None:
    """Launch a kernel on the device of its first argument.

    Args:
        kernel: The kernel.
        grid: Number of programs in both directions.
        arguments: Tensors, whole numbers, None, and tuples of them.
        constants: The other arguments of the kernel, which are compiled in, and its options.
    """
    if not isinstance(kernel, JITFunction):  # Triton's interpreter
        kernel[grid](*arguments, **constants)
        return
    device = arguments[0].get_device()
    if device != torch.cuda.current_device():
        with torch.cuda.device(device):
            launch(kernel, grid, *arguments, **constants)
        return
    key = (id(kernel), device, *_kinds(arguments), *constants.values())
    known = _variants.get(key)
    if known is None:
        constants["enable_fp_fusion"] = True  # no longer the default in Triton 3.10
        compiled = kernel[grid](*arguments, **constants)
        _variants[key] = direct_launch(kernel, compiled, len(arguments), constants)
        return
    known(grid, arguments)


def _kinds(arguments: Iterable[Any]) -> list[Any]:
    """Return what Triton compiles for; at least as much as its own key tells apart."""
    kinds: list[Any] = []
    for value in arguments:
        if isinstance(value, Tensor):
            kinds += value.dtype, value.data_ptr() % 16 == 0
        elif isinstance(value, int):
            kinds.append(1 if value == 1 else (value % 16 == 0, value >> 31))
        elif isinstance(value, tuple):
            kinds += len(value), *_kinds(value)
        else:
            kinds.append(value)
    return kinds
