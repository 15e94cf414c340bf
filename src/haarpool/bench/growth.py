"""How the time of the adjoint transform grows with the number of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from haarpool.bench.measure import Action, Settings, free_memory, measure
from haarpool.bench.results import Line
from haarpool.bench.transforms import plan, threads
from haarpool.haar.transform import adjoint

TITLE = "adjoint, time ~ nodes^exponent, where a copy takes at least 0.5 ms; value: exponent"
COPY_MS = 0.5  # in less time much is overhead that does not grow
LIMITS = (0.95, 1.08)


def sizes(settings: Settings) -> tuple[tuple[int, ...], int]:
    """Return the numbers of nodes and the number of columns."""
    if settings.quick:
        return (1000, 2000, 4000), 64
    if settings.on_gpu:
        return tuple(1_000_000 * 2**i for i in range(5)), 256
    return tuple(100_000 * 2**i for i in range(5)), 64


def run(settings: Settings) -> Iterator[Line]:
    """Yield a line per size, and the exponent."""
    nodes, columns = sizes(settings)
    nodes = tuple(n for n in nodes if 4 * 4 * n * columns < free_memory(settings))
    x = torch.randn(max(nodes), columns, device=settings.device)
    target = torch.empty_like(x)
    actions: dict[str, Action] = {}
    for n in nodes:
        actions[f"copy {n}"] = partial(target[:n].copy_, x[:n])
        chain = plan(n, "clusters of 4", settings.device)
        actions[f"adjoint {n}"] = partial(adjoint, chain, x[:n])
    with threads(settings):
        times = measure(actions, settings)
    for n in nodes:
        one, copy = times[f"adjoint {n}"], times[f"copy {n}"]
        name, ratio = f"adjoint, {n:,} x {columns}", one.median / copy.median
        case: dict[str, str | int] = {"nodes": n, "columns": columns}
        yield Line("growth", name, ratio, "copies", one, case=case, error=one.error)
    used = [n for n in nodes if settings.quick or times[f"copy {n}"].median >= COPY_MS]
    if len(used) < 2:
        yield Line("growth", "exponent", error=f"a copy takes {COPY_MS} ms at fewer than two sizes")
        return
    medians = [times[f"adjoint {n}"].median for n in used]
    exponent = np.polyfit(np.log(used), np.log(medians), 1)[0]
    low, high = (None, None) if settings.quick else LIMITS
    name = f"exponent of {len(used)} sizes, {used[0]:,} to {used[-1]:,} nodes"
    yield Line("growth", name, float(exponent), "exponent", at_least=low, at_most=high)
