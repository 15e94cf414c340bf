"""The peak memory of pooling layers and of the adjoint transform, relative to their input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks.layers import (
    NAMES,
    OWN,
    SLOW,
    lacks_memory,
    layers,
    node_counts,
    random_minibatch,
)
from benchmarks.measure import Action, BenchOptions, describe, peak_memory
from benchmarks.parts.transforms import KINDS, main_size, plan, threads
from benchmarks.results import Measurement
from haarpool.haar.transform import adjoint

TITLE = "peak memory beyond the input, result included; value: times the size of x"


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure each size and layer, and, if all layers are measured, each chain."""
    if not options.on_gpu and not Path("/proc/self/clear_refs").exists():
        yield Measurement("all", error="left out: needs /proc", optional=True)
        return
    for num_nodes in node_counts(options):
        batch = random_minibatch(num_nodes, options)
        for name, layer in layers(batch, options.layers or NAMES).items():
            reason = lacks_memory(name, num_nodes, options)
            if name in SLOW:
                reason = reason or "left out: very slow"
            value, note = math.nan, ""
            if not reason:
                value, note, reason = _measure(layer.with_backward(), batch.x, options)
            yield Measurement(
                f"{name}, {num_nodes} nodes, forward + backward", value, "x",
                case={"layer": name, "nodes": num_nodes}, note=note, error=reason,
                optional=name not in OWN,
            )  # fmt: skip
    if options.layers:
        return
    size = main_size(options)
    x = torch.randn(size, 64, device=options.device)
    with threads(options):
        for kind in KINDS:
            action = partial(adjoint, plan(size, kind, options.device), x)
            value, note, error = _measure(action, x, options)
            case: dict[str, str | int] = {"map": "adjoint", "nodes": size, "chain": kind}
            name = f"adjoint, {size:,} x 64, {kind}"
            yield Measurement(name, value, "x", case=case, note=note, error=error)


def _measure(action: Action, x: torch.Tensor, options: BenchOptions) -> tuple[float, str, str]:
    """Return the peak in sizes of x and as a note, or why there is none."""
    try:
        peak = peak_memory(action, options)
        return peak / x.nbytes, f"{peak / 1e6:.1f} MB, x has {x.nbytes / 1e6:.1f} MB", ""
    except Exception as error:  # out of memory
        return math.nan, "", describe(error)
