"""How the datasets of the study are stored, and those that are read from HAARPOOL_DATA."""

import numpy as np
import pytest

from haarpool.errors import HaarPoolError
from helpers.files import needs_data
from helpers.study import check_splits, same
from paper.pooling import data
from paper.pooling.data import DATASETS, load, make
from paper.pooling.data.files import Dataset, both_directions, random_splits, read, save


def test_list_of_graphs_is_stored_once_and_read_back(tmp_path):
    edges = np.array([[0, 1], [1, 0]])
    graphs = [
        {"edge_index": edges, "x": np.full((2, 1), g), "y": np.array([[g], [0.5]])}
        for g in range(2000)
    ]
    path = save(Dataset(graphs, random_splits(2000, 200)), "pairs", tmp_path)
    assert path.name == "pairs.pt"
    assert path.stat().st_size < 600_000  # 2,000 files in a zip would be larger
    read_back, splits = read(path)
    check_splits(splits, 2000)
    assert read_back.columns["x"].ravel().tolist() == np.repeat(np.arange(2000), 2).tolist()
    assert read_back.edges[:, :4].tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_load_makes_a_dataset_once(tmp_path, monkeypatch):
    calls = []

    def one_split(name):
        calls.append(name)
        x = np.zeros((9, 2, 1))
        return Dataset(
            {"edge_index": np.eye(2, dtype=int), "x": x, "y": x}, random_splits(9, 2)[:1]
        )

    monkeypatch.setattr(data, "make", one_split)
    for _ in range(2):
        graphs, splits = load("power", tmp_path)
        assert len(graphs) == 9
        check_splits(splits, 9)
    assert calls == ["power"]


def test_random_splits_differ_by_seed():
    check_splits(random_splits(50, 5), 50)
    assert random_splits(50, 5, 1)[0].test.tolist() != random_splits(50, 5)[0].test.tolist()


def test_both_directions_of_edges_that_stand_twice():
    edges = both_directions(np.array([[0, 2, 1, 3], [1, 1, 0, 3]]), 4)
    assert edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_names_and_missing_data_are_explained(monkeypatch):
    with pytest.raises(HaarPoolError, match="power-regions"):
        make("no such dataset")
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    for name in ("huangpu", "peptides", "traffic-random"):
        assert name in DATASETS
        with pytest.raises(HaarPoolError, match="set HAARPOOL_DATA"):
            make(name)


@needs_data
def test_huangpu(tmp_path):
    assert same(make("huangpu"), make("huangpu"))
    graphs, splits = load("huangpu", tmp_path)
    assert (int(graphs.sizes[0]), graphs.columns["x"].shape[1]) == (5268, 37)
    assert len(graphs.classes) == 10
    check_splits(splits, 5268)
    assert [len(part) for part in splits[0]] == [526, 526, 4216]
    assert (graphs.batch.adjacency != graphs.batch.adjacency.T).nnz == 0


@needs_data
def test_peptides(tmp_path):
    pytest.importorskip("rdkit")
    made = make("peptides", number=100)
    graphs, splits = read(save(made, "peptides", tmp_path))
    assert str(graphs.task) == "multilabel"
    assert (len(graphs), graphs.targets.shape) == (100, (100, 10))
    assert len(splits) == 1
    assert sorted(np.concatenate(splits[0]).tolist()) == list(range(100))
