"""How columns become features."""

import json
from dataclasses import replace

import numpy as np
import pytest

from haarpool.datasets import Graphs
from haarpool.datasets.encoding import Encoding, FeatureColumns
from helpers.errors import error_with


def two_graphs(**columns) -> Graphs:
    """A path of three nodes and a pair with a self-loop."""
    edges = np.array([[0, 1, 1, 2, 3, 4, 4], [1, 0, 2, 1, 4, 3, 4]])
    arrays = {kind: np.array(values) for kind, values in columns.items()}
    return Graphs("two", np.array([0, 3, 5]), edges, arrays, lines=np.array([2, 7]))


def test_labels_become_one_hot_columns():
    graphs = two_graphs(labels=[[3, 0], [9, 0], [3, 1], [5, 0], [3, 0]])
    encoding = Encoding.fit(graphs)
    assert encoding == Encoding((FeatureColumns("labels", 5, ((3, 5, 9), (0, 1))),))
    expected = [[1, 0, 0, 1, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [1, 0, 0, 1, 0]]
    assert encoding.encode(graphs).tolist() == expected
    assert encoding.encode(graphs).dtype == np.float32


def test_degrees_and_constants():
    graphs = two_graphs()
    encoding = Encoding.fit(graphs)
    assert (encoding.kinds, encoding.width) == ("degree", 3)
    assert encoding.encode(graphs).argmax(1).tolist() == [1, 2, 1, 1, 1]
    star = Graphs("sta", np.array([0, 4]), np.array([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]]))
    assert encoding.encode(star).argmax(1).tolist() == [2, 1, 1, 1]  # 3 counts as the largest
    alone = Graphs("alone", np.array([0, 1]), np.zeros((2, 0), np.int64))
    assert encoding.encode(alone).tolist() == [[1, 0, 0]]
    assert Encoding.fit(graphs, "constant").encode(graphs).tolist() == [[1]] * 5


def test_default_features():
    graphs = two_graphs(attributes=np.ones((5, 2)))
    assert Encoding.fit(graphs).kinds == "attributes"
    for kind in ("atoms", "x", "labels"):
        graphs = replace(graphs, columns={**graphs.columns, kind: np.ones((5, 1), np.int64)})
        assert Encoding.fit(graphs).kinds == kind
    assert Encoding.fit(replace(graphs, default_features="constant")).kinds == "constant"
    both = Encoding.fit(graphs, "attributes + degree")
    assert (both.kinds, both.width) == ("attributes+degree", 5)


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
    with error_with("labels of nodes out of 3, 5, 9", "4 in graph 1 (line 7) of two"):
        encoding.encode(two_graphs(labels=[[3], [9], [3], [5], [4]], x=np.ones((5, 2))))
    with error_with("2 columns 'x' of each node", "3 in two"):
        encoding.encode(two_graphs(labels=[[3], [9], [3], [5], [3]], x=np.ones((5, 3))))
    with error_with("1 columns 'labels' of each node", "0 in two"):
        encoding.encode(two_graphs(x=np.ones((5, 2))))
    for kinds in ("atoms", "", "x+x", "labels,x"):
        with error_with("features of two out of labels, x, degree, constant", repr(kinds)):
            Encoding.fit(graphs, kinds)
