"""Reading datasets in all formats by one function."""

import numpy as np
import pytest

from haarpool.datasets import as_graphs, read_graphs, stream_graphs
from helpers.commands import run_python
from helpers.errors import error_with
from helpers.files import write_tiny_tu


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No data folder and no network, and a cache of its own."""
    monkeypatch.delenv("HAARPOOL_DATA", raising=False)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HAARPOOL_TU_URL", "http://127.0.0.1:9")


def test_columns_are_for_csv_files():
    with error_with("a CSV file", "'rings' together with columns", "smiles and targets"):
        read_graphs("rings", targets=["y"])


def test_the_task_is_checked():
    with error_with("expected task ", '"classification"', "'ranking'"):
        read_graphs("rings", task="ranking")


def test_blocks_are_parts_of_the_dataset():
    blocks = list(stream_graphs("rings", block=100))
    assert [len(block) for block in blocks] == [100, 100, 40]
    assert np.concatenate([block.targets for block in blocks]).tolist() == [0, 1] * 120
    with error_with("block >= 1", "0"):
        next(stream_graphs("rings", block=0))


def test_nothing_heavy_is_loaded(tmp_path):
    write_tiny_tu(tmp_path / "TINY")
    code = (
        "import sys\nfrom haarpool.datasets import read_graphs\n"
        "from haarpool.datasets.summary import summary\n"
        "import haarpool.datasets.encoding\nsummary(read_graphs(sys.argv[1]))\n"
        "print({'torch', 'torch_geometric', 'rdkit', 'sklearn', 'grakel'} & set(sys.modules))"
    )
    assert run_python(code, tmp_path / "TINY").out == "set()\n"


def test_any_form_of_graphs(tmp_path):
    graphs = as_graphs(write_tiny_tu(tmp_path))
    assert as_graphs(graphs) is graphs
    with error_with("a list of PyG Data", "int"):
        as_graphs(3)
    with error_with("a PyG Data", "int in graph 0"):
        as_graphs([3])
