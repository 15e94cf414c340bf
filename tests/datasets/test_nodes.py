"""Labels at nodes and signals on one graph: reading, splitting, and what is wrong with them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from haarpool import HaarPoolWarning, load_dataset
from haarpool.datasets import as_graphs, read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.nodes import graphs_of_arrays, with_node_labels
from haarpool.datasets.splits import (
    NodeSplit,
    Split,
    as_json,
    default_rule,
    hold_out,
    make_splits,
    num_folds,
)
from haarpool.datasets.summary import summary
from haarpool.tasks import find_task
from helpers.errors import error_with
from helpers.nodes import RING, graph_data, halves, heat, ring_edges, signal_data

EDGES = ring_edges().numpy()


def arrays(**changes):
    x, y = heat()
    return {"edge_index": EDGES, "x": x, "y": y[..., 0]} | changes


def test_signals_share_a_graph():
    graphs = as_graphs(signal_data(30, targets=2))
    assert (len(graphs), graphs.signals, graphs.task) == (30, True, "node_regression")
    assert graphs.edges.shape == (2, 2 * RING)
    assert graphs.targets.shape == (30 * RING, 2)
    assert graphs.structure.sizes.tolist() == [RING]
    assert not graphs.structure.signals
    assert graphs.batch.adjacency.shape == (RING, RING)
    part = graphs.take(np.array([3, 1]))
    np.testing.assert_array_equal(part.targets[:RING], graphs.targets[3 * RING : 4 * RING])
    np.testing.assert_array_equal(part.columns["x"][RING:], graphs.columns["x"][RING : 2 * RING])
    assert part.edges.shape == graphs.edges.shape
    assert part.digest() != graphs.digest()
    rows = summary(graphs)
    assert (rows["graphs"], rows["signals"], rows["total nodes"]) == (1, 30, RING)


def test_arrays_are_as_data(tmp_path):
    data = signal_data(5)
    mine = {key: value.numpy() for key, value in data.to_dict().items() if key != "num_nodes"}
    np.savez(tmp_path / "a.npz", **mine)
    torch.save(data, tmp_path / "a.pt")
    one, two = (read_graphs(tmp_path / name) for name in ("a.npz", "a.pt"))
    assert one.digest() == two.digest()
    assert one.columns["x"].dtype == np.float64 or one.columns["x"].dtype == np.float32


@pytest.mark.parametrize(
    ("y", "task", "shape"),
    [
        (np.arange(RING) % 3, "node_classification", (RING,)),
        (np.arange(RING) % 2 == 0, "node_classification", (RING,)),
        (np.array(["a", "b"] * 6), "node_classification", (RING,)),
        (np.linspace(0, 1, RING), "node_regression", (RING, 1)),
        (np.zeros((RING, 3)), "node_regression", (RING, 3)),
        (np.arange(2 * RING).reshape(RING, 2), "node_regression", (RING, 2)),
    ],
)
def test_the_task_follows_from_the_labels(y, task, shape):
    graphs = graphs_of_arrays({"edge_index": EDGES, "x": np.ones((RING, 1)), "y": y}, "ring")
    assert (graphs.task, graphs.targets.shape) == (task, shape)


def test_the_shape_of_y_says_whose_labels_they_are():
    edge = torch.tensor([[0, 1], [1, 0]])

    def pair(y, nodes=2):
        return Data(edge_index=edge, x=torch.ones(nodes, 1), y=y)

    assert as_graphs(graph_data()).task == "node_regression"
    assert as_graphs(graph_data(classes=True)).task == "node_classification"
    assert as_graphs([pair(torch.rand(2)), pair(torch.rand(3), 3)]).task == "node_regression"
    same_size = [pair(torch.rand(2)) for _ in range(4)]
    assert as_graphs(same_size).task == "regression"  # two targets of each graph
    assert as_graphs(same_size, "node_regression").targets.shape == (8, 1)
    assert as_graphs([pair(torch.rand(2, 3))] * 4).targets.shape == (8, 3)
    assert as_graphs([pair(torch.rand(1, 2))] * 4).targets.shape == (4, 2)
    assert as_graphs([pair(torch.tensor([1]))] * 4).task == "classification"
    assert as_graphs([pair(torch.rand(30), 30)] * 4).task == "node_regression"
    some = [pair(torch.tensor([1, 0])), pair(None, 3), pair(torch.tensor([1, 0, 0]), 3)]
    assert as_graphs(some).targets.tolist() == [1, 0, -1, -1, -1, 1, 0, 0]


def test_splits_of_nodes():
    graphs = as_graphs(halves())
    assert default_rule(graphs) == "stratified"
    for rule in ("nodes", "stratified", "random", "kfold:3"):
        splits = make_splits(rule, graphs, 0, 2)
        assert all(isinstance(split, NodeSplit) for split in splits)
        for split in splits:
            assert sorted(np.concatenate(split).tolist()) == list(range(60))
            assert split.graphs(split.test).tolist() == [0]
    even = make_splits("nodes", graphs)[0]
    assert np.bincount(graphs.targets[even.test]).tolist() == [3, 3]
    held = hold_out(graphs, 0.2)
    assert (len(held.train), len(held.validation), len(held.test)) == (48, 12, 0)


def test_masks_are_splits(tmp_path):
    graphs = as_graphs(halves(masks=4))
    assert default_rule(graphs) == "given"
    splits = make_splits("given", graphs)
    assert len(splits) == 4
    mask = halves(masks=4).train_mask[:, 2].numpy()
    assert splits[2].train.tolist() == np.flatnonzero(mask).tolist()
    (tmp_path / "splits.json").write_text(as_json(splits))
    again = make_splits(str(tmp_path / "splits.json"), graphs, 0, 4)
    assert [one.digest() for one in again] == [one.digest() for one in splits]
    assert hold_out(graphs, 0.5).train.tolist() == splits[0].train.tolist()


def test_several_graphs_are_split_whole():
    for data in (graph_data(), signal_data()):
        (split,) = make_splits("random", graphs := as_graphs(data))
        assert type(split) is Split
        rows = split.rows(split.test, graphs)
        assert len(rows) == graphs.sizes[split.test].sum()
        graph, node = graphs.places(rows)
        assert set(graph) == set(split.test.tolist())
        assert (graphs.start[graph] + node == rows).all()


def test_a_dataset_for_pyg(tmp_path):
    torch.save(graph_data(4), tmp_path / "g.pt")
    dataset = load_dataset(tmp_path / "g.pt")
    assert [data.y.shape for data in dataset] == [(6, 1), (7, 1), (8, 1), (9, 1)]


def test_other_labels():
    graphs = as_graphs(graph_data(3))
    size = int(graphs.start[-1])
    other, dtype = with_node_labels(graphs, ["a", "b"] * (size // 2) + ["a"] * (size % 2),
                                    find_task("node_classification"))  # fmt: skip
    assert (other.classes, dtype[:2]) == (("a", "b"), "<U")
    signals = as_graphs(signal_data(5))
    other, _ = with_node_labels(signals, np.zeros((5, RING, 2)), find_task("node_regression"))
    assert other.targets.shape == (5 * RING, 2)
    with error_with("y of shape (S, N) or (S, N, T), for 12 nodes and 5 signals", "(12, 5)"):
        with_node_labels(signals, np.zeros((RING, 5)), find_task("node_regression"))


WRONG = {
    "number of nodes": ({"y": np.zeros((30, 11))}, f"{RING} nodes and 30 signals", "(30, 11)"),
    "number of signals": ({"y": np.zeros((29, RING))}, "30 signals", "(29, 12)"),
    "shape of x": ({"x": np.zeros(RING)}, "x of shape (N, d), or (S, N, d)", "(12,)"),
    "edges": ({"edge_index": EDGES.T}, "edge_index as whole numbers (2, E)", "(24, 2)"),
    "an edge beyond": ({"edge_index": EDGES + 1}, "nodes in 0..11"),
    "no nodes beyond": (
        {"x": np.ones((30, 9, 1)), "y": np.ones((30, 9))}, "in 0..8, the 9 nodes of x, got 11",
    ),
    "signals without x": (
        {"x": None, "edge_index": EDGES + 40}, "the 30 nodes of y", "(S, N, 1), or add x (S, N, d)",
    ),
    "a negative node": ({"edge_index": EDGES - 1}, "got -1 to 10 in ", "a.npz; correct the file"),
    "pos": ({"pos": np.zeros((5, 2))}, "pos as numbers of shape (12, columns)"),
    "pos of signals": ({"pos": np.zeros((5, RING, 2))}, "pos as numbers of shape (30, 12,"),
    "a single pos": ({"x": None, "y": None, "pos": np.array(1.0)}, "pos as numbers"),
    "a single y": ({"x": None, "y": np.array(1.0)}, "y of shape (N,)", "shape ()"),
    "edge_attr": (
        {"edge_attr": np.zeros((25, 2))}, "edge_attr as numbers of shape (24,) or (24, columns)",
    ),
    "reshaped edge_attr": ({"edge_attr": np.zeros((12, 2))}, "edge_attr", "(12, 2)"),
    "text in edge_attr": ({"edge_attr": np.full((24, 2), "a")}, "edge_attr as numbers", "<U1"),
    "text in edge_weight": ({"edge_weight": np.full(24, "a")}, "edge_weight as numbers", "<U1"),
    "edge_weight": ({"edge_weight": np.ones((2, 12))}, "edge_weight as numbers of shape (24,),"),
    "a single name": ({"target_names": np.array("a")}, "target_names of shape (1,)", "shape ()"),
    "names": ({"target_names": np.array(["a", "b"])}, "target_names of shape (1,)", "shape (2,)"),
    "masks of signals": (
        {"train_mask": np.ones(RING, bool)}, "masks of nodes without signals", "leave the masks",
    ),
    "text as values": (
        {"y": np.full((30, RING, 2), "a")}, "numbers as labels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arrays(name, tmp_path):
    changes, *parts = WRONG[name]
    kept = {key: value for key, value in arrays(**changes).items() if value is not None}
    np.savez(tmp_path / "a.npz", **kept)
    with error_with(*parts):
        read_graphs(tmp_path / "a.npz")


def test_wrong_files(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"PK no archive")
    with error_with("an .npz file with edge_index", "a.npz"):
        read_graphs(path)
    np.savez(path, x=np.ones(3))
    with error_with("got x in", "add edge_index"):
        read_graphs(path)
    np.savez(path, edge_index=EDGES, x=np.array([{}], object))
    with error_with("a.npz (Object arrays cannot be loaded"):
        read_graphs(path)


def test_wrong_masks():
    data = halves(masks=1)
    with error_with("each node at most once", "node 0"):
        one = data.clone()
        one.train_mask[:] = one.val_mask[:] = True
        make_splits("given", as_graphs(one))
    with error_with("a node with a label under train", "none"):
        one = data.clone()
        one.y = one.y.float()
        one.y[one.train_mask] = torch.nan
        make_splits("given", as_graphs(one, "node_regression"))
    with error_with("train_mask as booleans (60,)", "shape ()"):
        one = data.clone()
        one.train_mask = torch.tensor(True)
        as_graphs(one)
    with error_with("train_mask as booleans (60,)", "int64"):
        one = data.clone()
        one.train_mask = one.train_mask.long()
        as_graphs(one)
    with error_with("a single graph with labels at its nodes", "20 graphs"):
        make_splits("nodes", as_graphs(graph_data()))
    with error_with("without labels of nodes"):
        make_splits("nodes", read_graphs("rings"))
    with error_with("expected a node in val_mask, got none; mark one"):
        one = data.clone()
        one.val_mask[:] = False
        make_splits("given", as_graphs(one))
    with error_with("a node in column 1 of train_mask"):
        one = halves(masks=2)
        one.train_mask[:, 1] = False
        hold_out(as_graphs(one), 0.1)


def test_messages_about_signals():
    graphs = as_graphs(signal_data(2))
    assert graphs.where(1) == "signal 1"
    with error_with("at least 3 signals with a label", "got 2; add signals"):
        make_splits("random", graphs)
    with error_with("a single graph with labels at its nodes, got 2 signals of graphs"):
        make_splits("nodes", graphs)


def test_one_published_split_is_no_fold():
    assert num_folds("given", as_graphs(halves(masks=1))) is None
    assert num_folds("given", as_graphs(halves(masks=3))) == 3


def test_statistics_of_published_splits_and_positions():
    rows = summary(as_graphs(halves(masks=1)))
    assert rows["published split of nodes"] == {"train": 20, "validation": 20, "test": 20}
    assert "coordinates of nodes" not in rows
    data = halves(masks=3)
    data.pos = torch.zeros(60, 2)
    rows = summary(as_graphs(data))
    splits = rows["published splits of nodes"]
    assert (splits["number"], splits["test"]["mean"], rows["coordinates of nodes"]) == (3, 20, 2)


def test_a_graph_without_edges_has_edge_features():
    lonely = {"edge_index": np.zeros((2, 0), int), "x": np.ones((3, 1)), "y": np.arange(3.0)}
    graphs = graphs_of_arrays(lonely | {"edge_attr": np.zeros((0, 2))}, "lonely")
    assert graphs.edge_columns["attributes"].shape == (0, 2)


def test_unknown_arrays_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays(edge_atr=np.zeros(24), names=np.array("a")))
    with pytest.warns(HaarPoolWarning, match="a.npz that are not known are ignored: edge_atr, nam"):
        graphs = read_graphs(tmp_path / "a.npz")
    assert not graphs.edge_columns


def test_minus_one_is_a_class():
    data = halves()
    data.y[:5] = -1
    with pytest.warns(HaarPoolWarning, match="-1 is one of the classes: use NaN") as caught:
        graphs = as_graphs(data)
    assert len(caught) == 1
    assert graphs.classes == ("-1", "0", "1")


def test_some_masks_are_ignored():
    data = halves(masks=1)
    del data.val_mask, data.test_mask
    with pytest.warns(HaarPoolWarning, match="train_mask without val_mask, test_mask is no split"):
        graphs = as_graphs(data)
    assert default_rule(graphs) == "stratified"
    data.train_mask = torch.tensor([1, 2])
    x = torch.from_numpy(heat(2)[0])
    for one in (data, Data(x=x, edge_index=ring_edges(), train_mask=data.train_mask)):
        assert as_graphs(one, labels=False).node_splits == ()


def test_positions_of_signals_are_stored_once():
    pos, edges = np.random.default_rng(0).random((RING, 2)), {"edge_index": EDGES}
    x = np.ones((30, RING, 1))
    once = as_graphs(graphs_of_arrays(edges | {"x": x, "pos": pos}, "ring"))
    each = graphs_of_arrays(edges | {"x": x, "pos": np.tile(pos, (30, 1, 1))}, "ring")
    assert np.shares_memory(once.columns["pos"], pos)
    assert "owner" not in vars(once)  # made when it is needed: a number per node and signal
    for graphs in (once, once.take(np.array([4, 2])), once.structure):
        np.testing.assert_array_equal(graphs.positions(len(graphs) - 1), pos)
    features = [Encoding.fit(one, "x+pos").encode(one) for one in (once, each)]
    np.testing.assert_array_equal(*features)
    wrong = replace(once, columns=once.columns | {"pos": pos[:5]})
    with error_with("columns['pos'] as an array (360, columns)", "(5, 2)"):
        as_graphs(wrong)


def test_tasks_of_graphs_do_not_fit_a_file_of_nodes(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays())
    with error_with("node_classification or node_regression for .npz file", "got regression"):
        read_graphs(tmp_path / "a.npz", task="regression")
