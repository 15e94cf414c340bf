"""How columns become features."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from haarpool.datasets import Graphs
from haarpool.datasets.encoding import MAX_DEGREE, MAX_LABELS, Encoding, FeatureColumns
from haarpool.errors import HaarPoolWarning
from helpers.errors import error_with


def two_graphs(**columns) -> Graphs:
    """A path of three nodes and a pair with a self-loop."""
    edges = np.array([[0, 1, 1, 2, 3, 4, 4], [1, 0, 2, 1, 4, 3, 4]])
    arrays = {kind: np.array(values) for kind, values in columns.items()}
    return Graphs("two", np.array([0, 3, 5]), edges, arrays, lines=np.array([2, 7]))


def test_labels_become_one_hot_columns():
    graphs = two_graphs(labels=[[3, 0], [9, 0], [3, 1], [5, 0], [3, 0]])
    encoding = Encoding.fit(graphs, "labels")
    assert encoding == Encoding((FeatureColumns("labels", 5, ((3, 5, 9), (0, 1))),))
    expected = [[1, 0, 0, 1, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [1, 0, 0, 1, 0]]
    assert encoding.encode(graphs).tolist() == expected
    assert encoding.encode(graphs).dtype == np.float32


def test_labels_may_be_text():
    graphs = two_graphs(labels=[["C"], ["N"], ["C"], ["Cl"], ["C"]])
    encoding = Encoding.fit(graphs, "labels")
    assert encoding == Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert encoding.encode(graphs).argmax(1).tolist() == [0, 2, 0, 1, 0]
    numbers = two_graphs(labels=[[1], [1], [1], [1], [1]])
    with error_with("labels of nodes like C, Cl, N", "got 1 in graph 0 (line 2) of two"):
        encoding.encode(numbers)


def test_unknown_labels_are_zeros():
    graphs = two_graphs(labels=[[3, 0], [9, 0], [3, 1], [5, 0], [3, 0]])
    encoding = Encoding.fit(graphs, "labels+degree")
    others = two_graphs(labels=[[3, 0], [9, 7], [3, 1], [4, 0], [9, 0]])
    with pytest.warns(HaarPoolWarning) as caught:
        found = encoding.encode(others)
    assert [str(one.message) for one in caught] == [
        f"1 of 5 nodes of two have a label that the training data do not have, such as {first}: "
        "it is encoded as zeros"
        for first in ("4 in graph 1 (line 7)", "7 in graph 0 (line 2)")
    ]
    expected = [[1, 0, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0]]
    assert found[:, :5].tolist() == expected
    np.testing.assert_array_equal(found[:, 5:], encoding.encode(graphs)[:, 5:])


def test_isotopes_are_zeros_where_there_are_none():
    graphs = two_graphs(atoms=np.ones((5, 2)), isotopes=[[0], [1], [0], [0], [0]])
    encoding = Encoding.fit(graphs)
    assert encoding.describe() == "atoms (2), isotopes (1), degree (3)"
    assert encoding.encode(graphs)[:, 2].tolist() == [0, 1, 0, 0, 0]
    assert encoding.encode(two_graphs(atoms=np.ones((5, 2))))[:, 2].tolist() == [0] * 5


def test_degrees_and_constants():
    graphs = two_graphs()
    encoding = Encoding.fit(graphs)
    assert encoding.describe() == "degree (3)"
    assert encoding.encode(graphs).argmax(1).tolist() == [1, 2, 1, 1, 1]
    assert encoding.encode(star(3)).argmax(1).tolist() == [2, 1, 1, 1]  # 3 counts as the largest
    alone = Graphs("alone", np.array([0, 1]), np.zeros((2, 0), np.int64))
    assert encoding.encode(alone).tolist() == [[1, 0, 0]]
    assert Encoding.fit(graphs, "constant").encode(graphs).tolist() == [[1]] * 5


def kinds_of(encoding: Encoding) -> str:
    """The kinds of node features, as `Encoding.fit` takes them."""
    return "+".join(part.kind for part in encoding.nodes)


def test_auto_is_everything():
    ones = np.ones((5, 1), np.int64)
    graphs = two_graphs(attributes=np.ones((5, 2)), pos=ones, labels=ones)
    assert kinds_of(Encoding.fit(graphs)) == "labels+attributes+degree"
    for kinds in ("auto+constant", "auto+degree+constant", "constant+auto"):
        assert kinds_of(Encoding.fit(graphs, kinds)) == "labels+attributes+degree+constant"
    graphs = replace(graphs, columns={**graphs.columns, "x": ones, "atoms": ones})
    assert kinds_of(Encoding.fit(graphs)) == "labels+x+atoms+attributes+degree"
    both = Encoding.fit(graphs, "attributes + degree")
    assert (kinds_of(both), both.width) == ("attributes+degree", 5)


def star(leaves: int) -> Graphs:
    """One hub and its neighbours."""
    ends = np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)])
    return Graphs("star", np.array([0, leaves + 1]), np.concatenate([ends, ends[::-1]], 1))


def test_a_hub_needs_no_column_of_its_own():
    hub = star(100_000)
    encoding = Encoding.fit(hub)
    assert encoding.describe() == "degree (17), log degree (1, standardised)"
    found = encoding.encode(hub)
    assert found.shape == (100_001, 18)
    assert found[:2, :-1].argmax(1).tolist() == [MAX_DEGREE, 1]
    np.testing.assert_allclose(found[:2, -1], np.log([100_001, 2]), rtol=1e-6)
    assert kinds_of(Encoding.fit(star(MAX_DEGREE))) == "degree"


def test_features_are_made_once():
    """The memory is that of the result, and of one number per node and edge."""
    size = 20_000
    rng = np.random.default_rng(0)
    columns = {"labels": rng.integers(0, 40, (size, 1)), "attributes": rng.random((size, 60))}
    ring = np.stack([np.arange(size), np.roll(np.arange(size), 1)])
    graphs = Graphs("many", np.array([0, size]), ring, columns)
    encoding = Encoding.fit(graphs)
    tracemalloc.start()
    try:
        features = encoding.encode(graphs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert features.shape == (size, 102)
    assert peak < 1.3 * features.nbytes


def test_rare_labels_share_a_column():
    size = 3 * MAX_LABELS
    labels = np.concatenate([np.arange(size), np.arange(7, 7 + MAX_LABELS - 1)])[:, None]
    graphs = Graphs("ids", np.array([0, len(labels)]), np.zeros((2, 0), int), {"labels": labels})
    encoding = Encoding.fit(graphs, "labels")
    assert encoding.describe() == f"node labels ({MAX_LABELS}, rare ones together)"
    assert encoding == Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    column = encoding.encode(graphs).argmax(1)
    assert encoding.encode(graphs).sum(1).tolist() == [1] * len(labels)
    frequent = np.arange(7, 7 + MAX_LABELS - 1)
    assert column[frequent].tolist() == list(range(MAX_LABELS - 1))
    assert (np.delete(column[:size], frequent) == MAX_LABELS - 1).all()
    unseen = replace(graphs, columns={"labels": labels - 10**6})
    assert set(encoding.encode(unseen).argmax(1).tolist()) == {MAX_LABELS - 1}
    exactly = replace(graphs, columns={"labels": labels % MAX_LABELS})
    assert None not in Encoding.fit(exactly, "labels").nodes[0].values[0]


def test_real_columns_are_marked():
    x = np.array([[0.5, 1, 3, 1]] * 5)
    edges = {"labels": np.arange(7)[:, None], "attributes": np.arange(14.0).reshape(7, 2)}
    graphs = replace(two_graphs(labels=[[3], [9], [3], [5], [3]], x=x, atoms=x), edge_columns=edges)
    encoding = Encoding.fit(graphs)
    assert encoding.real_nodes == (3, 5)
    assert encoding.real_edges == (7, 8)
    assert encoding.describe() == (
        "node labels (3), x (4, 2 standardised), atoms (4), degree (3); "
        "edges: labels (7), attributes (2, standardised)"
    )
    assert (encoding.width, encoding.edge_width) == (14, 9)


def test_positions_are_features_if_they_are_asked_for():
    position = np.array([[0.5, 2], [1, 0], [3, 1], [0, 0], [2, 2]])
    graphs = two_graphs(x=np.ones((5, 1)), pos=position)
    assert kinds_of(Encoding.fit(graphs)) == "x+degree"
    encoding = Encoding.fit(graphs, "x+pos")
    assert encoding.describe() == "x (1), pos (2, standardised)"
    assert (encoding.encode(graphs)[:, 1:] == position).all()


def test_features_of_models_of_earlier_versions():
    """Their networks did not standardise."""
    saved = {"nodes": [{"kind": "x", "width": 2, "values": []}], "edges": []}
    assert Encoding.from_json(saved).real_nodes == ()


def test_edges_that_no_graph_had_at_first():
    none = replace(two_graphs(), edges=np.zeros((2, 0), int))
    encoding = Encoding.fit(replace(none, edge_columns={"labels": np.zeros((0, 1), int)}))
    assert encoding.edge_width == 0
    labelled = replace(two_graphs(), edge_columns={"labels": np.full((7, 1), 4)})
    with pytest.warns(HaarPoolWarning, match=r"7 of 7 edges of two .* such as 4 in graph 0"):
        assert encoding.encode_edges(labelled).shape == (7, 0)


def test_edges_have_features_too():
    graphs = replace(
        two_graphs(),
        edge_columns={"labels": np.array([[4], [4], [6], [6], [4], [4], [4]]),
                      "attributes": np.arange(7.0)[:, None]},
    )  # fmt: skip
    encoding = Encoding.fit(graphs)
    found = encoding.encode_edges(graphs)
    assert found[:3].tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 2]]
    assert Encoding.fit(two_graphs()).encode_edges(graphs) is None
    with error_with("1 columns 'labels' of each edge", "0 in two"):
        encoding.encode_edges(two_graphs())


def test_json_and_back():
    graphs = two_graphs(labels=[[3], [9], [3], [5], [3]], x=np.ones((5, 4)))
    encoding = Encoding.fit(graphs, "labels+x+degree")
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    assert hash(again) == hash(encoding)
    for bad in ({}, {"nodes": [{"kind": "x"}], "edges": []}, {"nodes": 3, "edges": []}):
        with error_with("an encoding made by Encoding.to_json"):
            Encoding.from_json(bad)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300])
def test_features_that_are_not_finite(value):
    x = np.ones((5, 2))
    x[3, 1] = value
    graphs = two_graphs(x=x)
    with error_with("finite numbers as 'x'", "float32", f"{value:g} in graph 1 (line 7) of two"):
        Encoding.fit(graphs).encode(graphs)
    edges = replace(two_graphs(), edge_columns={"attributes": np.full((7, 1), value)})
    with error_with("finite numbers as 'attributes' of each edge", f"{value:g} in graph 0"):
        Encoding.fit(edges).encode_edges(edges)


def test_features_that_do_not_fit():
    graphs = two_graphs(labels=[[3], [9], [3], [5], [3]], x=np.ones((5, 2)))
    encoding = Encoding.fit(graphs, "labels+x")
    with error_with("2 columns 'x' of each node", "3 in two"):
        encoding.encode(two_graphs(labels=[[3], [9], [3], [5], [3]], x=np.ones((5, 3))))
    with error_with("1 columns 'labels' of each node", "0 in two"):
        encoding.encode(two_graphs(x=np.ones((5, 2))))
    for kinds in ("atoms", "", "x+x", "labels,x"):
        with error_with(
            "of two out of labels, x, degree, log_degree, walks, constant", repr(kinds)
        ):
            Encoding.fit(graphs, kinds)
