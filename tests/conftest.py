"""Settings of all tests, and the fixtures that many of them use."""

import itertools
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse

collect_ignore = ["helpers"]

# `make check` tries few random examples, `make test` many. In CI they are the same in every run.
_SHARED = {"deadline": None, "derandomize": bool(os.environ.get("CI"))}
settings.register_profile("quick", max_examples=10, **_SHARED)
settings.register_profile("full", max_examples=60, **_SHARED)
settings.load_profile("full")


def pytest_runtest_setup(item):
    """Skip what this machine cannot run; random numbers do not depend on the tests before."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    if item.get_closest_marker("browser") and shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no GPU")


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty working directory with its own cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def without_data(workplace, monkeypatch):
    """The same, without any dataset but those in installed packages."""
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
        adjacency = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (n, n))
        cuts = np.searchsorted(graph, np.arange(graph[-1] + 2))
        return [adjacency[a:b, a:b] for a, b in itertools.pairwise(cuts)]

    return read
