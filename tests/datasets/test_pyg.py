"""Datasets and lists of PyTorch Geometric."""

import os
import pickle
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Constant

from haarpool.datasets import as_graphs, read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.pyg import GraphDataset, load_dataset
from haarpool.datasets.readers.data_list.convert import from_data_list
from helpers.errors import error_with
from helpers.files import REAL, needs_data, write_tiny_tu
from helpers.graphs import two_nodes

EDGE = torch.tensor([[0, 1], [1, 0]])


# ------------------------------------------------------------------ lists


def test_everything_in_a_list():
    graphs = from_data_list(
        [
            Data(x=torch.ones(3, 2), edge_index=EDGE, edge_weight=torch.tensor([2.0, 2.0]),
                 edge_attr=torch.tensor([1.0, 1.0]), y=torch.tensor([5])),
            Data(x=torch.zeros(2, 2), edge_index=EDGE, edge_weight=torch.tensor([3.0, 3.0]),
                 edge_attr=torch.tensor([4.0, 4.0]), y=torch.tensor(-1)),
        ]
    )  # fmt: skip
    assert graphs.start.tolist() == [0, 3, 5]
    assert graphs.edges.tolist() == [[0, 1, 3, 4], [1, 0, 4, 3]]
    assert graphs.columns["x"].tolist() == [[1, 1]] * 3 + [[0, 0]] * 2
    assert graphs.edge_weight.tolist() == [2, 2, 3, 3]
    assert graphs.edge_columns["attributes"].tolist() == [[1], [1], [4], [4]]
    assert (graphs.task, graphs.classes) == ("classification", ("-1", "5"))
    assert graphs.targets.tolist() == [1, 0]


def test_positions_in_a_list():
    def one(**values):
        return Data(edge_index=EDGE, num_nodes=2, **values)

    flat = [one(pos=torch.tensor([[0.0, g], [1.0, g]])) for g in range(2)]
    graphs = from_data_list(flat)
    assert graphs.positions(1).tolist() == [[0, 1], [1, 1]]
    assert graphs.take([1]).positions(0).tolist() == [[0, 1], [1, 1]]
    solid = from_data_list([one(pos=torch.zeros(2, 3))] * 2)
    assert solid.columns["pos"].shape == (4, 3)
    assert solid.positions(0) is None
    # Nobody asked for them, so that something else is no error.
    for other in (one(), one(pos=torch.zeros(2, 3)), one(pos=torch.zeros(1, 2)), one(pos="here")):
        mixed = from_data_list([flat[0], other])
        assert mixed.columns == {}
        assert mixed.positions(0) is None
    unknown = from_data_list([flat[0], one(pos=torch.tensor([[0.0, float("nan")], [0, 0]]))])
    assert unknown.positions(1) is None
    assert unknown.positions(0) is not None


def test_labels_of_a_list():
    bare = from_data_list([two_nodes(), two_nodes(3)])
    assert bare.task is bare.targets is None
    assert bare.columns == {}
    values = from_data_list(
        [two_nodes(y=torch.tensor([[1.0, 2.0]])), two_nodes(), two_nodes(y=torch.ones(2))]
    )
    np.testing.assert_array_equal(values.targets, [[1, 2], [np.nan, np.nan], [1, 1]])
    assert values.target_names == ("y0", "y1")
    assert values.is_labelled.tolist() == [True, False, True]
    single = [two_nodes(y=1.5), two_nodes(y=torch.tensor([float("nan")]))]
    assert from_data_list(single).target_names == ("y",)
    some = from_data_list([two_nodes(y=3), two_nodes(), two_nodes(y=torch.tensor(True))])
    assert (some.classes, some.targets.tolist()) == (("1", "3"), [1, -1, 0])
    assert from_data_list([two_nodes(y=3)], task="regression").targets.tolist() == [[3]]
    floats = [two_nodes(y=2.0), two_nodes(y=torch.tensor([float("nan")]))]
    assert from_data_list(floats, task="classification").targets.tolist() == [0, -1]


