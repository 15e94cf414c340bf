"""Every registered reader with its sample, and the recipe of a reader in CONTRIBUTING.md."""

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from haarpool.datasets import read_graphs, stream_graphs
from haarpool.datasets.readers import registry
from haarpool.datasets.readers.registry import readers, sources
from haarpool.errors import MissingExtraError
from helpers.errors import error_with
from helpers.readers import check_source

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def blank_report(monkeypatch):
    """Reports without content, where drawing them takes longer than the rest of the test."""
    monkeypatch.setattr("haarpool.report.page.render_report", lambda record: "<!doctype html>")


@pytest.mark.parametrize("reader", readers(), ids=str)
def test_a_reader_with_a_sample(reader, tmp_path):
    (tmp_path / "sample").mkdir()
    source = reader.sample(tmp_path / "sample")
    if source is None:
        pytest.skip("it has no sample")
    try:
        check_source(source, tmp_path)
    except MissingExtraError as error:
        pytest.skip(str(error))


def test_most_readers_have_a_sample():
    assert len([one for one in readers() if type(one).sample is not registry.Reader.sample]) >= 5


def test_names_of_graphs_without_lines_are_a_column_of_predictions(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_READERS", dict(registry._READERS))

    @registry.register
    class Named(registry.Reader):
        suffixes = (".named",)

        def read(self, source, task=None):
            rings = read_graphs("rings")
            return replace(rings, ids=[f"ring {g}" for g in range(len(rings))], id_name="kind")

    (tmp_path / "a.named").touch()
    check_source(tmp_path / "a.named", tmp_path)
    header, first, *_ = (tmp_path / "new.csv").read_text().splitlines()
    assert header.startswith("graph,kind,prediction")
    assert first.startswith("0,ring 0,")


# ---------------------------------------------------------------------- the recipe


@pytest.fixture
def recipe(tmp_path):
    """A file with the code of the recipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    file = tmp_path / "edge_lines.py"
    file.write_text(re.search(r"### A format: .*?```python\n(.*?)```", text, re.S)[1])
    return file


@pytest.fixture
def edge_lines(recipe, monkeypatch):
    """The reader of the recipe, registered during a test."""
    others = {name: one for name, one in registry._READERS.items() if name != "EdgeLines"}
    monkeypatch.setattr(registry, "_READERS", others)
    spec = importlib.util.spec_from_file_location("edge_lines", recipe)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return registry._READERS["EdgeLines"]


def test_the_recipe_reads_trains_and_predicts(edge_lines, tmp_path):
    assert "text file of edges" in sources()
    graphs = check_source(edge_lines.sample(tmp_path), tmp_path)
    assert (graphs.classes, graphs.targets.tolist()) == (("path", "ring"), [0, 1] * 8)
    assert graphs.take([1]).edges.tolist() == [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]
    header, first, *_ = (tmp_path / "new.csv").read_text().splitlines()
    assert header == "line,prediction,p(path),p(ring)"
    assert first.startswith("1,")


def test_the_recipe_obeys_the_task_and_finds_bad_lines(edge_lines, tmp_path):
    path = tmp_path / "x.edges"
    path.write_text("1; 1 2; 0-1\n0; 1 2; 0-1\n" * 3)
    assert read_graphs(path).task == "classification"
    assert read_graphs(path, task="regression").targets.tolist() == [[1.0], [0.0]] * 3
    path.write_text("yes; 1 2; 0-1\n" * 3)
    with error_with("numbers as labels", "'yes'"):
        read_graphs(path, task="regression")
    for bad in ("no", "no; 1 x; 0-1", "no; 1 2; 0-2", "no; 1 2; 0-1-2", "no; 1 2; -1-0"):
        path.write_text(f"yes; 1 2; 0-1\n{bad}\n")
        with error_with("LABEL; numbers; edges in", f"line 2: {bad!r}", "correct this line"):
            read_graphs(path)
    for text in ("yes;;\n", ""):
        path.write_text(text)
        with error_with("start", "from the reader EdgeLines"):
            list(stream_graphs(path))


@pytest.mark.slow
def test_the_recipe_passes_the_linter_and_the_type_checker(recipe):
    for command in (
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["mypy", "--no-error-summary"],
    ):
        words = [sys.executable, "-m", *command, recipe]
        config = ["--config", ROOT / "pyproject.toml"] if command[0] == "ruff" else []
        run = subprocess.run(
            [*words, *config],
            cwd=ROOT,
            env=os.environ | {"MYPYPATH": "src"},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr
