"""Collating graphs with chains into a minibatch, relative to graphs without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch_geometric.data import Batch

from haarpool.bench.layers import num_graphs, random_graph
from haarpool.bench.measure import Settings, measure
from haarpool.bench.results import Line
from haarpool.data import AddHaarChain

TITLE = "Batch.from_data_list of 50 graphs with 30 nodes; value: times plain Data"
LIMIT = 4.0


def run(settings: Settings) -> Iterator[Line]:
    """Yield the lines of plain graphs and of graphs with chains."""
    rng, transform = np.random.default_rng(0), AddHaarChain(num_levels=3, method="matching")
    plain = [random_graph(30, rng) for _ in range(num_graphs(settings))]
    with_chains = [transform(graph) for graph in plain]
    on_host = Settings(torch.device("cpu"), settings.quick)
    times = measure(
        {
            "plain Data": lambda: Batch.from_data_list(plain),
            "ChainData, 3 levels": lambda: Batch.from_data_list(with_chains),
        },
        on_host,
    )
    for name, spent in times.items():
        limit = LIMIT if name != "plain Data" and not settings.quick else None
        ratio = spent.median / times["plain Data"].median
        yield Line("collating", name, ratio, "x plain", spent, at_most=limit, error=spent.error)
