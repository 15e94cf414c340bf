"""Labels: exact classes, and values that a network can take."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from haarpool.datasets import as_graphs, read_graphs, stream_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.labels import as_classes, as_number, label_fields, with_task
from haarpool.datasets.pyg import GraphDataset
from haarpool.datasets.readers.data_list.convert import from_data_list
from haarpool.datasets.summary import summary
from haarpool.tasks import find_task
from helpers.errors import error_with
from helpers.files import write_tiny_tu
from helpers.graphs import two_nodes

# Pairs that six digits, or a float64, cannot tell apart.
CLOSE = [(1_000_001, 1_000_002), (2**53, 2**53 + 1), (2**62, 2**62 + 1), (10**30, 10**30 + 1)]


@pytest.mark.parametrize("pair_of", CLOSE)
def test_close_numbers_are_two_classes(pair_of, tmp_path):
    low, high = map(str, pair_of)
    graphs = read_graphs(write_tiny_tu(tmp_path, graph_labels=f"{high}\n{low}\n"))
    assert (graphs.classes, graphs.targets.tolist()) == ((low, high), [1, 0])
    assert summary(graphs)["classes"] == {low: 1, high: 1}


@pytest.mark.parametrize("pair_of", CLOSE)
def test_close_numbers_in_a_table(pair_of, tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    low, high = map(str, pair_of)
    (tmp_path / "m.csv").write_text("smiles,y\n" + f"C,{high}\nC,{low}\nC,{low}\n" * 2)
    graphs = read_graphs(tmp_path / "m.csv", targets=["y"])
    assert (graphs.classes, graphs.targets.tolist()) == ((low, high), [1, 0, 0] * 2)
    assert summary(graphs)["classes"] == {low: 4, high: 2}


@pytest.mark.parametrize("pair_of", CLOSE[:3])
def test_close_numbers_in_a_list(pair_of):
    low, high = pair_of
    graphs = from_data_list([two_nodes(y=torch.tensor([high])), two_nodes(), two_nodes(y=low)])
    assert (graphs.classes, graphs.targets.tolist()) == ((str(low), str(high)), [1, -1, 0])
    assert summary(graphs)["classes"] == {str(low): 1, str(high): 1}


def test_fractions_keep_their_digits(tmp_path):
    write_tiny_tu(tmp_path, graph_labels="0.12345678\n0.12345679\n")
    graphs = read_graphs(tmp_path, task="classification")
    assert graphs.classes == ("0.12345678", "0.12345679")


def test_labels_of_a_new_format():
    def fields(labels, task=None):
        read = label_fields(labels, task, ["energy"])
        return read["task"], read["classes"], read["target_names"], read["targets"].tolist()

    assert fields(["b", "a", "", None]) == ("classification", ("a", "b"), (), [1, 0, -1, -1])
    whole = ("classification", ("0", "1"), (), [1, 0, 1] * 2)
    assert fields([1, 0.0, 1] * 2) == fields(["1", " 0", "1.0"] * 2) == whole
    assert fields(["0.5", "2"]) == ("regression", (), ("energy",), [[0.5], [2.0]])
    assert fields([1, 0, 1], "regression") == ("regression", (), ("energy",), [[1.0], [0.0], [1.0]])
    assert fields(["0.5", "2"], "classification")[:2] == ("classification", ("0.5", "2"))
    assert fields([1, 0, 1], "multilabel")[0] == "multilabel"
    assert label_fields([None, float("nan"), "NA"]) == {}
    for labels, task, expected, got in (
        (["a", "b"], "regression", "numbers as labels", "'a'; for classes pass task="),
        ([None, ""], "regression", 'labels for task="regression"', "none"),
        (["a", 1], None, "text or numbers as labels", "both"),
    ):
        with error_with(expected, f"got {got}"):
            label_fields(labels, task)


def test_labels_of_several_targets_of_a_new_format():
    fields = label_fields([["0.5", "1"], ["NA", 2]])
    assert (fields["task"], fields["target_names"]) == ("regression", ("y0", "y1"))
    np.testing.assert_array_equal(fields["targets"], [[0.5, 1], [np.nan, 2]])
    fields = label_fields([["b", "a"], [None, "b"]], "classification", ["first", "second"])
    assert (fields["task"], fields["classes"]) == ("multilabel", ("a", "b"))
    np.testing.assert_array_equal(fields["targets"], [[1, 0], [np.nan, 1]])


@pytest.mark.parametrize("task", ["multilabel", "regression", "classification"])
def test_labels_of_graphs_for_another_task(task):
    graphs = from_data_list([two_nodes(y=y) for y in (3, 4, 3)] + [two_nodes()])
    other = with_task(graphs, find_task(task))
    expected = {
        "classification": [0, 1, 0, -1],
        "multilabel": [[0], [1], [0], [np.nan]],
        "regression": [[3], [4], [3], [np.nan]],
    }
    assert other.task == task
    np.testing.assert_array_equal(other.targets, expected[task])
    values = replace(graphs, **label_fields([0.5, 1.5, 2, None]))
    assert with_task(values, find_task("regression")) is values
    if task != "regression":
        with error_with("classes, as whole numbers, got real values", 'task="regression"'):
            with_task(values, find_task(task))


def test_classes_are_sorted_by_size():
    numbers, names = as_classes([10, 9.0, -10, float("nan"), None, 2.5, 9])
    assert (numbers.tolist(), names) == ([3, 2, 0, -1, -1, 1, 2], ("-10", "2.5", "9", "10"))
    graphs = from_data_list([two_nodes(y=10), two_nodes(y=9), two_nodes(y=-10)])
    assert (graphs.classes, graphs.targets.tolist()) == (("-10", "9", "10"), [2, 1, 0])


def test_numbers_in_text():
    assert [as_number(text) for text in ("7", " -7 ", "7.0", ".5e1")] == [7, -7, 7, 5]
    assert type(as_number("7")) is int
    assert [as_number(text) for text in ("", "x", "1_5", "1_0.5", "1,5")] == [None] * 5
    assert as_number("1" * 400) == as_number("1e400") == float("inf")


def test_zero_and_one_mean_the_same_in_every_dtype_and_file(tmp_path):
    values = [0.0, 1.0, 1.0, 0.0, float("nan"), 1.0]
    expected = ("classification", ("0", "1"), [0, 1, 1, 0, -1, 1])
    for dtype in (torch.float, torch.double, torch.half):
        data = [two_nodes(y=torch.tensor([[value]], dtype=dtype)) for value in values]
        graphs = from_data_list(data)
        assert (graphs.task, graphs.classes, graphs.targets.tolist()) == expected
    data[0].y = torch.tensor([0.5])
    assert from_data_list(data).task == "regression"
    several = [two_nodes(y=torch.tensor([[0.5, 1.0]])) for _ in range(6)]
    assert from_data_list(several).task == "regression"
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    (tmp_path / "m.csv").write_text("smiles,y\n" + "".join(f"C,{value}\n" for value in values))
    graphs = read_graphs(tmp_path / "m.csv", targets=["y"])
    assert (graphs.task, graphs.classes, graphs.targets.tolist()) == expected


def test_whole_numbers_that_all_differ_need_a_task(tmp_path):
    def read(labels, **options):
        torch.save([two_nodes(y=label) for label in labels], tmp_path / "own.pt")
        return read_graphs(tmp_path / "own.pt", **options)

    distinct = range(1000, 3000)
    parts = ("the labels of own", "2,000 different ones of 2,000", 'pass task="classification", or')
    with error_with(*parts):
        read(distinct)
    with error_with("1,200 different ones of 2,000"):
        read([min(i, 1199) for i in range(2000)])
    assert read(distinct, task="regression").targets.shape == (2000, 1)
    assert len(read(distinct, task="classification").classes) == 2000
    assert len(read([i % 100 for i in range(300)]).classes) == 100
    assert len(read(range(20)).classes) == 20
    # Labels do not matter for predictions, and an estimator knows its task.
    read(distinct, task="regression")
    assert sum(map(len, stream_graphs(tmp_path / "own.pt"))) == 2000
    assert len(as_graphs([two_nodes(y=label) for label in distinct])) == 2000
    assert len(as_graphs(tmp_path / "own.pt")) == 2000
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    rows = "".join(f"C,{i},{i // 2},{i}.5\n" for i in range(60))
    (tmp_path / "m.csv").write_text("smiles,id,count,value\n" + rows)
    with error_with("the column 'id'", "60 different ones of 60", "or regression"):
        read_graphs(tmp_path / "m.csv", targets=["id"])
    assert read_graphs(tmp_path / "m.csv", targets=["id"], task="regression").task == "regression"
    for name in ("count", "value"):
        assert read_graphs(tmp_path / "m.csv", targets=[name]).task == "regression"


@pytest.mark.parametrize("text", ["C;0,5\nC;1\nC;,25\nC;-2,75\n", 'C;"0,5"\n' * 50])
def test_decimal_commas(text, tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    (tmp_path / "m.csv").write_text("smiles;y\n" + text)
    parts = ("a decimal point in the column 'y'", "line 2: '0,5'", 'pass task="classification"')
    with error_with(*parts):
        read_graphs(tmp_path / "m.csv", targets=["y"])
    with error_with("a number in the column 'y'", "line 2: '0,5'"):
        read_graphs(tmp_path / "m.csv", targets=["y"], task="regression")
    classes = read_graphs(tmp_path / "m.csv", targets=["y"], task="classification").classes
    assert "0,5" in classes


def test_texts_that_nearly_all_differ_are_no_classes(tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    rows = "".join(f"C,>{min(i, 1998)}\n" for i in range(2000))
    (tmp_path / "m.csv").write_text("smiles,y\n" + rows)
    with error_with("a number in the column 'y'", "line 2: '>0'", 'task="classification"'):
        read_graphs(tmp_path / "m.csv", targets=["y"])


def test_labels_of_a_list_that_are_not_classes():
    with error_with("one whole number", "[inf] in graph 1"):
        from_data_list([two_nodes(y=1.0), two_nodes(y=float("inf"))], task="classification")
    with error_with("one whole number", "[] in graph 0"):
        from_data_list([two_nodes(y=torch.zeros(0, dtype=torch.long))])


@pytest.mark.parametrize("value", [1e39, -1e39, float("inf")])
def test_values_beyond_float32(value, tmp_path):
    data = [two_nodes(y=torch.tensor([0.0, 3e38], dtype=torch.double)),
            two_nodes(y=torch.tensor([float("nan"), value], dtype=torch.double))]  # fmt: skip
    graphs = from_data_list(data)
    for form in (data, graphs, graphs.take(np.array([1]))):
        with error_with("at most 3.4e+38", "float32", f"{value:g} as 'y1' of graph 1"):
            as_graphs(form)
    torch.save(data, tmp_path / "own.pt")
    with error_with(f"{value:g} as 'y1' of graph 1"):
        read_graphs(tmp_path / "own.pt")
    good = replace(graphs, targets=np.array([[0, 3e38], [np.nan, -3e38]]))
    assert as_graphs(good) is good


def test_values_beyond_float32_in_files(tmp_path):
    write_tiny_tu(tmp_path / "tu", graph_labels=None, graph_attributes="1, 2\n3, 1e39\n")
    with error_with("float32", "1e+39 as 'y1' of graph 1"):
        read_graphs(tmp_path / "tu")
    write_tiny_tu(tmp_path / "labels", graph_labels=f"0.5\n{10**39}\n")
    with error_with("float32", "1e+39 as 'y' of graph 1"):
        read_graphs(tmp_path / "labels")
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    (tmp_path / "m.csv").write_text("smiles,y\nC,0.5\nC,-1e39\n")
    with error_with("float32", "-1e+39 as 'y' of graph 1 (line 3)"):
        read_graphs(tmp_path / "m.csv", targets=["y"])


# ---------------------------------------------------------------------- several targets


def table(path, *lines):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    path.write_text("\n".join(["smiles,a,b,c", *lines]))
    return path


ZEROS_AND_ONES = ["C,0,1,", "CC,1.0,,0", "CO,,NA,0.0", "O,1,0,0", "N,nan,,"]
TARGETS = [[0, 1, np.nan], [1, np.nan, 0], [np.nan, np.nan, 0], [1, 0, 0], [np.nan] * 3]


@pytest.mark.parametrize("task", [None, "classification", "multilabel"])
def test_several_targets_with_two_classes(task, tmp_path):
    path = table(tmp_path / "m.csv", *ZEROS_AND_ONES)
    graphs = read_graphs(path, targets=["a", "b", "c"], task=task)
    assert (graphs.task, graphs.classes) == ("multilabel", ("0", "1"))
    assert graphs.target_names == ("a", "b", "c")
    np.testing.assert_array_equal(graphs.targets, TARGETS)
    assert graphs.is_labelled.tolist() == [True] * 4 + [False]
    assert summary(graphs)["targets"]["b"] == {"0": 1, "1": 1, "missing": 3}
    values = read_graphs(path, targets=["a", "b", "c"], task="regression")
    np.testing.assert_array_equal(values.targets, TARGETS)
    assert values.task == "regression"


def test_several_targets_with_the_same_two_names(tmp_path):
    path = table(tmp_path / "m.csv", "C,yes,no,0", "CC,no,,1", "CO,yes,no,0", "O,yes,no,1")
    graphs = read_graphs(path, targets=["a", "b"])
    assert (graphs.task, graphs.classes) == ("multilabel", ("no", "yes"))
    np.testing.assert_array_equal(graphs.targets, [[1, 0], [0, np.nan], [1, 0], [1, 0]])
    with error_with("one column of classes, several of the same two classes", 'task="regression"'):
        read_graphs(path, targets=["a", "c"])
    with error_with("two classes, the same in all of a, c", "4: 0, 1, no, yes"):
        read_graphs(path, targets=["a", "c"], task="multilabel")
    one = read_graphs(path, targets=["c"], task="multilabel")
    assert (one.task, one.target_names, one.targets.shape) == ("multilabel", ("c",), (4, 1))


@pytest.mark.parametrize("dtype", [torch.long, torch.float])
def test_several_targets_of_a_list(dtype, tmp_path):
    labels = [[0, 1], [1, 1], [0, 0]]
    data = [two_nodes(y=torch.tensor([row], dtype=dtype)) for row in labels] + [two_nodes()]
    torch.save(data, tmp_path / "own.pt")
    for graphs in (from_data_list(data), read_graphs(tmp_path / "own.pt")):
        assert (graphs.task, graphs.classes) == ("multilabel", ("0", "1"))
        assert graphs.target_names == ("y0", "y1")
        np.testing.assert_array_equal(graphs.targets, [*labels, [np.nan, np.nan]])
    assert GraphDataset(graphs, Encoding.fit(graphs, "constant")).num_classes == 2
    assert from_data_list(data, task="regression").task == "regression"
    data[0].y = torch.tensor([[0, 2]], dtype=dtype)
    with error_with("two classes, the same in all of y0, y1", "3: 0, 1, 2"):
        from_data_list(data, task="multilabel")
    if dtype == torch.float:
        assert from_data_list(data).task == "regression"


def test_only_tables_and_lists_have_several_targets(tmp_path):
    for source in (write_tiny_tu(tmp_path), "rings"):
        with error_with("task classification ", "got multilabel", "leave it out"):
            read_graphs(source, task="multilabel")
    with error_with("task", "'several'"):
        read_graphs("rings", task="several")


@pytest.mark.parametrize("cell", ["1.100,5", "1,100e-3", "-12.345.678,9"])
def test_other_decimal_commas(cell, tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    (tmp_path / "m.csv").write_text("smiles;y\n" + f"C;{cell}\n" * 18)
    with error_with("a decimal point in the column 'y'", f"line 2: '{cell}'"):
        read_graphs(tmp_path / "m.csv", targets=["y"])
