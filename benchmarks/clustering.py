"""Speed and quality of clustering, as ratios in one run; exit code 1 if a figure is missed.

    HAARPOOL_DATA=DIR python benchmarks/clustering.py [--out results/clustering.json]

DIR holds NCI1 in TU layout. One thread each. What is compared takes turns, graph by graph or round
by round, so that a busy machine slows both alike.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from statistics import median

import joblib
import numpy as np
from scipy import sparse
from sklearn.cluster import SpectralClustering
from threadpoolctl import threadpool_limits

import haarpool as hp
from figures import Figure, report, seconds, status
from haarpool.chains.clustering.matching import matching
from haarpool.chains.clustering.metis import metis
from haarpool.chains.graph_batch import GraphBatch
from haarpool.chains.workers import CHUNK_SECONDS, spread
from haarpool.datasets import read_graphs

EDGES = [1_250_000 * 2**i for i in range(4)]


def spectral() -> Iterator[Figure]:
    """Both clusterings of the authors' chain of three poolings; the third step merges all."""
    graphs = list(nci1().take(np.arange(0, 4000, 20))[0])
    build = partial(hp.build_chain, num_levels=3, sizes="paper")
    chains = [build(graph) for graph in graphs]
    ours, whole, theirs, cuts = [], [], [], []
    for turn in range(10):  # the peer is slow: a tenth of the graphs in each turn
        ours.append(seconds(lambda: [build(graph) for graph in graphs]) / len(graphs))
        whole.append(seconds(partial(hp.precompute, graphs, 3, sizes="paper", cache=False)))
        for chain in chains[turn::10]:
            theirs.append(0.0)
            for level in (0, 1):
                labels, spent = peer(chain.adjacency(level, self_loops=True))
                theirs[-1] += spent
                own = hp.step_quality(chain, level).cut
                other = hp.Chain.from_parents([labels], adjacency=chain.adjacency(level))
                cuts.append((own, hp.step_quality(other, 0).cut))
    own, other = np.mean(cuts, axis=0)
    note = f"{len(graphs)} NCI1 graphs, 2 levels, {1000 * np.mean(theirs) / 2:.1f} ms there"
    single = np.mean(theirs) / np.mean(ours)
    yield Figure("SpectralClustering over build_chain", single, least=25, note=note)
    batched = np.mean(theirs) * len(graphs) / np.mean(whole)
    yield Figure("SpectralClustering over precompute", batched, least=40, note=note)
    yield Figure(
        "mean edge cut over SpectralClustering's", own / other, most=1.05, note=f"{own:.3f}"
    )


