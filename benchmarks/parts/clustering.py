"""Speed and quality of clustering, on NCI1 and on large random graphs.

Everything runs on one thread. The methods of a comparison run in turns, and the shortest time of
each counts, because other work on the machine slows some turns.
Work in one process is measured in CPU time: otherwise waiting for a core would count, and it is
more likely in a long call than in a short one.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from statistics import median

import joblib
import numpy as np
from scipy import sparse
from sklearn.cluster import SpectralClustering
from threadpoolctl import threadpool_limits

import haarpool as hp
from benchmarks.measure import BenchOptions, growth_of_process, seconds
from benchmarks.results import Measurement
from haarpool.chains.clustering.matching import matching
from haarpool.chains.clustering.metis import metis
from haarpool.chains.graph_batch import GraphBatch
from haarpool.chains.workers import CHUNK_SECONDS, spread
from haarpool.datasets import read_graphs

TITLE = "clustering beside other libraries, one thread; value: ratio of times"
FILE = "clustering"
EDGES = [1_250_000 * 2**i for i in range(4)]

cpu_seconds = partial(seconds, clock=time.process_time)


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure everything; there are no tiny sizes."""
    with threadpool_limits(1):
        yield from spectral()
        yield from dataset()
        yield from scheduling()
        yield from large()


def spectral() -> Iterator[Measurement]:
    """Compare `spectral` with scikit-learn's on the first two steps of the authors' chains."""
    graphs = list(nci1().take(np.arange(0, 4000, 20))[0])
    build = partial(hp.build_chain, num_levels=3, sizes="paper")
    chains = [build(graph) for graph in graphs]
    levels = [(chain, level) for chain in chains for level in (0, 1)]
    matrices = [chain.adjacency(level, self_loops=True) for chain, level in levels]
    build_times, precompute_times, peer_times = [], [], []
    for _ in range(5):
        build_times.append([cpu_seconds(partial(build, graph)) for graph in graphs])
        precompute_times.append(
            cpu_seconds(partial(hp.precompute, graphs, 3, sizes="paper", cache=False))
        )
        labels, times = zip(*map(peer, matrices), strict=True)
        peer_times.append(times)
    peer_time, build_time = (np.min(t, axis=0).sum() for t in (peer_times, build_times))
    cuts = []
    for (chain, level), ids in zip(levels, labels, strict=True):
        peer_chain = hp.Chain.from_parents([ids], adjacency=chain.adjacency(level))
        cuts.append((hp.step_quality(chain, level).cut, hp.step_quality(peer_chain, 0).cut))
    cut, peer_cut = np.mean(cuts, axis=0)
    note = f"{len(graphs)} NCI1 graphs, 2 levels, peer {1000 * peer_time / len(levels):.1f} ms"
    single = peer_time / build_time
    yield Measurement("SpectralClustering over build_chain", single, at_least=25, note=note)
    batched = peer_time / min(precompute_times)
    yield Measurement("SpectralClustering over precompute", batched, at_least=40, note=note)
    yield Measurement(
        "mean edge cut over SpectralClustering's", cut / peer_cut, at_most=1.05, note=f"{cut:.3f}"
    )


