"""Datasets in TU layout, and the statistics of any dataset."""

import json
import zipfile
from pathlib import PureWindowsPath

import numpy as np
import pytest

from haarpool.datasets import read_graphs, stream_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.summary import summary
from haarpool.errors import HaarPoolWarning
from helpers.errors import error_with
from helpers.files import REAL, TINY, needs_data, write_tiny_tu


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No data folder and no network, and a cache of its own."""
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HAARPOOL_TU_URL", "http://127.0.0.1:9")


# ------------------------------------------------------------------ TU layout


def test_everything_in_tu_layout(tmp_path):
    graphs = read_graphs(write_tiny_tu(tmp_path / "TINY" / "raw"))
    assert graphs.name == "TINY"
    assert graphs.start.tolist() == [0, 3, 5]
    assert graphs.edges.tolist() == [[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]
    assert graphs.columns["labels"].tolist() == [[3], [5], [3], [3], [9]]
    assert graphs.columns["attributes"][4].tolist() == [4.5, 5]
    # Of the edge that stands twice the first line counts.
    assert graphs.edge_columns["labels"][:, 0].tolist() == [2, 2, 4, 4, 1, 1]
    assert (graphs.task, graphs.classes) == ("classification", ("-1", "7"))
    assert graphs.targets.tolist() == [1, 0]


def test_the_task_follows_from_the_labels_or_is_given(tmp_path):
    folder = write_tiny_tu(tmp_path, graph_labels=None, graph_attributes="1, 2\nnan, 4\n")
    graphs = read_graphs(folder)
    assert (graphs.task, graphs.target_names) == ("regression", ("y0", "y1"))
    np.testing.assert_array_equal(graphs.targets, [[1, 2], [np.nan, 4]])
    assert graphs.is_labelled.all()
    with error_with('labels of graphs for task="classification"', "pass another"):
        read_graphs(folder, task="classification")

    write_tiny_tu(tmp_path, graph_attributes="0.5\n1.5\n")
    assert read_graphs(folder).classes == ("-1", "7")
    assert read_graphs(folder, task="regression").targets.tolist() == [[0.5], [1.5]]
    (folder / "TINY_graph_attributes.txt").unlink()
    assert read_graphs(folder, task="regression").targets.tolist() == [[7], [-1]]

    write_tiny_tu(tmp_path, graph_labels="0.25\n0.5\n")
    assert read_graphs(folder).task == "regression"
    assert read_graphs(folder, task="classification").classes == ("0.25", "0.5")

    write_tiny_tu(tmp_path, graph_labels="3\nnan\n")
    graphs = read_graphs(folder)
    assert (graphs.classes, graphs.targets.tolist()) == (("3",), [0, -1])
    assert graphs.is_labelled.tolist() == [True, False]

    write_tiny_tu(tmp_path, graph_labels=None)
    graphs = read_graphs(folder)
    assert graphs.task is graphs.targets is None
    with error_with('labels of graphs for task="regression"', "add the file"):
        read_graphs(folder, task="regression")
    with error_with("expected task ", '"classification"', "'ranking'"):
        read_graphs(folder, task="ranking")


DAMAGE = {
    "a line cut off": ({"A": TINY["A"] + "4,"}, "2 numbers per line", "TINY_A.txt", "line 8: '4,'"),
    "a word": ({"A": "1, 2\n2, x\n"}, "TINY_A.txt", "line 2: '2, x'"),
    "a half": ({"A": "1, 2\n2, 1.5\n"}, "whole numbers", "line 2"),
    "no such node": ({"A": "1, 2\n1, 6\n"}, "two nodes of 1..5", "line 2: '1, 6'"),
    "node 0": ({"A": "1, 2\n\n0, 1\n"}, "two nodes of 1..5", "line 3: '0, 1'", "nodes from 1"),
    "across graphs": ({"A": "1, 2\n2, 4\n"}, "in one graph", "line 2: '2, 4'"),
    "ids from 0": ({"graph_indicator": "0\n0\n0\n1\n1\n"}, "ids from 1", "line 1: '0'"),
    "ids in words": ({"graph_indicator": "a\nb\nb\nc\nc\n"}, "1 numbers per line", "line 1: 'a'"),
    "fewer labels than ids": (
        {"graph_indicator": "1\n1\n2\n4\n4\n", "A": "1, 2\n2, 1\n", "edge_labels": None},
        "4 lines, one per graph", "TINY_graph_labels.txt", "2 lines", "add the missing lines",
    ),
    "no nodes": ({"graph_indicator": ""}, "ids from 1", "no lines"),
    "too few labels": ({"node_labels": "3\n"}, "5 lines, one per node", "node_labels", "1 lines"),
    "too few classes": ({"graph_labels": "3\n"}, "2 lines, one per graph", "graph_labels"),
    "too few edges": ({"edge_labels": "3\n"}, "7 lines, one per line of A", "edge_labels"),
    "a label as text": ({"node_labels": "3\nC\n3\n3\n9\n"}, "node_labels", "line 2: 'C'"),
    "NaN": ({"node_attributes": "1\n2\nnan\n4\n5\n"}, "finite", "node_attributes", "line 3: 'nan'"),
    "two classes": ({"graph_labels": "1, 2\n2, 3\n"}, "one label per line", "graph_labels"),
    "lines of other lengths": ({"A": "1,2,2\n1\n"}, "2 numbers per line", "line 1: '1,2,2'"),
    "too few on a line": ({"node_attributes": "1,2\n3\n4,5,6\n7,8\n9,1\n"}, "2 num", "line 2: '3'"),
    "a blank for a comma": ({"A": "1 2,1\n,2\n"}, "2 numbers per line", "line 1: '1 2,1'"),
    "an underscore": ({"node_labels": "3\n1_5\n3\n3\n9\n"}, "node_labels", "line 2: '1_5'"),
    "too large": ({"node_labels": f"3\n{2**63}\n3\n3\n9\n"}, "64 bits", "line 2: '9223"),
    "too small": ({"node_labels": f"3\n3\n{-(2**63) - 1}\n3\n9\n"}, "64 bits", "line 3: '-9223"),
    "infinity": ({"graph_labels": "1\ninf\n"}, "finite numbers", "graph_labels", "line 2: 'inf'"),
    "an empty line": ({"node_labels": "3\n\n3\n3\n9\n"}, "5 lines", "4 lines besides", "line 2"),
    "real labels": (
        {"node_labels": "0.5\n1\n2\n3\n4\n"}, "whole numbers", "into TINY_node_attributes.txt",
    ),
    "semicolons": ({"A": "1;2\n2;1\n"}, "2 numbers per line", "line 1: '1;2'"),
    "some text": ({"graph_labels": "7\nx\n"}, "1 numbers per line", "line 2: 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_names_file_and_line(name, tmp_path):
    changes, *parts = DAMAGE[name]
    folder = write_tiny_tu(tmp_path, **changes)
    with error_with(*parts) as error:
        read_graphs(folder)
    assert "download" not in str(error.value)


def test_damaged_downloads_are_downloaded_again(tmp_path):
    folder = write_tiny_tu(tmp_path / "cache" / "downloads" / "TINY" / "raw", node_labels="3\n")
    with error_with("5 lines, one per node", f"delete {folder} to download it again"):
        read_graphs(folder)


# The same dataset, written in another way.
SPELLINGS = {
    "blanks": {
        "A": TINY["A"].replace(",", ""),
        "node_attributes": TINY["node_attributes"].replace(",", " "),
    },
    "tabs": {"A": TINY["A"].replace(", ", "\t")},
    "blanks around": {"A": TINY["A"].replace("\n", "  \n "), "node_labels": " 3 \n5\n 3\n3\n9\n"},
    "empty lines": {kind: "\n" + text.replace("\n", "\n \n\n", 2) for kind, text in TINY.items()},
    "a final empty line": {kind: text + "\n\n" for kind, text in TINY.items()},
    "no final newline": {kind: text.rstrip() for kind, text in TINY.items()},
    "line ends of Windows": {kind: text.replace("\n", "\r\n") for kind, text in TINY.items()},
    "unsorted nodes": {
        "A": "2, 4\n3, 1\n1, 3\n3, 5\n5, 3\n4, 2\n1, 3\n",
        "graph_indicator": "1\n2\n1\n2\n1\n",
        "node_labels": "3\n3\n5\n9\n3\n",
        "node_attributes": "0.5, 1\n3.5, 4\n1.5, 2\n4.5, 5\n2.5, 3\n",
    },
    "ids that skip, labels that do not": {"graph_indicator": "3\n3\n3\n10\n10\n"},
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings(name, tmp_path):
    plain = read_graphs(write_tiny_tu(tmp_path / "plain")).digest()
    assert read_graphs(write_tiny_tu(tmp_path / "other", **SPELLINGS[name])).digest() == plain


def test_graphs_without_nodes_are_left_out(tmp_path):
    plain = read_graphs(write_tiny_tu(tmp_path / "plain"))
    folder = write_tiny_tu(
        tmp_path / "gaps", graph_indicator="2\n2\n2\n4\n4\n", graph_labels="5\n7\n5\n-1\n6\n"
    )
    with pytest.warns(HaarPoolWarning, match="^3 of 5 graphs of TINY have no nodes and are left"):
        graphs = read_graphs(folder)
    assert graphs.digest() == plain.digest()
    assert [graphs.where(g) for g in range(2)] == ["graph 1", "graph 3"]
    (folder / "TINY_graph_labels.txt").unlink()
    with pytest.warns(HaarPoolWarning, match="2 of 4 graphs"):
        assert [graphs.where(0) for graphs in stream_graphs(folder, block=1)] == [
            "graph 1",
            "graph 3",
        ]


def test_an_empty_label_belongs_to_its_line(tmp_path):
    """There are as many labels as graphs with nodes, but also a line for each id."""
    folder = write_tiny_tu(
        tmp_path, graph_indicator="1\n1\n2\n4\n4\n", A="1, 2\n2, 1\n4, 5\n5, 4\n",
        edge_labels="1\n1\n1\n1\n", graph_labels="1\n\n0\n1\n",
    )  # fmt: skip
    with pytest.warns(HaarPoolWarning, match="1 of 4 graphs of TINY have no nodes"):
        graphs = read_graphs(folder)
    assert [graphs.where(g) for g in range(3)] == ["graph 0", "graph 1", "graph 3"]
    assert graphs.is_labelled.tolist() == [True, False, True]


def test_labels_as_text(tmp_path):
    folder = write_tiny_tu(
        tmp_path, node_labels="C\nN\nC\n7\nC alpha\n", graph_labels="toxic\nharmless, weak\n",
        edge_labels="-\n=\n=\n-\n-\n-\n-\n",
    )  # fmt: skip
    graphs = read_graphs(folder)
    assert graphs.columns["labels"][:, 0].tolist() == ["C", "N", "C", "7", "C alpha"]
    assert graphs.edge_columns["labels"][:, 0].tolist() == ["=", "=", "-", "-", "-", "-"]
    assert (graphs.task, graphs.classes) == ("classification", ("harmless, weak", "toxic"))
    assert graphs.targets.tolist() == [1, 0]
    encoding = Encoding.fit(graphs, "labels")
    assert encoding.encode(graphs).argmax(axis=1).tolist() == [1, 3, 1, 0, 2]
    assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    assert summary(graphs)["node labels"] == 4
    other = read_graphs(write_tiny_tu(tmp_path / "other", node_labels="C\nN\nO\nC\nC\n"))
    with pytest.warns(HaarPoolWarning, match="1 of 5 nodes of TINY .* such as O in graph 0"):
        assert encoding.encode(other).sum(axis=1).tolist() == [1, 1, 0, 1, 1]
    numbers = read_graphs(write_tiny_tu(tmp_path / "numbers"))
    for one, data in ((encoding, numbers), (Encoding.fit(numbers, "labels"), graphs)):
        with error_with("labels of nodes like", "in graph 0"):
            one.encode(data)
    with error_with("1 numbers per line", "graph_labels", "line 1: 'toxic'"):
        read_graphs(folder, task="regression")


def test_missing_labels_of_graphs(tmp_path):
    only = dict.fromkeys(("node_labels", "node_attributes", "edge_labels"))
    ids = "1\n2\n3\n4\n"
    for labels in ("a\n\nb\na\n", "a\nNaN\nb\na\n"):
        write_tiny_tu(tmp_path, **only, graph_indicator=ids, A="1, 1\n", graph_labels=labels)
        graphs = read_graphs(tmp_path)
        assert (graphs.classes, graphs.targets.tolist()) == (("a", "b"), [0, -1, 1, 0])


def test_labels_that_all_differ_need_a_task(tmp_path):
    only = dict.fromkeys(("node_labels", "node_attributes", "edge_labels"))
    ids = "\n".join(str(g + 1) for g in range(60))
    for labels in (range(60), [f"graph {g}" for g in range(60)], [g // 3 * 2 for g in range(60)]):
        text = "\n".join(map(str, labels))
        write_tiny_tu(tmp_path, **only, graph_indicator=ids, A="1, 1\n", graph_labels=text)
        if len(set(labels)) == 60:
            parts = ("the labels of TINY", "60 different ones of 60 graphs", "or regression")
            with error_with(*parts):
                read_graphs(tmp_path)
        classes = read_graphs(tmp_path, task="classification").classes
        assert len(classes) == len(set(labels))
    assert len(read_graphs(tmp_path).classes) == 20


def test_whole_numbers_may_have_a_decimal_point(tmp_path):
    graphs = read_graphs(write_tiny_tu(tmp_path, node_labels="3.0\n5\n3\n3\n9e0\n"))
    assert graphs.columns["labels"].tolist() == [[3], [5], [3], [3], [9]]


def test_whole_numbers_keep_all_digits(tmp_path):
    labels = [2**63 - 1, -(2**63), 2**62 + 1, 2**62, 9]
    for text in ("\n".join(map(str, labels)), "\n".join(map(str, labels)) + ".0"):
        graphs = read_graphs(write_tiny_tu(tmp_path, node_labels=text))
        assert graphs.columns["labels"][:, 0].tolist() == labels


def test_a_byte_order_mark_is_skipped(tmp_path):
    plain = read_graphs(write_tiny_tu(tmp_path)).digest()
    for path in tmp_path.glob("*.txt"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_graphs(tmp_path).digest() == plain


def test_zip_files(tmp_path):
    folder = write_tiny_tu(tmp_path / "TINY")
    with zipfile.ZipFile(tmp_path / "OTHER.zip", "w") as packed:
        for path in folder.iterdir():
            packed.write(path, f"TINY/{path.name}")
    for source in (tmp_path / "OTHER.zip", "other"):
        assert read_graphs(source, tmp_path).digest() == read_graphs(folder).digest()
    (tmp_path / "OTHER.zip").write_bytes(b"PK nothing")
    with error_with("a readable file", "OTHER.zip", "save it again"):
        read_graphs("OTHER", tmp_path)
    (folder / "TINY_A.txt").write_bytes(b"\xff\xfe")
    with error_with("a readable file", "TINY_A.txt", "decode", "UTF-8"):
        read_graphs(folder)


def write_zip(path, *members):
    with zipfile.ZipFile(path, "w") as packed:
        for member, kind in members:
            packed.writestr(zipfile.ZipInfo(member), TINY.get(kind, "junk"))
    return path


@pytest.mark.parametrize(
    "member",
    [
        "TINY//TINY_{}.txt",  # as in the TU collection
        "./TINY/TINY_{}.txt",
        "./TINY_{}.txt",
        "/TINY/TINY_{}.txt",
        "TINY\\TINY_{}.txt",
        "data/TINY/raw/TINY_{}.txt",
    ],
)
def test_names_in_zip_files(tmp_path, member):
    files = [(member.format(kind), kind) for kind in TINY]
    others = [("__MACOSX/TINY/._" + PureWindowsPath(member.format(kind)).name, "") for kind in TINY]
    path = write_zip(tmp_path / "any.zip", *files, *others, ("TINY/", ""), ("README.md", ""))
    graphs, expected = read_graphs(path), read_graphs(write_tiny_tu(tmp_path / "TINY"))
    assert (graphs.name, graphs.digest()) == ("TINY", expected.digest())


def test_zip_files_with_several_datasets(tmp_path):
    files = [(f"{name}/{name}_{kind}.txt", kind) for name in ("ONE", "TWO") for kind in TINY]
    with error_with("one dataset", "or one named any, in", "got 2: ONE/ONE, TWO/TWO;"):
        read_graphs(write_zip(tmp_path / "any.zip", *files))
    assert read_graphs(write_zip(tmp_path / "two.zip", *files)).name == "TWO"


def test_zip_files_without_dataset(tmp_path):
    pictures = [(f"pictures/{i}.png", "") for i in range(1200)]
    with error_with("NAME_A.txt and NAME_graph_indicator.txt in", "1,200: pictures/0.png, "):
        read_graphs(write_zip(tmp_path / "any.zip", *pictures))
    with error_with("and 1,195 more; name a zip file with the files of a dataset"):
        read_graphs(tmp_path / "any.zip")
    with error_with("got no files"):
        read_graphs(write_zip(tmp_path / "none.zip"))
    with error_with("NAME_graph_indicator.txt in", "got 1: TINY/TINY_A.txt"):
        read_graphs(write_zip(tmp_path / "half.zip", ("TINY/TINY_A.txt", "A")))


def test_damaged_zip_files(tmp_path):
    folder = write_tiny_tu(tmp_path / "TINY", A=TINY["A"] * 50, edge_labels=None)
    path = tmp_path / "OTHER.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in folder.iterdir():
            packed.write(file, f"TINY/{file.name}")
    content = path.read_bytes()
    for offset in (0, 40, 60, 80):  # in the header and in the compressed text of the first file
        damaged = bytearray(content)
        damaged[offset : offset + 12] = b"\xff" * 12
        path.write_bytes(damaged)
        with error_with("OTHER.zip"):
            read_graphs(path)
    path.write_bytes(content[: len(content) // 2])
    with error_with("a readable file", "OTHER.zip"):
        read_graphs(path)


def test_digests_depend_on_edge_labels(tmp_path):
    one = read_graphs(write_tiny_tu(tmp_path)).digest()
    assert read_graphs(write_tiny_tu(tmp_path)).digest() == one
    assert read_graphs(write_tiny_tu(tmp_path, edge_labels="1\n2\n2\n4\n4\n1\n9\n")).digest() == one
    assert read_graphs(write_tiny_tu(tmp_path, edge_labels="1\n9\n2\n4\n4\n1\n8\n")).digest() != one


def test_blocks_are_the_same_graphs(tmp_path):
    graphs = read_graphs(write_tiny_tu(tmp_path))
    blocks = list(stream_graphs(tmp_path, block=1))
    assert [block.sizes.tolist() for block in blocks] == [[3], [2]]
    assert blocks[1].edges.tolist() == [[0, 1], [1, 0]]
    assert blocks[1].columns["labels"].tolist() == graphs.columns["labels"][3:].tolist()


def test_parts_keep_the_numbers_of_the_input(tmp_path):
    count = 12
    ids = "\n".join(str(1 + g // 2) for g in range(2 * count))
    only = dict.fromkeys(("graph_labels", "node_labels", "node_attributes", "edge_labels"))
    write_tiny_tu(tmp_path, **only, graph_indicator=ids, A="1, 2\n2, 1\n")
    blocks = list(stream_graphs(tmp_path, block=5))
    assert [block.where(1) for block in blocks] == ["graph 1", "graph 6", "graph 11"]
    assert blocks[1].take(np.array([3, 0])).where(0) == "graph 8"
    assert read_graphs(tmp_path).where(7) == "graph 7"


# ------------------------------------------------------------------ statistics


def test_summary_by_hand(tmp_path):
    graphs = read_graphs(write_tiny_tu(tmp_path, A="1, 2\n2, 1\n4, 4\n", edge_labels=None))
    found = summary(graphs)
    assert found["classes"] == {"-1": 1, "7": 1}
    assert found["nodes"] == {"mean": 2.5, "min": 2, "max": 3}
    assert found["edges"] == {"mean": 0.5, "min": 0, "max": 1}
    assert (found["isolated nodes"], found["graphs with isolated nodes"]) == (3, 2)
    assert (found["disconnected graphs"], found["most components"]) == (2, 2)
    assert (found["self-loops"], found["missing labels"], found["node labels"]) == (1, 0, 3)
    assert found["node columns"] == {"labels": 1, "attributes": 2}
    write_tiny_tu(tmp_path, graph_labels=None, graph_attributes="1\nnan\n")
    found = summary(read_graphs(tmp_path))
    assert found["targets"] == {
        "y": {"mean": 1.0, "min": 1.0, "max": 1.0, "std": 0.0, "missing": 1}
    }
    assert found["missing labels"] == 1


# graphs, nodes, edges (mean, min, max), labels, isolated nodes, disconnected graphs, components
PUBLISHED = {
    "MUTAG": (188, (17.93, 10, 28), (19.79, 10, 33), [63, 125], 7, 0, 0, 1),
    "PROTEINS": (1113, (39.06, 4, 620), (72.82, 5, 1049), [663, 450], 3, 5, 46, 9),
    "NCI1": (4110, (29.87, 3, 111), (32.30, 2, 119), [2053, 2057], 37, 428, 580, 10),
    "NCI109": (4127, (29.68, 4, 111), (32.13, 3, 119), [2048, 2079], 38, 474, 608, 10),
    "MUTAGEN": (4337, (30.32, 4, 417), (30.77, 3, 112), [2401, 1936], 14, 2401, 297, 319),
}


@needs_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_table_of_the_paper(name):
    found = summary(read_graphs(name, REAL))
    assert PUBLISHED[name] == (
        found["graphs"],
        *((round(s["mean"], 2), s["min"], s["max"]) for s in (found["nodes"], found["edges"])),
        list(found["classes"].values()),
        found["node labels"],
        found["isolated nodes"],
        found["disconnected graphs"],
        found["most components"],
    )