def peer(adjacency: sparse.csr_array) -> tuple[np.ndarray, float]:
    """Labels 0, 1, ... and seconds of the clustering as the authors call it."""
    number = int(adjacency.shape[0] / 2) + 1
    if number >= adjacency.shape[0]:
        return np.zeros(adjacency.shape[0], np.int64), 0.0
    dense = adjacency.toarray()
    method = SpectralClustering(number, affinity="precomputed", n_init=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # disconnected graphs, equal rows
        start = time.perf_counter()
        labels = method.fit_predict(dense)
        spent = time.perf_counter() - start
    return np.unique(labels, return_inverse=True)[1], spent


def nci1() -> GraphBatch:
    return read_graphs("NCI1").batch


# ---------------------------------------------------------------------- a whole dataset


def dataset() -> Iterator[Figure]:
    graphs = nci1()
    work = partial(hp.precompute, graphs, 3, cache=False)
    work(n_jobs=2)  # start-up
    list(spread(eigenvectors, [(0,)] * 2, 2))
    one, two, limit = [], [], []
    for _ in range(9):
        one.append(seconds(partial(work, n_jobs=1)))
        two.append(seconds(partial(work, n_jobs=2)))
        ((_, alone),) = spread(eigenvectors, [(0,)], 2)
        limit.append(2 * alone / max(spent for _, spent in spread(eigenvectors, [(0,)] * 2, 2)))
    ratio = median(one) / median(two)
    note = f"{median(one):.2f} s for {len(graphs)} graphs, 3 levels"
    yield Figure("one worker over two, all of NCI1", ratio, least=1.7, note=note)
    note = "for information: workers that share nothing, LAPACK only"
    yield Figure("the same for two workers at their best", median(limit), note=note)
    ratios = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            cached = partial(hp.precompute, graphs, 3, cache=folder)
            ratios.append(seconds(cached) / seconds(cached))
    yield Figure("first run over a second from the cache, NCI1", median(ratios), least=20)
    with tempfile.TemporaryDirectory() as folder:
        cached = partial(hp.precompute, graphs, 3, cache=folder)
        ratio = seconds(cached) / seconds(lambda: list(cached()))
    note = "for information"
    yield Figure("the same, every Chain then made one by one", ratio, note=note)


def eigenvectors(seed: int) -> None:
    """Half a second of work that needs hardly any memory."""
    with threadpool_limits(1):
        stack = np.random.default_rng(seed).standard_normal((200, 30, 30))
        for _ in range(25):
            np.linalg.eigh(stack + stack.transpose(0, 2, 1))


def scheduling() -> Iterator[Figure]:
    """Handing out chunks, with nothing done to them, over the work in them."""
    from distributed import Client, LocalCluster

    graphs = nci1()
    whole = seconds(partial(hp.precompute, graphs, 3, cache=False))
    chunk = graphs[: int(len(graphs) * CHUNK_SECONDS / whole)]
    work = seconds(partial(hp.precompute, chunk, 3, cache=False))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        for backend in ("loky", "dask"):
            with joblib.parallel_config(backend=backend, n_jobs=2):
                list(spread(len, [(chunk,)] * 4, None))
                spent = seconds(lambda: list(spread(len, [(chunk,)] * 40, None)))
            name = f"handing out a chunk over the work in it, {backend}, 2 workers"
            yield Figure(name, spent / 40 / (work / 2), most=0.05, note=f"{work:.2f} s of work")


# ---------------------------------------------------------------------- one large graph


def uniform(size: int, edges: int) -> sparse.csr_array:
    rng = np.random.default_rng(size)
    u, v = rng.integers(0, size, (2, edges))
    graph = sparse.csr_array((np.ones(edges), (u, v)), shape=(size, size))
    return hp.as_adjacency(graph + graph.T)


def large() -> Iterator[Figure]:
    graphs = [uniform(edges // 5, edges) for edges in EDGES]
    times = [[] for _ in graphs]
    for _ in range(9):
        for graph, own in zip(graphs, times, strict=True):
            own.append(seconds(partial(matching, graph, graph.shape[0] // 2, seed=0)))
    best = [min(own) for own in times]
    for edges, (one, two) in zip(EDGES[1:], pairwise(best), strict=True):
        yield Figure(f"matching, {edges:,} over {edges // 2:,} edges", two / one, 1.7, 2.4)
    million = graphs[2]
    del graphs
    spent = seconds(partial(metis, million, million.shape[0] // 2, seed=0))
    note = f"1,000,000 nodes, 5,000,000 edges; matching {best[2]:.1f} s, metis {spent:.0f} s"
    yield Figure("metis over matching", spent / best[2], least=10, note=note)
    before = status("VmRSS")
    for method in ("matching", "metis"):
        spent = seconds(partial(hp.build_chain, million, 3, method=method, top=None))
        per = (status("VmHWM") - before) / (million.shape[0] + million.nnz)
        note = f"3 levels in {spent:.0f} s; the graph itself has 12 per entry"
        yield Figure(f"peak bytes per node and entry, build_chain, {method}", per, note=note)


def measured() -> Iterator[Figure]:
    yield from spectral()
    yield from dataset()
    yield from scheduling()
    yield from large()


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(report(__doc__, measured(), "results/clustering.json", cores=os.cpu_count()))
