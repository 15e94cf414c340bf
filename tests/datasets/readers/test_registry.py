"""Readers: all that are there, and one that is added here."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import haarpool
from haarpool.datasets import (
    Graphs,
    as_graphs,
    columns_to_predict,
    find_source,
    is_available,
    known_datasets,
    read_graphs,
    stream_graphs,
)
from haarpool.datasets.readers import registry
from haarpool.datasets.readers.registry import Reader, readers, register, sources
from helpers.commands import run_main, run_python
from helpers.errors import error_with

pytestmark = pytest.mark.usefixtures("without_data")


class Edges:
    """Edges of a graph that no reader knows."""

    def __init__(self, pairs):
        self.pairs = pairs


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A format in one class: a graph per line, as pairs of nodes. Returns a file of two graphs."""
    monkeypatch.setattr(registry, "_READERS", dict(registry._READERS))

    @register
    class EdgeList(Reader):
        phrase = "toy file of edges"
        suffixes = (".toy",)
        names = ("twopaths",)
        generates = True
        tasks = ("regression",)
        objects = "Edges"

        def read(self, source, task=None, *, seed=0):
            text = "0-1 1-2\n0-1" if source == "twopaths" else source.read_text()
            return self.convert([Edges(line) for line in text.splitlines()], f"seed {seed}", task)

        def converts(self, one):
            return isinstance(one, Edges)

        def convert(self, objects, name, task=None, *, labels=True):
            parts = [np.array([e.split("-") for e in one.pairs.split()], int) for one in objects]
            start = np.cumsum([0, *(pairs.max() + 1 for pairs in parts)])
            pairs = np.concatenate([p + s for p, s in zip(parts, start, strict=False)])
            return Graphs(name, start, np.concatenate([pairs, pairs[:, ::-1]]).T)

    path = tmp_path / "two.toy"
    path.write_text("0-1 1-2\n0-1 1-2 2-0\n")
    return path


def test_a_format_is_one_class(toy):
    graphs = read_graphs(toy)
    assert (graphs.name, graphs.sizes.tolist()) == ("seed 0", [3, 3])
    assert graphs.take([0]).edges.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]  # graph by graph
    assert read_graphs(toy, seed=5, strict=True).name == "seed 5"  # other options have no effect
    assert [len(block) for block in stream_graphs(toy, block=1)] == [1, 1]
    assert columns_to_predict(toy) is None
    assert as_graphs([Edges("0-1")]).sizes.tolist() == [2]
    assert read_graphs("TwoPaths").sizes.tolist() == [3, 2]
    assert is_available("twopaths")
    assert dict(known_datasets())["twopaths"] == "generated"


def test_help_and_errors_name_it(toy):
    assert "toy file of edges" in sources()
    out = " ".join(run_main("train", "--help").out.split())
    assert "toy file of edges" in out
    with error_with("toy file of edges", "nothing.other"):
        toy.with_name("nothing.other").touch()
        read_graphs(toy.with_name("nothing.other"))
    with error_with("did you mean twopaths"):
        read_graphs("twopath")
    with error_with("PyG Data", "Edges", "complex in graph 0"):
        as_graphs([1j])
    with error_with("a CSV file with SMILES", "together with columns"):
        read_graphs(toy, targets=["y"])
    with error_with("task regression for toy file of edges", "classification"):
        read_graphs(toy, task="classification")
    with error_with('task="regression" from the reader', "EdgeList, got no labels"):
        read_graphs(toy, task="regression")


def test_commands_read_it(toy):
    about = json.loads(run_main("info", toy, "--json").out)
    assert (about["graphs"], about["total edges"], about["features"]) == (2, 5, "degree (3)")
    assert "2 graphs" in run_main("chain", toy).out


def test_the_longest_suffix_decides(toy, tmp_path):
    @register
    class Packed(Reader):
        suffixes = (".toy.csv",)

        def read(self, source, task=None):
            return read_graphs("twopaths")

    (tmp_path / "a.toy.csv").touch()
    assert len(read_graphs(tmp_path / "a.toy.csv")) == 2
    assert find_source(toy).reader.suffixes == (".toy",)


