"""Data for the commands."""

import pytest

from helpers.commands import run_main
from helpers.files import write_tu
from helpers.graphs import random_graphs


@pytest.fixture
def root(tmp_path):
    """A data folder with the dataset RANDOM of 30 graphs, and an empty folder in it."""
    folder = write_tu(tmp_path / "data", "RANDOM", random_graphs(30))
    size = len((folder / "RANDOM_graph_indicator.txt").read_text().splitlines())
    labels = "\n".join(str(i % 3) for i in range(size))
    (folder / "RANDOM_node_labels.txt").write_text(labels)
    (tmp_path / "data" / "EMPTY").mkdir()
    return tmp_path / "data"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def blank_report(monkeypatch):
    """Reports without content, where drawing them takes longer than the rest of the test."""
    monkeypatch.setattr("haarpool.report.page.render_report", lambda record: "<!doctype html>")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run on generated graphs, made once. Copy it before you change it."""
    folder = tmp_path_factory.mktemp("runs") / "rings"
    small = ("--arch", "GC8-HP-GC8-HP-FC8", "--epochs", 2, "--repeats", 2, "--quiet")
    cache = tmp_path_factory.mktemp("cache")
    run_main("train", "rings", *small, "--out", folder, HAARPOOL_DATA="", HAARPOOL_CACHE=cache)
    return folder
