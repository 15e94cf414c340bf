"""How the time of the adjoint transform grows with the number of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from benchmarks.measure import Action, BenchOptions, free_memory, measure
from benchmarks.parts.transforms import plan, threads
from benchmarks.results import Measurement
from haarpool.haar.transform import adjoint

TITLE = "adjoint, time ~ nodes^exponent, where a copy takes at least 0.5 ms; value: exponent"
COPY_MS = 0.5  # in less time much is overhead that does not grow
LIMITS = (0.95, 1.08)


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure each size, and the exponent."""
    first = 1000 if options.quick else 1_000_000 if options.on_gpu else 100_000
    columns = 256 if options.on_gpu and not options.quick else 64
    nodes = [first * 2**i for i in range(3 if options.quick else 5)]
    nodes = [n for n in nodes if 4 * 4 * n * columns < free_memory(options)]
    x = torch.randn(max(nodes), columns, device=options.device)
    target = torch.empty_like(x)
    actions: dict[str, Action] = {}
    for n in nodes:
        actions[f"copy {n}"] = partial(target[:n].copy_, x[:n])
        chain = plan(n, "clusters of 4", options.device)
        actions[f"adjoint {n}"] = partial(adjoint, chain, x[:n])
    with threads(options):
        times = measure(actions, options)
    for n in nodes:
        one, copy = times[f"adjoint {n}"], times[f"copy {n}"]
        name, ratio = f"adjoint, {n:,} x {columns}", one.median / copy.median
        yield Measurement(name, ratio, "copies", one, case={"nodes": n, "columns": columns})
    used = [n for n in nodes if options.quick or times[f"copy {n}"].median >= COPY_MS]
    if len(used) < 2:
        reason = f"a copy takes {COPY_MS} ms at fewer than two sizes"
        yield Measurement("exponent", error=reason)
        return
    medians = [times[f"adjoint {n}"].median for n in used]
    exponent = np.polyfit(np.log(used), np.log(medians), 1)[0]
    name = f"exponent of {len(used)} sizes, {used[0]:,} to {used[-1]:,} nodes"
    low, high = LIMITS
    yield Measurement(name, float(exponent), "exponent", at_least=low, at_most=high)