def test_suffixes_and_names_are_unique(toy):
    for more, same, owner in (
        ({"suffixes": (".toy", ".x")}, ".toy in ", "EdgeList of "),
        ({"names": ("Rings",)}, "rings in ", "Rings of haarpool.datasets.readers.rings"),
    ):
        with error_with("readers with different suffixes and names", same, owner, "and Other of "):
            register(type("Other", (Reader,), more))
    with error_with("the same class name in Rings of ", "and Rings of "):
        register(type("Rings", (Reader,), {"suffixes": (".other",)}))


@pytest.mark.parametrize(
    ("attributes", "expected", "got"),
    [
        ({"suffixes": ".lines"}, "suffixes of Other as a tuple", "'.lines'"),
        ({"names": ["karate"]}, "names of Other as a tuple", "['karate']"),
        ({"names": (1,)}, "names of Other as a tuple", "(1,)"),
        ({"names": ("a",), "tasks": "regression"}, "tasks of Other as a tuple", "'regression'"),
        ({"suffixes": ("lines",)}, "suffixes of Other in lower case that start", "'lines'"),
        ({"suffixes": (".Lines",)}, "suffixes of Other in lower case that start", "'.Lines'"),
        ({}, "suffixes, names or objects of Other, or a method find_in", "none"),
    ],
)
def test_what_a_reader_says_is_checked(attributes, expected, got, toy):
    before = readers()
    with error_with(expected, f"got {got}"):
        register(type("Other", (Reader,), attributes))
    assert readers() == before


def test_a_name_without_file_or_address_is_not_available(toy, tmp_path, monkeypatch):
    @register
    class Packed(Reader):
        suffixes = (".toygz",)
        names = ("toy",)

        def read(self, source, task=None):
            return read_graphs(toy)

    parts = ("source of toy on this machine (toy.toygz)", "none", "HAARPOOL_DATA")
    with error_with(*parts):
        read_graphs("toy")
    assert "toy.toygz" in run_main("info", "toy", code=2).err
    assert not is_available("toy")
    assert "toy" not in dict(known_datasets())
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "toy.toygz").touch()
    assert is_available("toy", tmp_path / "root")
    assert len(read_graphs("toy", tmp_path / "root")) == 2


def test_readers_say_what_they_need_in_a_folder(toy, tmp_path):
    (tmp_path / "empty").mkdir()

    @register
    class Folder(Reader):
        content = "nodes.txt"

        def find_in(self, folder, name):
            return folder if (folder / "nodes.txt").is_file() else None

        def read(self, source, task=None):
            return read_graphs(toy)

    with error_with("without NAME_A.txt and", ", or nodes.txt", "check the folder"):
        read_graphs(tmp_path / "empty")
    (tmp_path / "empty" / "nodes.txt").touch()
    assert len(read_graphs(tmp_path / "empty")) == 2


def test_all_readers_are_complete():
    for reader in readers():
        assert reader.suffixes or reader.names
        assert reader.phrase or reader.names
        assert reader.options <= {"smiles", "targets", "strict", "seed", "progress", "labels"}


def test_nothing_else_compares_suffixes_or_names():
    known = {text for one in readers() for text in (*one.suffixes, *one.names)}
    package = Path(haarpool.datasets.__file__).parents[1]
    for path in package.rglob("*.py"):
        if {"readers", "experiments"} & set(path.parts):  # the paper names its datasets
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            compares = isinstance(node, ast.Compare) or (
                isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "endswith"
            )
            inside = ast.walk(node) if compares else ()
            assert not known & {one.value for one in inside if isinstance(one, ast.Constant)}, path


def test_readers_import_little():
    code = (
        "import sys, haarpool.datasets.readers\n"
        "print({'numpy', 'scipy', 'torch', 'rdkit', 'sklearn'} & set(sys.modules))"
    )
    assert run_python(code).out == "set()\n"
