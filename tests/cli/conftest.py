"""Data for the commands."""

import pytest

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
