"""Graphs with chains in files and PyG datasets."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.nn import HaarPooling
from helpers.chain_data import CARRIED, merge_all, same_data
from helpers.tolerances import close


@pytest.mark.parametrize("data", [CARRIED[4], Batch.from_data_list(CARRIED)], ids=["data", "batch"])
def test_a_dict_of_tensors_loads_with_weights_only(tmp_path, data):
    torch.save(data.to_dict(), tmp_path / "dict.pt")
    loaded = torch.load(tmp_path / "dict.pt", weights_only=True)
    assert loaded.keys() == data.to_dict().keys()
    assert all(torch.equal(loaded[key], data[key]) for key in loaded)


def test_a_graph_loads_with_weights_only(tmp_path):
    torch.save(CARRIED[4], tmp_path / "graph.pt")
    assert same_data(torch.load(tmp_path / "graph.pt", weights_only=True), CARRIED[4])


def test_graphs_of_a_loaded_list_still_batch(tmp_path):
    torch.save(CARRIED, tmp_path / "graphs.pt")
    loaded = torch.load(tmp_path / "graphs.pt", weights_only=True)
    assert all(map(same_data, loaded, CARRIED))
    assert same_data(Batch.from_data_list(loaded), Batch.from_data_list(CARRIED))


def test_a_batch_loads_and_separates(tmp_path):
    """Pickled as a whole: the class of a batch is made on the fly, which weights_only refuses for
    every batch of PyG."""
    batch = Batch.from_data_list(CARRIED)
    torch.save(batch, tmp_path / "batch.pt")
    loaded = torch.load(tmp_path / "batch.pt", weights_only=False)
    assert same_data(loaded, batch)
    assert all(map(same_data, loaded.to_data_list(), CARRIED))


class Mixture(InMemoryDataset):
    def __init__(self, root):
        super().__init__(root)
        self.load(self.processed_paths[0], data_cls=ChainData)

    processed_file_names = "mixture.pt"

    def process(self):
        self.save(CARRIED, self.processed_paths[0])


def test_in_memory_dataset(tmp_path):
    for dataset in (Mixture(tmp_path), Mixture(tmp_path)):  # made, then read
        assert all(map(same_data, dataset, CARRIED))
        assert same_data(dataset[[4, 1]][0], CARRIED[4])
        (batch,) = DataLoader(dataset, batch_size=6)
        assert same_data(batch, Batch.from_data_list(CARRIED))


@pytest.fixture
def mutag_root(tmp_path):
    """A folder with MUTAG as it is downloaded, to be processed there."""
    root = os.environ.get("HAARPOOL_DATA")
    if not root:
        pytest.skip("HAARPOOL_DATA is not set: no real datasets here")
    shutil.copytree(Path(root) / "MUTAG" / "raw", tmp_path / "MUTAG" / "raw")
    return tmp_path


@pytest.mark.slow
def test_chains_of_a_dataset_are_built_once(mutag_root, monkeypatch):
    def dataset():
        return TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(3, method="matching"))

    first = list(dataset())

    def again(self):
        raise AssertionError("processed a second time")

    monkeypatch.setattr(TUDataset, "process", again)
    # Any warning is an error here: of pickled code, or of a transform that looks like another.
    second = dataset()
    assert len(second) == 188
    assert all(map(same_data, first, second))
    for batch in DataLoader(second, batch_size=64):
        plan = hp.TransformPlan.from_chains(
            [hp.build_chain(data, 3, method="matching") for data in batch.to_data_list()]
        )
        assert close(HaarPooling(0)(batch.x, batch).x, hp.compress(plan, batch.x), torch.float32)


def test_another_transform_is_noticed(mutag_root):
    """By its repr: PyG warns that the processed files are those of another."""
    TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(chain=merge_all))
    TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(chain=merge_all))
    with pytest.warns(UserWarning, match="pre_transform"):
        TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(2))
