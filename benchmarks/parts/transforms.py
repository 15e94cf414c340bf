"""The transforms of one large graph, counted in copies of the signal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
import torch

from benchmarks.measure import BenchOptions, free_memory, measure
from benchmarks.results import Measurement
from haarpool.chains.chain import Chain
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.transform import adjoint, compress, expand, forward_transform
from haarpool.training.devices import num_threads

TITLE = "one graph, clusters of 4 numbered one after the other down to one node; value: copies of x"
COLUMNS = (16, 64, 256)
THREADS = 2  # on a processor
LIMITS = {"cuda": {"adjoint": 1.8, "compress": 1.2}, "cpu": {"adjoint": 3.0, "compress": 1.5}}
KINDS = ("clusters of 4", "shuffled", "pairs", "one cluster")


def main_size(options: BenchOptions) -> int:
    """Return the number of nodes that has limits."""
    return 1000 if options.quick else 4_000_000 if options.on_gpu else 1_000_000


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure all sizes and chains."""
    largest = [4_000_000, 16_000_000] if options.on_gpu else [1_600_000]
    sizes = [1000, 4000] if options.quick else [100_000, 400_000, 1_000_000, *largest]
    with threads(options):
        for num_nodes in sizes:
            for columns in COLUMNS:
                yield from _measure(num_nodes, columns, KINDS[0], options)
        for kind in KINDS[1:]:
            yield from _measure(main_size(options), 64, kind, options)


def threads(options: BenchOptions) -> AbstractContextManager[None]:
    """Use the number of threads that the limits are about."""
    return nullcontext() if options.on_gpu else num_threads(THREADS)


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


def _measure(
    num_nodes: int, columns: int, kind: str, options: BenchOptions
) -> Iterator[Measurement]:
    shape = f"{num_nodes:,} x {columns}, {kind}"
    needed = 4.5 * num_nodes * columns * 4 + 100 * num_nodes  # x, copy, result, coarse; the tree
    if needed > 0.9 * free_memory(options):
        yield Measurement(shape, error=f"left out: needs {needed / 1e9:.0f} GB", optional=True)
        return
    chain = plan(num_nodes, kind, options.device)
    x = torch.randn(num_nodes, columns, device=options.device)
    target, coarse = torch.empty_like(x), compress(chain, x)
    times = measure(
        {
            "copy": lambda: target.copy_(x),
            "adjoint": lambda: adjoint(chain, x),
            "forward_transform": lambda: forward_transform(chain, x),
            "compress": lambda: compress(chain, x),
            "expand": lambda: expand(chain, coarse),
        },
        options,
    )
    limited = (num_nodes, columns, kind) == (main_size(options), 64, KINDS[0])
    limits = LIMITS.get(options.device.type, {}) if limited else {}
    for name, spent in times.items():
        yield Measurement(
            f"{name}, {shape}",
            spent.median / times["copy"].median,
            "copies",
            spent,
            at_most=limits.get(name),
            case={"map": name, "nodes": num_nodes, "columns": columns, "chain": kind},
        )
