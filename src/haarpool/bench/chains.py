"""Building chains, which the host does on one thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from haarpool.bench.measure import Action, Settings, measure
from haarpool.bench.results import Line
from haarpool.bench.training import dataset
from haarpool.chains.coarsening import build_chain
from haarpool.chains.dataset_chains import precompute
from haarpool.chains.recipe import Recipe

TITLE = "chains of three steps, without cache, one thread; value: graphs per second"
METHODS = ("spectral", "matching")


def run(settings: Settings) -> Iterator[Line]:
    """Yield a line per method, graph by graph and for all graphs together."""
    data = dataset(settings)
    count = 10 if settings.quick else 200
    chosen = np.linspace(0, len(data) - 1, count).astype(np.int64)
    batch, _ = data.batch.take(chosen)
    graphs = list(batch)
    on_host = Settings(torch.device("cpu"), settings.quick)
    actions: dict[str, Action] = {}
    for method in METHODS:
        recipe = Recipe(num_levels=3, method=method)
        actions[f"build_chain, {method}"] = partial(_build_one_by_one, graphs, recipe)
        actions[f"precompute, {method}"] = partial(
            precompute, batch, recipe, cache=False, progress=False
        )
    with threadpool_limits(1):
        times = measure(actions, on_host)
    for name, spent in times.items():
        each = spent.divided_by(count)
        title = f"{name}, {count} graphs of {data.name}"
        case: dict[str, str | int] = {"function": name, "dataset": data.name}
        yield Line("chains", title, 1000 / each.median, "graphs/s", each, case=case,
                   note="times per graph", error=each.error)  # fmt: skip


def _build_one_by_one(graphs: Sequence[Any], recipe: Recipe) -> None:
    for graph in graphs:
        build_chain(graph, recipe)
