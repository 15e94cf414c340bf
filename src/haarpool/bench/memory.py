"""The peak memory of pooling layers and of the adjoint transform, relative to their input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from haarpool.bench.layers import (
    NAMES,
    OWN,
    SLOW,
    lacks_memory,
    layers,
    node_counts,
    random_minibatch,
)
from haarpool.bench.measure import Action, Settings, describe, peak_memory
from haarpool.bench.results import Line
from haarpool.bench.transforms import OTHER_CHAINS, main_size, plan, threads
from haarpool.haar.transform import adjoint

TITLE = "peak memory beyond the input, result included; value: times the size of x"


def run(settings: Settings) -> Iterator[Line]:
    """Yield a line per size and layer, and, if all layers are measured, per chain."""
    if not settings.on_gpu and not Path("/proc/self/clear_refs").exists():
        yield Line("memory", "all", error="left out: needs /proc", optional=True)
        return
    for num_nodes in node_counts(settings):
        yield from _layer_lines(num_nodes, settings)
    if not settings.layers:
        yield from _chain_lines(settings)


def _layer_lines(num_nodes: int, settings: Settings) -> Iterator[Line]:
    """Yield the lines of layers at one size."""
    batch = random_minibatch(num_nodes, settings)
    for name, layer in layers(batch, settings.layers or NAMES).items():
        title = f"{name}, {num_nodes} nodes, forward + backward"
        case: dict[str, str | int] = {"layer": name, "nodes": num_nodes}
        reason = lacks_memory(name, num_nodes, settings)
        if reason or name in SLOW:
            reason = reason or "left out: very slow"
            yield Line("memory", title, case=case, error=reason, optional=True)
        else:
            yield _line(title, layer.with_backward(), batch.x, case, settings, name not in OWN)


def _chain_lines(settings: Settings) -> Iterator[Line]:
    """Yield the lines of the adjoint transform of one large graph."""
    size = main_size(settings)
    x = torch.randn(size, 64, device=settings.device)
    with threads(settings):
        for kind in ("clusters of 4", *OTHER_CHAINS):
            action = partial(adjoint, plan(size, kind, settings.device), x)
            case: dict[str, str | int] = {"map": "adjoint", "nodes": size, "chain": kind}
            yield _line(f"adjoint, {size:,} x 64, {kind}", action, x, case, settings, False)


def _line(
    name: str,
    action: Action,
    x: torch.Tensor,
    case: dict[str, str | int],
    settings: Settings,
    optional: bool,
) -> Line:
    value, note, error = math.nan, "", ""
    try:
        peak = peak_memory(action, settings)
        value, note = peak / x.nbytes, f"{peak / 1e6:.1f} MB, x has {x.nbytes / 1e6:.1f} MB"
    except Exception as failure:  # out of memory
        error = describe(failure)
    return Line("memory", name, value, "x", case=case, note=note, error=error, optional=optional)
