"""Collating graphs with chains into a minibatch, relative to graphs without."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from torch_geometric.data import Batch

from benchmarks.layers import num_graphs, random_graph
from benchmarks.measure import BenchOptions, measure
from benchmarks.results import Measurement
from haarpool.data import AddHaarChain

TITLE = "Batch.from_data_list of 50 graphs with 30 nodes; value: times plain Data"
LIMITS = {"plain Data": None, "ChainData, 3 levels": 4.0}


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure plain graphs and graphs with chains."""
    rng, transform = np.random.default_rng(0), AddHaarChain(num_levels=3, method="matching")
    plain = [random_graph(30, rng) for _ in range(num_graphs(options))]
    both = zip(LIMITS, (plain, [transform(graph) for graph in plain]), strict=True)
    actions = {name: partial(Batch.from_data_list, graphs) for name, graphs in both}
    times = measure(actions, options.on_host)
    for name, spent in times.items():
        ratio = spent.median / times["plain Data"].median
        yield Measurement(name, ratio, "x plain", spent, at_most=LIMITS[name])
