"""Names from data on the terminal: column names, classes and files with control characters."""

import json

import pytest
import torch
from torch_geometric.data import Data

from haarpool._text import printable
from helpers.commands import run_main

RED, SHOWN = "\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Molecules with a column of classes whose name, and one of whose classes, is in colour."""
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    monkeypatch.chdir(tmp_path)
    rows = [f"{'C' * n},{RED if n % 2 else 'ring'}" for n in range(1, 41)]
    (tmp_path / "table.csv").write_text("\n".join([f"smiles,{RED}", *rows]) + "\n")
    return tmp_path / "table.csv"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ç, 日本, 🧪, a\u200db", "ç, 日本, 🧪, a\u200db"),  # a joiner is part of words
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J\r", r"\x9b2J\r"),
        ("abc\u202edcb", r"abc\u202edcb"),  # reverses what follows
        ("\udc80", r"\udc80"),  # a byte that is no text, in the name of a file
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert printable(text) == shown


def test_names_of_columns_and_classes(table):
    outputs = [
        run_main("info", table, "--target", RED),
        run_main("info", table),
        run_main("train", table, "--target", "x", code=2),
        run_main("train", table, "--task", "regression", code=2),
    ]
    for out, err, _ in outputs:
        assert SHOWN in out + err
        assert "\x1b" not in out + err
    found = json.loads(run_main("info", table, "--json", "--target", RED).out)
    assert found["classes"] == {RED: 20, "ring": 20}


@pytest.mark.usefixtures("blank_report")
def test_predictions_keep_the_names(table):
    """They are data for another program, but not on a terminal."""
    out = run_main("train", table, "--quiet", "--epochs", 1, "--width", 8, "--out", "run").out
    assert f"target      {SHOWN}\n" in out
    out = run_main("predict", "run", table, "--quiet").out
    assert out.splitlines()[0] == f"line,smiles,prediction,p({RED}),p(ring)"
    out = run_main("predict", "run", table, "--quiet", terminal=True).out
    assert out.splitlines()[0] == f"line,smiles,prediction,p({SHOWN}),p(ring)"


@pytest.mark.usefixtures("blank_report")
def test_warnings(tmp_path):
    edge = torch.tensor([[0, 1], [1, 0]])
    labels = [0.0, 1.0] * 10 + [float("nan")]
    graphs = [Data(edge_index=edge, num_nodes=2, y=torch.tensor([label])) for label in labels]
    path = tmp_path / "a\x1bb.pt"
    torch.save(graphs, path)
    arguments = ("--quiet", "--epochs", 1, "--width", 8, "--out", tmp_path / "run")
    err = run_main("train", path, *arguments).err
    assert "graphs of a\\x1bb have no label" in err
    assert "\x1b" not in err
