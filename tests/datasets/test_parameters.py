"""Errors about a parameter name it, in Python and in the shell."""

import inspect

import pytest

from haarpool import HaarPoolError, load_dataset
from haarpool.cli.flags import shell_words
from haarpool.datasets import read_graphs, stream_graphs
from haarpool.datasets.splits import make_splits
from haarpool.errors import python_words

pytestmark = pytest.mark.usefixtures("without_data")

# parameter: (values of a bad call, what Python calls it, what the shell calls it)
BAD = {
    "source": ({"source": "no-such-data"}, "source", "DATASET"),
    "root": ({"root": "nowhere"}, "root", "--root"),
    "task": ({"task": "ranking"}, "task", "--task"),
    "features": ({"features": "colour"}, "features", "--features"),
    "seed": ({"seed": -1}, "seed", "--seed"),
    "smiles": ({"source": "m.csv", "smiles": "no"}, "smiles as a column", "--smiles as a column"),
    "targets": ({"source": "m.csv", "targets": ["no"]}, "targets as a c", "--target as a column"),
    "strict": ({"source": "m.csv", "strict": True}, "leave out strict", "leave out --strict"),
    "repeats": ({"repeats": 0}, "repeats", "--repeats"),
    "rule": ({"rule": "sorted"}, "split", "--split"),
    "block": ({"block": 0}, "block", "block"),  # the shell has no such parameter
}
# Any value of these is fine, or is checked by other tests.
ANY = {"progress", "transform", "graphs"}


def rings():
    return read_graphs("rings")


CALLS = {
    "read_graphs": lambda values: read_graphs(**{"source": "rings"} | values),
    "load_dataset": lambda values: load_dataset(**{"source": "rings"} | values),
    "stream_graphs": lambda values: list(stream_graphs(**{"source": "rings"} | values)),
    "make_splits": lambda values: make_splits(**{"rule": "random", "graphs": rings()} | values),
}
FUNCTIONS = [read_graphs, load_dataset, stream_graphs, make_splits]
CASES = [(f.__name__, name) for f in FUNCTIONS for name in inspect.signature(f).parameters]


@pytest.mark.parametrize(("function", "name"), [case for case in CASES if case[1] not in ANY])
def test_a_bad_value_is_named(function, name, tmp_path):
    values, in_python, in_shell = BAD[name]
    if values.get("source") == "m.csv":
        pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
        (tmp_path / "m.csv").write_text("smiles,y\nC,1\nnot a molecule,2\nCC,1\n")
    with pytest.raises(HaarPoolError) as caught:
        CALLS[function](values)
    for words, text in ((python_words, in_python), (shell_words, in_shell)):
        assert text in caught.value.in_words(words).replace("=True", "")


def test_the_other_errors_name_parameters_too(tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    path = tmp_path / "m.csv"
    path.write_text("smiles,y\nC,\nCC,\n")
    cases = {
        "--target with labels in the column 'y'": lambda: read_graphs(path, targets=["y"]),
        "each column once, as --smiles or in --target": lambda: read_graphs(
            path, targets=["y"] * 2
        ),
        "leave out --smiles and --target": lambda: read_graphs("rings", targets=["y"]),
        "--target COLUMN": lambda: read_graphs(path, task="regression"),
        "nodes for --features walks": lambda: load_dataset(large(), features="walks"),
    }

    def large():
        (tmp_path / "big.csv").write_text("smiles\n" + "C" * 4100 + "\n")
        return tmp_path / "big.csv"

    for message, call in cases.items():
        with pytest.raises(HaarPoolError) as caught:
            call()
        assert message in caught.value.in_words(shell_words)
