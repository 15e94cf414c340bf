"""What a reader returns is checked once: each mistake is one error that names the reader."""

from dataclasses import replace

import numpy as np
import pytest

from haarpool.datasets import Graphs, as_graphs, read_graphs, stream_graphs
from haarpool.datasets.checks import check_graphs
from haarpool.datasets.readers import registry
from haarpool.datasets.readers.registry import Reader, register
from helpers.errors import error_with

START = np.array([0, 3, 5])
# All edges forward before all edges backward: not graph by graph.
EDGES = np.array([[0, 1, 3, 1, 2, 4], [1, 2, 4, 0, 1, 3]])
VALUES = {"task": "regression", "targets": np.ones((2, 1)), "target_names": ("y",)}
CLASSES = {"task": "classification", "targets": np.array([0, -1]), "classes": ("a",)}


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Read a file of a format whose reader returns what is passed."""
    monkeypatch.setattr(registry, "_READERS", dict(registry._READERS))
    returned = []

    @register
    class Toy(Reader):
        suffixes = (".toy",)

        def read(self, source, task=None):
            return returned[-1]

    path = tmp_path / "a.toy"
    path.touch()

    def read(graphs, **options):
        returned.append(graphs)
        return read_graphs(path, **options)

    read.path = path
    return read


def two_graphs(**fields):
    return Graphs(**{"name": "two", "start": START, "edges": EDGES} | fields)


def test_edges_are_brought_graph_by_graph(read):
    number = np.arange(6.0)
    returned = two_graphs(edge_weight=number + 1, edge_columns={"bonds": number[:, None]})
    graphs = read(returned)
    assert graphs.edges.tolist() == [[0, 1, 1, 2, 3, 4], [1, 2, 0, 1, 4, 3]]
    assert graphs.edge_weight.tolist() == [1, 2, 4, 5, 3, 6]
    assert graphs.edge_columns["bonds"].ravel().tolist() == [0, 1, 3, 4, 2, 5]
    assert graphs.take([1]).edges.tolist() == [[0, 1], [1, 0]]
    blocks = list(stream_graphs(read.path, block=1))
    assert [block.edges.max() for block in blocks] == [2, 1]
    assert as_graphs(returned).take([1]).edges.tolist() == [[0, 1], [1, 0]]


def test_graphs_in_order_stay_the_same_object():
    graphs = check_graphs(two_graphs(**CLASSES))
    assert check_graphs(graphs) is graphs


def test_names_become_text(read):
    graphs = read(two_graphs(task="classification", targets=np.array([1, 0]), classes=[3, 5]))
    assert graphs.classes == ("3", "5")
    assert read(two_graphs(**VALUES | {"target_names": [7]})).target_names == ("7",)
    assert read(two_graphs(ids=[1, 2])).ids == ("1", "2")


WRONG = {
    "another class": ([START, EDGES], "an object of the class Graphs", "list"),
    "list of starts": ({"start": [0, 3, 5]}, "start as an array of G + 1", "list"),
    "no graph": ({"start": START[:1]}, "start as an array of G + 1", "shape (1,)"),
    "real starts": ({"start": START / 1}, "start as an array of G + 1", "float64"),
    "start at 1": ({"start": START + 1}, "start from 0", "1 first"),
    "no nodes": ({"start": np.array([0, 5, 5])}, "at least one node", "none in graph 1"),
    "list of edges": ({"edges": EDGES.tolist()}, "edges as an array (2, E)", "list"),
    "pairs": ({"edges": EDGES.T}, "edges as an array (2, E)", "shape (6, 2)"),
    "real edges": ({"edges": np.zeros((2, 0))}, "edges as an array (2, E)", "float64"),
    "large node": ({"edges": EDGES + 1}, "nodes in 0..4", "1 to 5"),
    "negative node": ({"edges": EDGES - 1}, "nodes in 0..4", "-1 to 3"),
    "between graphs": (
        {"edges": np.array([[0, 2], [1, 3]])}, "edges inside a", "2 - 3 between graph 0 and g",
    ),
    "weights": ({"edge_weight": np.ones(5)}, "edge_weight as an array (6,)", "shape (5,)"),
    "weights of 0 alone": ({"edge_weight": np.zeros(6)}, "edge weight above 0", "0 for all 6"),
    "NaN as weight": ({"edge_weight": np.full(6, np.nan)}, "finite edge weights", "in graph 0"),
    "rows": ({"columns": {"x": np.ones((4, 1))}}, "columns['x'] as an array (5, c", "(4, 1)"),
    "vector": ({"columns": {"x": np.ones(5)}}, "columns['x'] as an array (5, c", "(5,)"),
    "text as x": ({"columns": {"x": np.full((5, 1), "a")}}, "numbers in columns['x']", "<U1"),
    "real labels": (
        {"columns": {"labels": np.ones((5, 1))}}, "whole numbers or text in columns['l", "float64",
    ),
    "no mapping": ({"columns": np.ones((5, 1))}, "columns as a mapping", "float64"),
    "no split": ({"split": [[0], [1], [1]]}, "split as a mapping", "list"),
    "edge rows": (
        {"edge_columns": {"x": np.ones((5, 1))}}, "edge_columns['x'] as an array (6, ", "(5, 1)",
    ),
    "ids": ({"ids": ("a",)}, "2 ids, one per graph", "1"),
    "lines": ({"lines": np.arange(3)}, "lines as an array (2,)", "(3,)"),
    "folds": ({"folds": [0, 1]}, "folds as an array (2,)", "list"),
    "no targets": ({"task": "regression"}, "task and targets together", "task regression alone"),
    "no task": ({"targets": np.ones(2)}, "task and targets together", "targets alone"),
    "vector of values": (VALUES | {"targets": np.ones(2)}, "(G, T) for regression", "(2,)"),
    "no names": (VALUES | {"target_names": ()}, "with T target_names (0)", "(2, 1)"),
    "rows of values": (VALUES | {"targets": np.ones((3, 1))}, "(G, T) for regression", "(3, 1)"),
    "text": (VALUES | {"targets": np.full((2, 1), "a")}, "targets as numbers (G, T)", "<U1"),
    "columns of classes": (
        CLASSES | {"targets": np.ones((2, 1), int)}, "(G,) for classification", "(2, 1)",
    ),
    "unknown class": (CLASSES | {"targets": np.array([0, 1])}, "targets in 0..0", "1"),
    "same names": (CLASSES | {"classes": (1, "1")}, "classes with different names", "1, 1"),
    "half a class": (
        {"task": "multilabel", "targets": np.array([[0.5], [1]]), "target_names": ("y",),
         "classes": ("a", "b")}, "the numbers of 2 classes", "0.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_of_a_reader(case, read):
    fields, expected, got = WRONG[case]
    graphs = two_graphs(**fields) if isinstance(fields, dict) else fields
    with error_with(expected, " from the reader ", "Toy, got ", got):
        read(graphs)
    with error_with(expected):
        list(stream_graphs(read.path))
    if isinstance(graphs, Graphs):
        with error_with(expected, "make them again" if "weight" not in expected else "") as caught:
            as_graphs(graphs)
        assert "reader" not in str(caught.value)


def test_a_task_that_a_reader_ignores_is_an_error(read):
    classes, values = two_graphs(**CLASSES), two_graphs(**VALUES)
    with error_with('task="regression" from the reader', "Toy, got classification"):
        read(classes, task="regression")
    with error_with('task="classification" from the reader', "got regression"):
        read(values, task="classification")
    with error_with('task="regression"', "got no labels"):
        read(two_graphs(), task="regression")
    zeros = np.array([[0.0, 1.0], [1.0, np.nan]])
    several = {"targets": zeros, "target_names": ("a", "b"), "classes": ("0", "1")}
    several = two_graphs(task="multilabel", **several)
    for task in ("classification", "multilabel", None):
        assert read(several, task=task).task == "multilabel"
    with error_with('task="regression"', "got multilabel"):
        read(several, task="regression")
    assert read(replace(values, task="regression"), task="regression").task == "regression"
