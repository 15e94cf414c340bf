"""Denoise a signal on a sensor graph: time of the chain, and error by method, measure and mode.

    python benchmarks/denoising.py [--out results/denoising.json]

The exit code is 1 if a result is outside its limits. Takes about three minutes on a quiet core, on
one thread; times are CPU times.

100,000 sensors at random places of a square are joined to the six that are nearest. The signal is a
wave with a jump; the noise has standard deviation 0.3, a mean squared error of 0.09. Coefficients
below the threshold of Donoho and Johnstone, 0.3 sqrt(2 log N), are set to zero.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree
from threadpoolctl import threadpool_limits

import haarpool as hp
from common import Result, report
from haarpool._types import Floats

NODES, NEIGHBOURS, SIGMA = 100_000, 6, 0.3
OUT = Path(__file__).resolve().parents[1] / "results" / "denoising.json"


def sensors(nodes: int, seed: int = 0) -> tuple[sparse.csr_array, Floats]:
    """Return the adjacency matrix of a sensor graph and (N,) a signal on it."""
    points = np.random.default_rng(seed).random((nodes, 2))
    _, nearest = KDTree(points).query(points, NEIGHBOURS + 1)  # the first one is the node itself
    pairs = np.repeat(np.arange(nodes), NEIGHBOURS), nearest[:, 1:].ravel()
    graph = sparse.coo_array((np.ones(len(pairs[0])), pairs), shape=(nodes, nodes)).tocsr()
    wave = np.sin(4 * points[:, 0]) * np.cos(3 * points[:, 1])
    return graph.maximum(graph.T), wave + (np.linalg.norm(points - 0.5, axis=1) < 0.3)


def mean_square(x: Floats) -> float:
    """Return the mean of the squares."""
    return float(np.mean(x**2))


def measured(nodes: int = NODES) -> Iterator[Result]:
    """Measure each pair of method and measure."""
    graph, signal = sensors(nodes)
    noisy = signal + SIGMA * np.random.default_rng(1).standard_normal(nodes)
    value = SIGMA * np.sqrt(2 * np.log(nodes))
    errors, times = {}, {}
    for method in ("spectral", "matching"):
        for measure in ("children", "mass"):
            name, start = f"{method}, {measure}", time.process_time()
            chain = hp.build_chain(graph, method=method, measure=measure)
            times[method] = time.process_time() - start
            yield Result(f"{name}: seconds of build_chain", times[method])
            c = hp.adjoint(chain, noisy)
            for mode in ("hard", "soft"):
                kept = hp.threshold(chain, c, value=value, mode=mode)
                estimate = hp.forward_transform(chain, kept)
                errors[name, mode] = mean_square(estimate - signal)
                yield Result(f"{name}, {mode}: mean squared error", errors[name, mode])
    yield Result("noise: mean squared error", mean_square(noisy - signal))
    default, best = errors["spectral, children", "hard"], errors["matching, mass", "hard"]
    yield Result("error of the default chain over that of matching, mass", default / best, 3)
    yield Result(
        "time of spectral over that of matching", times["spectral"] / times["matching"], 20
    )


def main() -> int:
    """Measure and report."""
    with threadpool_limits(1):
        return report(__doc__ or "", measured(), str(OUT), cores=os.cpu_count())


if __name__ == "__main__":
    sys.exit(main())
