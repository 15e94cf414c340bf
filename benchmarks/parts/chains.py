"""Building chains, which the host does on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import Action, BenchOptions, measure
from benchmarks.parts.training import dataset
from benchmarks.results import Measurement
from haarpool.chains.coarsening import build_chain
from haarpool.chains.dataset_chains import precompute
from haarpool.chains.recipe import Recipe

TITLE = "chains of three steps, without cache, one thread; value: graphs per second"
METHODS = ("spectral", "matching")


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure each method, graph by graph and for all graphs together."""
    data = dataset(options)
    count = 10 if options.quick else 200
    chosen = np.linspace(0, len(data) - 1, count).astype(np.int64)
    batch, _ = data.batch.take(chosen)
    graphs = list(batch)
    actions: dict[str, Action] = {}
    for method in METHODS:
        recipe = Recipe(num_levels=3, method=method)
        actions[f"build_chain, {method}"] = partial(
            lambda recipe: [build_chain(graph, recipe) for graph in graphs], recipe
        )
        actions[f"precompute, {method}"] = partial(
            precompute, batch, recipe, cache=False, progress=False
        )
    with threadpool_limits(1):
        times = measure(actions, options.on_host)
    for name, spent in times.items():
        each = spent.divided_by(count)
        yield Measurement(
            f"{name}, {count} graphs of {data.name}", 1000 / each.median, "graphs/s", each,
            case={"function": name, "dataset": data.name}, note="times per graph",
        )  # fmt: skip
