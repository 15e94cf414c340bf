import itertools
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse

collect_ignore = ["helpers"]  # holds no tests, and a script for another environment (`make wheel`)

settings.register_profile("default", deadline=None, max_examples=60)
# In CI the examples are the same in every run; locally new ones are tried each time.
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder to work in, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def without_data(workplace, monkeypatch):
    """The same, where there is no data but what an installed package brings."""
    monkeypatch.setenv("HAARPOOL_DATA", "")


@pytest.fixture(scope="session")
def tu_graphs():
    """`tu_graphs(name)`: adjacency matrices of a dataset in TU layout under HAARPOOL_DATA."""
    root = os.environ.get("HAARPOOL_DATA")
    if not root:
        pytest.skip("HAARPOOL_DATA is not set: no real datasets here")

    @cache
    def read(name: str) -> list[sparse.csr_array]:
        raw = Path(root) / name / "raw"
        edges = np.loadtxt(raw / f"{name}_A.txt", delimiter=",", dtype=np.int64) - 1
        graph = np.loadtxt(raw / f"{name}_graph_indicator.txt", dtype=np.int64) - 1
        n = len(graph)
        whole = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
        cuts = np.searchsorted(graph, np.arange(graph[-1] + 2))
        return [whole[a:b, a:b] for a, b in itertools.pairwise(cuts)]

    return read
