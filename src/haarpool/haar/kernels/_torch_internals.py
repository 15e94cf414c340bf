"""Everything private of torch and Triton that haarpool uses; nothing else in the package does.

Private names may change with any release. So each entry has a public way to the same result, which
is slower and is taken if torch does not have the name or does not answer in the form that we know.
`tests/haar/test_torch_internals.py` fails when that happens.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def _private(name: str, kind: type, *arguments: Any) -> Any:
    """Return a private function of torch, or None if it does not answer with this type.

    Args:
        name: Its name with all modules.
        kind: Type of the answer.
        arguments: Arguments for a first call.
    """
    module, _, attribute = name.rpartition(".")
    try:
        function = getattr(import_module(module), attribute)
        return function if isinstance(function(*arguments), kind) else None
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError):
        return None


def _counting(module: str, name: str) -> Any:
    """Return a module of torch if it counts in this variable, else None."""
    try:
        found = import_module(module)
    except ImportError:
        return None
    return found if isinstance(getattr(found, name, None), int) else None


# ---------------------------------------------------------------------- autograd

_transforms_active = _private("torch._C._are_functorch_transforms_active", bool)
_dual_levels = _counting("torch.autograd.forward_ad", "_current_level")
_legacy_batched = _private("torch._C._functorch.is_legacy_batchedtensor", bool, torch.empty(0))


def transforms_may_be_active() -> bool:
    """Return False outside of the transforms of `torch.func`.

    Public: True, for `Function.apply` works inside and outside of them.
    """
    return _transforms_active is None or _transforms_active()


def forward_mode_may_be_active() -> bool:
    """Return False outside of `torch.autograd.forward_ad.dual_level`.

    Public: True, for an autograd Function works inside and outside of it.
    """
    return _dual_levels is None or _dual_levels._current_level >= 0


def plain_apply(function: type[Function]) -> Callable[..., Any]:
    """Return `function.apply` for calls outside of `torch.func`; a microsecond faster.

    Public: `function.apply`, which is the same since torch 2.15.
    """
    apply: Callable[..., Any] = getattr(super(Function, function), "apply", function.apply)
    return apply


def is_legacy_batched(x: Tensor) -> bool:
    """Return whether a tensor comes from `torch.autograd.grad(..., is_grads_batched=True)`.

    Public: whether the tensor has no memory that a kernel could read.
    """
    if _legacy_batched is not None:
        return bool(_legacy_batched(x))
    try:
        x.data_ptr()
    except RuntimeError:
        return True
    return False


def version(x: Tensor) -> object:
    """Return a value that differs from an earlier one if the tensor was changed in between.

    Public: a new object for each call, as if it was changed. `x` is no inference tensor.
    """
    return getattr(x, "_version", object())


# ---------------------------------------------------------------------- torch.compile

_transforms = _counting("torch._functorch.eager_transforms", "JVP_NESTING")


def is_inside_jvp() -> bool | None:
    """Return whether compiled code is inside of `torch.func.jvp`, or None if torch does not say.

    Public: None; then only code that `traced_if_jvp_is_known` keeps out of the graph has complete
    derivatives.
    """
    return None if _transforms is None else _transforms.JVP_NESTING > 0


def traced_if_jvp_is_known(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Keep a function out of compiled code if `is_inside_jvp` does not know.

    Else the function stays as it is: `torch.compiler.disable` imports Dynamo, which takes a second.
    """
    if is_inside_jvp() is not None:
        return function
    reason = "this release of torch does not say whether forward-mode derivatives are taken"
    disabled: Callable[..., Tensor] = torch.compiler.disable(function, reason=reason)
    return disabled


# ---------------------------------------------------------------------- Triton

DirectLaunch = Callable[[tuple[int, int], tuple[Any, ...]], None]


def direct_launch(kernel: Any, compiled: Any, num_arguments: int, constants: Any) -> DirectLaunch:
    """Return a function of grid and arguments that launches a variant of a kernel.

    It does not look for the variant: `compiled[grid](*arguments)` takes all arguments in the order
    of the kernel, also those that are compiled in.

    Public: `kernel[grid](*arguments, **constants)`.

    Args:
        kernel: The kernel.
        compiled: Its variant, the answer of `kernel[grid](...)`.
        num_arguments: Number of arguments that are not compiled in.
        constants: The other arguments by name, and options.
    """

    def public(grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        kernel[grid](*arguments, **constants)

    try:
        compiled_in = [constants[name] for name in kernel.arg_names[num_arguments:]]
    except (AttributeError, KeyError, TypeError):
        return public
    if not hasattr(compiled, "__getitem__"):
        return public

    def direct(grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        try:
            compiled[(*grid, 1)](*arguments, *compiled_in)
        except (AttributeError, TypeError):  # before anything is launched
            public(grid, arguments)

    return direct