WRONG = {
    "no graphs": ([], "at least one graph", "an empty list"),
    "no nodes": ([two_nodes(), Data(num_nodes=0)], "at least one node", "in graph 1"),
    "no such node": ([two_nodes(), two_nodes(1)], "node ids in 0..0", "in graph 1"),
    "x in some": (
        [two_nodes(x=torch.ones(2, 1)), two_nodes()],
        "x in all graphs or in none",
        "in graph 1",
    ),
    "x of two widths": (
        [two_nodes(x=torch.ones(2, 1)), two_nodes(x=torch.ones(2, 3))],
        "x of shape (2, 1)",
        "in graph 1",
    ),
    "x of other nodes": ([two_nodes(x=torch.ones(3, 1))], "x of shape (2, 1)", "in graph 0"),
    "edges": ([two_nodes(edge_attr=torch.ones(3, 1))], "edge_attr of shape (2, 1)", "in graph 0"),
    "weights in some": (
        [two_nodes(edge_weight=torch.ones(2)), two_nodes()],
        "edge_weight in all graphs or",
        "in graph 1",
    ),
    "numbers of y": (
        [two_nodes(y=torch.ones(1)), two_nodes(y=torch.ones(2))],
        "y with 1",
        "2, dtype float32 in graph 1",
    ),
    "kinds of y": ([two_nodes(y=1), two_nodes(y=0.5)], "y with 1 of whole numbers", "in graph 1"),
    "many classes": (
        [two_nodes(y=torch.tensor([1, 2]))] * 2,
        "one whole number",
        'task="regression"',
    ),
    "text": ([two_nodes(y="good")], "y with 1", "in graph 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_graph(name):
    graphs, *parts = WRONG[name]
    with error_with(*parts):
        from_data_list(graphs)


def test_fractions_are_no_classes():
    with error_with("one whole number", "[0.5] in graph 1"):
        from_data_list([two_nodes(y=1.0), two_nodes(y=0.5)], task="classification")
    with error_with('y in some graph for task="classification"'):
        from_data_list([two_nodes()], task="classification")


# ------------------------------------------------------------------ files


def test_a_saved_list(tmp_path):
    torch.save(
        [two_nodes(x=torch.ones(2, 1), y=1), two_nodes(x=torch.ones(2, 1), y=0)],
        tmp_path / "own.pt",
    )
    import_module("haarpool.data")  # it allows its classes, and a reader may import it
    allowed = set(torch.serialization.get_safe_globals())
    graphs = read_graphs(tmp_path / "own.pt")
    assert (graphs.name, len(graphs), graphs.classes) == ("own", 2, ("0", "1"))
    assert read_graphs("own.pt", tmp_path, task="regression").targets.tolist() == [[1], [0]]
    assert set(torch.serialization.get_safe_globals()) == allowed


class Trap:
    """A pickle that would write a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_other_classes_are_an_error_and_not_executed(tmp_path):
    for number, trap in enumerate([Trap(tmp_path / "run"), [two_nodes(), Trap(tmp_path / "run")]]):
        torch.save(trap, tmp_path / f"{number}.pt")
        with error_with("without other classes", f"{number}.pt", "save plain Data"):
            read_graphs(tmp_path / f"{number}.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap(tmp_path / "run")))
    with error_with("a list of PyG Data", "plain.pt"):
        read_graphs(tmp_path / "plain.pt")
    assert not (tmp_path / "run").exists()


def test_other_files(tmp_path):
    path = tmp_path / "own.pt"
    torch.save([two_nodes()] * 50, path)
    path.write_bytes(path.read_bytes()[:500])
    with error_with("a list of PyG Data", "own.pt", "save the list again"):
        read_graphs(path)
    for other in ({"a": 1}, [1, 2], torch.ones(3)):
        torch.save(other, path)
        with error_with("a list of PyG Data", "something else in", "own.pt"):
            read_graphs(path)


# ------------------------------------------------------------------ dataset


def test_a_dataset_for_pyg(tmp_path):
    graphs = read_graphs(write_tiny_tu(tmp_path))
    dataset = GraphDataset(graphs, Encoding.fit(graphs, "labels"))
    assert repr(dataset) == "TINY(2)"
    assert (dataset.num_features, dataset.num_classes, dataset.num_edge_features) == (3, 2, 3)
    second = dataset[1]
    assert second.edge_index.tolist() == [[0, 1], [1, 0]]
    assert second.x.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert (second.y.tolist(), second.y.dtype) == ([0], torch.long)
    assert dataset[:1].num_classes == 2
    (batch,) = DataLoader(dataset, batch_size=2)
    assert batch.edge_index.tolist() == graphs.edges.tolist()
    assert batch.y.tolist() == [1, 0]
    assert [data.num_nodes for data in dataset[torch.tensor([1, 0])]] == [2, 3]
    assert as_graphs(dataset).sizes.tolist() == [3, 2]
    both = load_dataset(tmp_path, features="attributes+constant", transform=Constant())
    assert both[0].x.shape == (3, 4)  # one more by the transform
    assert [part.kind for part in both.encoding.nodes] == ["attributes", "constant"]


def test_values_and_weights():
    graphs = from_data_list(
        [two_nodes(y=torch.tensor([[1.0, 2.0]]), edge_weight=torch.tensor([0.5, 0.5]))] * 3
    )
    dataset = GraphDataset(graphs, Encoding.fit(graphs))
    assert dataset[2].y.tolist() == [[1, 2]]
    assert dataset[2].edge_weight.tolist() == [0.5, 0.5]
    assert dataset[2].y.dtype == dataset[2].edge_weight.dtype == dataset[2].x.dtype == torch.float
    assert dataset.num_classes == 2
    (batch,) = DataLoader(dataset, batch_size=3)
    assert batch.y.shape == (3, 2)
    bare = from_data_list([two_nodes(), two_nodes()])
    assert "y" not in GraphDataset(bare, Encoding.fit(bare))[0]


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS"])
def test_datasets_equal_those_of_pyg(name, tmp_path):
    shutil.copytree(Path(REAL) / name / "raw", tmp_path / name / "raw")
    for file in (tmp_path / name / "raw").iterdir():
        os.chmod(file, 0o600)
    theirs = TUDataset(tmp_path, name)
    ours = load_dataset(name, REAL, features="labels")
    assert len(ours) == len(theirs)
    for key in theirs[0].keys():  # noqa: SIM118  # a Data is no dict
        assert all(torch.equal(a[key], b[key]) for a, b in zip(ours, theirs, strict=True)), key
    assert ours.num_classes == theirs.num_classes
    assert ours.num_features == theirs.num_features
