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
        phrase = "text file of edges"
        suffixes = (".edges",)
        names = ("twopaths",)
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

    path = tmp_path / "two.edges"
    path.write_text("0-1 1-2\n0-1 1-2 2-0\n")
    return path


def test_a_format_is_one_class(toy):
    graphs = read_graphs(toy)
    assert (graphs.name, graphs.sizes.tolist()) == ("seed 0", [3, 3])
    assert read_graphs(toy, seed=5, strict=True).name == "seed 5"  # other options have no effect
    assert [len(block) for block in stream_graphs(toy, block=1)] == [1, 1]
    assert columns_to_predict(toy) is None
    assert as_graphs([Edges("0-1")]).sizes.tolist() == [2]
    assert read_graphs("TwoPaths").sizes.tolist() == [3, 2]
    assert is_available("twopaths")
    assert dict(known_datasets())["twopaths"] == "generated"


def test_help_and_errors_name_it(toy):
    assert "text file of edges" in sources()
    out = " ".join(run_main("train", "--help").out.split())
    assert "text file of edges" in out
    with error_with("text file of edges", "nothing.txt"):
        toy.with_name("nothing.txt").touch()
        read_graphs(toy.with_name("nothing.txt"))
    with error_with("did you mean twopaths"):
        read_graphs("twopath")
    with error_with("a PyG Data or Edges", "complex in graph 0"):
        as_graphs([1j])
    with error_with("a CSV file with SMILES", "together with columns"):
        read_graphs(toy, targets=["y"])
    with error_with("task regression for text file of edges", "classification"):
        read_graphs(toy, task="classification")


def test_commands_read_it(toy):
    about = json.loads(run_main("info", toy, "--json").out)
    assert (about["graphs"], about["total edges"], about["features"]) == (2, 5, "degree (3)")
    assert "2 graphs" in run_main("chain", toy).out


def test_the_longest_suffix_decides(toy, tmp_path):
    @register
    class Packed(Reader):
        suffixes = (".edges.csv",)

        def read(self, source, task=None):
            return read_graphs("twopaths")

    (tmp_path / "a.edges.csv").touch()
    assert len(read_graphs(tmp_path / "a.edges.csv")) == 2
    assert find_source(toy).reader.suffixes == (".edges",)


def test_suffixes_and_names_are_unique(toy):
    for more in ({"suffixes": (".edges", ".x")}, {"names": ("rings",)}):
        with error_with("that only Other reads", "choose others"):
            register(type("Other", (Reader,), more))


def test_all_readers_are_complete():
    for reader in readers():
        assert reader.suffixes or reader.names
        assert reader.phrase or reader.names
        assert all(suffix == suffix.lower() for suffix in reader.suffixes)
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
