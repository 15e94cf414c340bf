"""The transforms of one large graph, counted in copies of the signal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
import torch

from haarpool.bench.measure import Settings, free_memory, measure
from haarpool.bench.results import Line
from haarpool.chains.chain import Chain
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.transform import adjoint, compress, expand, forward_transform
from haarpool.training.devices import num_threads

TITLE = "one graph, clusters of 4 numbered one after the other down to one node; value: copies of x"
COLUMNS = (16, 64, 256)
THREADS = 2  # on a processor
LIMITS = {"cuda": {"adjoint": 1.8, "compress": 1.2}, "cpu": {"adjoint": 3.0, "compress": 1.5}}
OTHER_CHAINS = ("shuffled", "pairs", "one cluster")


def sizes(settings: Settings) -> tuple[int, ...]:
    """Return the numbers of nodes."""
    if settings.quick:
        return (1000, 4000)
    if settings.on_gpu:
        return (100_000, 400_000, 1_000_000, 4_000_000, 16_000_000)
    return (100_000, 400_000, 1_000_000, 1_600_000)


def main_size(settings: Settings) -> int:
    """Return the number of nodes that has limits."""
    return 1000 if settings.quick else 4_000_000 if settings.on_gpu else 1_000_000


def run(settings: Settings) -> Iterator[Line]:
    """Yield the lines of all sizes and chains."""
    with threads(settings):
        for num_nodes in sizes(settings):
            for columns in COLUMNS:
                yield from _lines(num_nodes, columns, "clusters of 4", settings)
        for kind in OTHER_CHAINS:
            yield from _lines(main_size(settings), 64, kind, settings)


def threads(settings: Settings) -> AbstractContextManager[None]:
    """Use the number of threads that the limits are about."""
    return nullcontext() if settings.on_gpu else num_threads(THREADS)


@cache
def plan(num_nodes: int, kind: str, device: torch.device) -> ChainTensors:
    """Return a large chain on a device.

    Args:
        num_nodes: Number of nodes.
        kind: "clusters of 4", "shuffled" (the same with nodes in random order), "pairs", or
            "one cluster".
        device: The device.
    """
    rng = np.random.default_rng(0)
    size = {"pairs": 2, "one cluster": num_nodes}.get(kind, 4)
    parents, nodes = [], num_nodes
    while nodes > 1:
        parent = np.arange(nodes) // size
        parents.append(rng.permutation(parent) if kind == "shuffled" else parent)
        nodes = -(-nodes // size)
    return ChainTensors.from_chains([Chain.from_parents(parents)], device)


def _lines(num_nodes: int, columns: int, kind: str, settings: Settings) -> Iterator[Line]:
    shape = f"{num_nodes:,} x {columns}, {kind}"
    needed = 4.5 * num_nodes * columns * 4 + 100 * num_nodes  # x, copy, result, coarse; the tree
    if needed > 0.9 * free_memory(settings):
        text = f"left out: needs {needed / 1e9:.0f} GB"
        yield Line("transforms", shape, error=text, optional=True)
        return
    chain = plan(num_nodes, kind, settings.device)
    x = torch.randn(num_nodes, columns, device=settings.device)
    target, coarse = torch.empty_like(x), compress(chain, x)
    times = measure(
        {
            "copy": lambda: target.copy_(x),
            "adjoint": lambda: adjoint(chain, x),
            "forward_transform": lambda: forward_transform(chain, x),
            "compress": lambda: compress(chain, x),
            "expand": lambda: expand(chain, coarse),
        },
        settings,
    )
    limited = (num_nodes, columns, kind) == (main_size(settings), 64, "clusters of 4")
    limits = LIMITS.get(settings.device.type, {}) if limited and not settings.quick else {}
    for name in ("copy", "adjoint", "forward_transform", "compress", "expand"):
        yield Line(
            "transforms",
            f"{name}, {shape}",
            times[name].median / times["copy"].median,
            "copies",
            times[name],
            at_most=limits.get(name),
            case={"map": name, "nodes": num_nodes, "columns": columns, "chain": kind},
            error=times[name].error,
        )
