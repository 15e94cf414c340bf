"""Denoise a signal on a sensor graph: time of the chain, and error by method, measure and mode.

Takes about three minutes on a quiet core, on one thread; times are CPU times.

100,000 sensors at random places of a square are joined to the six that are nearest. The signal is a
wave with a jump; the noise has standard deviation 0.3, a mean squared error of 0.09. Coefficients
below the threshold of Donoho and Johnstone, 0.3 sqrt(2 log N), are set to zero.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree
from sklearn.metrics import mean_squared_error
from threadpoolctl import threadpool_limits

import haarpool as hp
from benchmarks.measure import BenchOptions
from benchmarks.results import Measurement
from haarpool._types import Floats

TITLE = "denoising of a signal on a sensor graph; value: seconds, mean squared error, ratio"
FILE = "denoising"
NEIGHBOURS, SIGMA = 6, 0.3


def sensors(nodes: int, seed: int = 0) -> tuple[sparse.csr_array, Floats]:
    """Return the adjacency matrix of a sensor graph and (N,) a signal on it."""
    points = np.random.default_rng(seed).random((nodes, 2))
    _, nearest = KDTree(points).query(points, NEIGHBOURS + 1)  # the first one is the node itself
    pairs = np.repeat(np.arange(nodes), NEIGHBOURS), nearest[:, 1:].ravel()
    graph = sparse.coo_array((np.ones(len(pairs[0])), pairs), shape=(nodes, nodes)).tocsr()
    wave = np.sin(4 * points[:, 0]) * np.cos(3 * points[:, 1])
    return graph.maximum(graph.T), wave + (np.linalg.norm(points - 0.5, axis=1) < 0.3)


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure each pair of method and measure."""
    with threadpool_limits(1):
        yield from _measure(2000 if options.quick else 100_000)


def _measure(nodes: int) -> Iterator[Measurement]:
    graph, signal = sensors(nodes)
    noisy = signal + SIGMA * np.random.default_rng(1).standard_normal(nodes)
    value = SIGMA * np.sqrt(2 * np.log(nodes))
    errors, times = {}, {}
    for method in ("spectral", "matching"):
        for measure in ("children", "mass"):
            name, start = f"{method}, {measure}", time.process_time()
            chain = hp.build_chain(graph, method=method, measure=measure)
            times[method] = time.process_time() - start
            yield Measurement(f"{name}: seconds of build_chain", times[method])
            c = hp.adjoint(chain, noisy)
            for mode in ("hard", "soft"):
                kept = hp.threshold(chain, c, value=value, mode=mode)
                estimate = hp.forward_transform(chain, kept)
                errors[name, mode] = mean_squared_error(signal, estimate)
                yield Measurement(f"{name}, {mode}: mean squared error", errors[name, mode])
    yield Measurement("noise: mean squared error", mean_squared_error(signal, noisy))
    ratios = {
        "error of the default chain over that of matching, mass": (
            errors["spectral, children", "hard"] / errors["matching, mass", "hard"], 3,
        ),
        "time of spectral over that of matching": (times["spectral"] / times["matching"], 20),
    }  # fmt: skip
    for name, (ratio, least) in ratios.items():
        yield Measurement(name, ratio, at_least=least)
