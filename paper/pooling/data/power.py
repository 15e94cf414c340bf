"""AC power flow: the voltage at every bus of a grid follows from the loads of all buses.

What is predicted: angle (degrees, less its mean over the buses) and magnitude (per unit, less its
mean over the scenarios) of the voltage at each bus, in each of 750 scenarios, which are signals on
one graph. Edges are lines and transformers, weights the absolute admittances. A bus knows the
change of its load, its mean load, its share of the generation, and the sum of its admittances.
Generators share the difference between loads and generation ("distributed slack").

Data: `case2869pegase` (part of the European grid; Fliscounakis et al., 2013; Josz et al., 2016) and
`case2848rte` (the French grid; Josz et al., 2016), as pandapower (BSD 3-clause) has them, both
published with MATPOWER under CC BY 4.0. The loads are drawn here: up to 20 % more or less than
in the case, each for itself, or by region.

Split: 600 / 75 / 75 scenarios at random, five times.

What needs no graph network: a DC solve explains 99.9 % of how the angles change, so the task tests
reach, no more. And most of an angle is where the bus is: its mean over the training scenarios alone
has a test R² of 0.984 (`case2869pegase`), 0.992 (`case2848rte`), or 0.551 (by region). In the
datasets "-change", the angle is less its mean over the scenarios, too, and this R² is 0.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from haarpool._types import Floats, Ints
from haarpool.errors import import_extra
from paper.pooling.data.files import Dataset, random_splits

LOCAL = 0.1  # share of a factor that each load has for itself; the rest is that of its region


def make(
    case: str = "case2869pegase",
    regions: int = 0,
    change: bool = False,
    number: int = 750,
    spread: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Solve scenarios of a grid.

    Args:
        case: A network of pandapower.
        regions: Number of regions whose loads change together; 0 for independent loads.
        change: Whether the angle is less its mean over the scenarios, as the magnitude is.
        number: Number of scenarios; a tenth each is for validation and test.
        spread: Largest change of a load, as a share of it.
        seed: Seed of the regions, the loads and the splits.
    """
    grid = power_grid()
    factors = grid.independent
    if regions:
        net = grid.solved(case)
        bus = net.bus.index.get_indexer(net.load.bus)
        edges, _ = grid.admittances(net)
        factors = partial(by_region, find_regions(edges, len(net.bus), regions, seed)[bus])
    arrays = grid.scenarios(case, number, spread, seed, factors)
    if change:
        arrays["y"] -= arrays["y"].mean(0)
    return Dataset(arrays, random_splits(number, number // 10, seed))


def power_grid() -> Any:
    """Return the functions of `examples/power_grid.py`, which needs pandapower."""
    import_extra("pandapower", "power")
    return import_extra("examples.power_grid", "power")


def find_regions(edges: Ints, size: int, number: int, seed: int) -> Ints:
    """Return (size,) the region of each node: that of the nearest of `number` random centres.

    Args:
        edges: (2, E) Edges in both directions.
        size: Number of nodes.
        number: Number of regions.
        seed: Seed of the centres.
    """
    centres = np.random.default_rng(seed).choice(size, number, replace=False)
    graph = sparse.csr_array((np.ones(edges.shape[1]), edges), (size, size))
    nearest: Ints = dijkstra(graph, indices=centres, unweighted=True).argmin(0)
    return nearest


def by_region(region: Ints, rng: np.random.Generator, spread: float, loads: int) -> Floats:
    """Draw (loads,) factors of loads that change with their (loads,) regions."""
    common = rng.uniform(-spread, spread, region.max() + 1)[region]
    factors: Floats = 1 + (1 - LOCAL) * common + LOCAL * rng.uniform(-spread, spread, loads)
    return factors
