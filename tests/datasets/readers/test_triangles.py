"""Triangles: the published procedure, its statistics, its cache."""

import os

import networkx as nx
import numpy as np
import pytest

from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.readers.triangles import generate as triangles
from haarpool.datasets.summary import summary
from haarpool.errors import HaarPoolWarning
from helpers.errors import error_with
from helpers.files import needs_data

REAL = os.environ.get("HAARPOOL_DATA")

# Part: graphs (from, to), mean, fewest and most nodes, mean number of edges, as published.
PARTS = {
    "train": (0, 30_000, 15.58, 4, 25, 24.56),
    "validation": (30_000, 35_000, 15.54, 4, 25, 24.52),
    "test, original sizes": (35_000, 40_000, 15.61, 4, 25, 24.69),
    "test, large": (40_000, 45_000, 63.08, 26, 100, 98.15),
}


@pytest.fixture(scope="module")
def drawn():
    return triangles.generate(0, progress=False)


@pytest.fixture
def graphs(drawn, monkeypatch, tmp_path):
    """The dataset as the command reads it, without drawing it once more."""
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path))
    monkeypatch.setattr(triangles, "generate", lambda *_, **__: drawn)
    return read_graphs("triangles")


@pytest.fixture
def small(monkeypatch):
    """The same procedure with a hundredth of the graphs."""
    monkeypatch.setattr(triangles, "USUAL", triangles.GraphSizes(4, 25, 40))
    monkeypatch.setattr(triangles, "LARGE", triangles.GraphSizes(26, 100, 5))
    monkeypatch.setattr(triangles, "SPLIT", (30, 5, 5))


@pytest.mark.slow
def test_classes_are_numbers_of_triangles(graphs):
    assert graphs.classes == tuple(str(c) for c in range(1, 11))
    for g in np.random.default_rng(0).choice(45_000, 300, replace=False):
        graph = nx.from_scipy_sparse_array(graphs.batch[g])
        assert sum(nx.triangles(graph).values()) // 3 == graphs.targets[g] + 1
        assert nx.number_of_selfloops(graph) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_parts_are_like_the_published_ones(name, graphs):
    first, last, nodes, fewest, most, edges = PARTS[name]
    sizes, counts = graphs.sizes[first:last], np.diff(graphs.edge_start)[first:last] / 2
    assert fewest <= sizes.min() <= fewest + 1  # there are only 19 different graphs of 4 nodes
    assert sizes.max() == most
    # Two samples of n graphs with the standard deviation s differ in their means by more than
    # 4 s sqrt(2 / n) once in 16,000 times. The table rounds to 0.005.
    for values, mean in ((sizes, nodes), (counts, edges)):
        allowed = 4 * values.std() * np.sqrt(2 / len(values)) + 0.005
        assert abs(values.mean() - mean) <= allowed
    targets = graphs.targets[first:last]
    assert np.bincount(targets).tolist() == [len(targets) // 10] * 10
    assert (np.diff(targets) >= 0).all() == (name != "test, large")


@pytest.mark.slow
def test_numbers_of_edges(drawn):
    possible = drawn.sizes * (drawn.sizes - 1) // 2
    assert (drawn.counts >= np.minimum(drawn.sizes, possible)).all()
    assert (drawn.counts < 2 * drawn.sizes).all()
    assert (drawn.counts <= possible).all()
    for first, last in ((0, 40_000), (40_000, 45_000)):
        ends = np.cumsum(drawn.counts)
        keys = {
            (drawn.sizes[g], drawn.pairs[ends[g] - drawn.counts[g] : ends[g]].tobytes())
            for g in range(first, last)
        }
        assert len(keys) == last - first  # all adjacency matrices differ


def test_every_pair_of_nodes_is_equally_likely():
    """Uniform graphs: of n = 6 nodes each of the 15 pairs is an edge equally often."""
    rng = np.random.default_rng(1)
    draws = triangles._draw_blocks(triangles.GraphSizes(6, 6, 1), rng)
    block = next(draws)
    often = np.bincount(block.pairs, minlength=15) / len(block.sizes)
    share = block.counts.mean() / 15
    assert np.abs(often - share).max() < 5 * np.sqrt(share * (1 - share) / len(block.sizes))


@pytest.mark.slow
def test_split_features_and_edges(graphs):
    assert {part: len(some) for part, some in graphs.split.items()} == {
        "train": 30_000, "validation": 5_000, "test": 10_000,
    }  # fmt: skip
    assert graphs.columns == {}
    encoding = Encoding.fit(graphs)
    assert [part.kind for part in encoding.nodes] == ["degree"]
    assert encoding.real_nodes == ()
    assert encoding.width == summary(graphs)["largest degree"] + 1
    some = graphs.take(np.arange(40_000, 40_010)).batch.adjacency
    assert abs(some - some.T).nnz == 0


def test_a_seed_determines_the_graphs(small):
    one, same, other = (triangles.generate(seed, progress=False) for seed in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one.sizes, other.sizes)
    with error_with("seed in 0..2147483647", "-1"):
        triangles.read_triangles(-1, None, False)


@pytest.mark.slow
def test_graphs_are_generated_once(small, monkeypatch, tmp_path):
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path))
    monkeypatch.setattr(triangles, "published_split", lambda: None)
    first = read_graphs("Triangles", seed=3)
    (file,) = (tmp_path / "datasets").iterdir()
    whole = file.read_bytes()
    with monkeypatch.context() as never:
        never.setattr(triangles, "generate", None)
        assert read_graphs("triangles", seed=3).digest() == first.digest()
    file.write_bytes(whole[:1000])
    assert read_graphs("triangles", seed=3).digest() == first.digest()
    assert len(file.read_bytes()) == len(whole)
    np.savez(file, sizes=np.ones(3))  # a file of something else
    assert read_graphs("triangles", seed=3).digest() == first.digest()
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "file"))
    with pytest.warns(HaarPoolWarning, match="triangles dataset could not be cached"):
        assert read_graphs("triangles", seed=3).digest() == first.digest()


@pytest.mark.slow
def test_numbers_as_values(graphs):
    values = read_graphs("triangles", task="regression")
    assert values.target_names == ("triangles",)
    assert values.targets[:, 0].tolist() == (graphs.targets + 1).tolist()


@pytest.mark.slow
@needs_data
def test_published_files_come_first():
    graphs = read_graphs("triangles", REAL)
    found = summary(graphs)
    assert (found["total nodes"], found["total edges"]) == (938_438, 1_473_512)
    assert (found["isolated nodes"], found["disconnected graphs"]) == (34_870, 19_096)
    assert set(found["classes"].values()) == {4500}
    assert graphs.columns == {}  # never the triangles of each node
    assert len(graphs.split["test"]) == 10_000
    assert Encoding.fit(graphs).width == 15