def peer(adjacency: sparse.csr_array) -> tuple[np.ndarray, float]:
    """Cluster as the authors do; return cluster ids and seconds."""
    num_clusters = int(adjacency.shape[0] / 2) + 1
    if num_clusters >= adjacency.shape[0]:
        return np.zeros(adjacency.shape[0], np.int64), 0.0
    dense = adjacency.toarray()
    method = SpectralClustering(num_clusters, affinity="precomputed", n_init=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # disconnected graphs, equal rows
        start = time.process_time()
        labels = method.fit_predict(dense)
        spent = time.process_time() - start
    return np.unique(labels, return_inverse=True)[1], spent


def nci1() -> GraphBatch:
    """Read NCI1."""
    return read_graphs("NCI1").batch


# ---------------------------------------------------------------------- a whole dataset


def dataset() -> Iterator[Measurement]:
    """Measure `precompute` on all of NCI1 with two workers and with a cache."""
    graphs = nci1()
    work = partial(hp.precompute, graphs, 3, cache=False)
    work(n_jobs=2)  # start-up
    rows = [
        [t for n in (1, 2) for t in (seconds(partial(work, n_jobs=n)), bare_processes(n))]
        for _ in range(5)
    ]
    one, bare_one, two, bare_two = np.min(rows, axis=0)
    limit = bare_one / bare_two
    note = "for information: numpy.linalg.eigh of the same graphs, one process over two"
    yield Measurement("the same for bare processes", limit, note=note)
    note = f"{one:.2f} s for {len(graphs)} graphs, 3 levels; 1.7, or as bare processes"
    least = min(1.7, limit)
    yield Measurement("one worker over two, all of NCI1", one / two, at_least=least, note=note)
    ratios = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            cached = partial(hp.precompute, graphs, 3, cache=folder)
            ratios.append(seconds(cached) / seconds(cached))
    yield Measurement("first run over a second from the cache, NCI1", median(ratios), at_least=20)
    with tempfile.TemporaryDirectory() as folder:
        cached = partial(hp.precompute, graphs, 3, cache=folder)
        ratio = seconds(cached) / seconds(lambda: list(cached()))
    note = "for information"
    yield Measurement("the same, with a Chain object for every graph", ratio, note=note)


def bare_processes(number: int) -> float:
    """Return the time in which new processes compute the eigenvectors of NCI1, each of a share."""
    with ProcessPoolExecutor(number, get_context("spawn")) as pool:
        for _ in range(2):  # all processes have started the second time
            times = list(pool.map(eigenvectors, range(number), [number] * number))
    return max(times)


def eigenvectors(first: int, step: int) -> float:
    """Compute eigenvectors of every `step`-th graph of NCI1, as often as a chain needs them."""
    with threadpool_limits(1):
        matrices = [graph.toarray() for graph in list(nci1())[first::step]]
        return seconds(lambda: [np.linalg.eigh(matrix) for _ in range(3) for matrix in matrices])


def scheduling() -> Iterator[Measurement]:
    """Measure the time to send a chunk to a worker, relative to the work in it."""
    from distributed import Client, LocalCluster

    graphs = nci1()
    total = seconds(partial(hp.precompute, graphs, 3, cache=False))
    chunk = graphs[: int(len(graphs) * CHUNK_SECONDS / total)]
    work = seconds(partial(hp.precompute, chunk, 3, cache=False))
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),  # type: ignore[no-untyped-call]
    ):
        for backend in ("loky", "dask"):
            with joblib.parallel_config(backend=backend, n_jobs=2):
                list(spread(len, [(chunk,)] * 4, None))
                spent = seconds(lambda: list(spread(len, [(chunk,)] * 40, None)))
            name = f"sending a chunk over the work in it, {backend}, 2 workers"
            yield Measurement(
                name, spent / 40 / (work / 2), at_most=0.05, note=f"{work:.2f} s of work"
            )


# ---------------------------------------------------------------------- one large graph


def uniform(size: int, edges: int) -> sparse.csr_array:
    """Build a random graph with uniformly chosen edges."""
    rng = np.random.default_rng(size)
    u, v = rng.integers(0, size, (2, edges))
    graph = sparse.csr_array((np.ones(edges), (u, v)), shape=(size, size))
    return hp.as_adjacency(graph + graph.T)


def large() -> Iterator[Measurement]:
    """Measure `matching` and `metis` on graphs of up to 10,000,000 edges."""
    graphs = [uniform(edges // 5, edges) for edges in EDGES]
    times: list[list[float]] = [[] for _ in graphs]
    for _ in range(9):
        for graph, graph_times in zip(graphs, times, strict=True):
            graph_times.append(cpu_seconds(partial(matching, graph, graph.shape[0] // 2, seed=0)))
    best = [min(graph_times) for graph_times in times]
    for edges, (one, two) in zip(EDGES[1:], pairwise(best), strict=True):
        yield Measurement(
            f"matching, {edges:,} over {edges // 2:,} edges", two / one, at_least=1.7, at_most=2.4
        )
    million = graphs[2]
    del graphs
    spent = cpu_seconds(partial(metis, million, million.shape[0] // 2, seed=0))
    note = f"1,000,000 nodes, 5,000,000 edges; matching {best[2]:.1f} s, metis {spent:.0f} s"
    yield Measurement("metis over matching", spent / best[2], at_least=10, note=note)
    for method in ("matching", "metis"):
        start = time.perf_counter()
        peak = growth_of_process(partial(hp.build_chain, million, 3, method=method, top=None))
        spent = time.perf_counter() - start
        yield Measurement(
            f"peak bytes per node and entry, build_chain, {method}",
            peak / (million.shape[0] + million.nnz),
            note=f"3 levels in {spent:.0f} s; the graph itself takes 12 per entry",
        )
