"""What commands say before torch is imported, which takes seconds."""

import json
import re
import sys
from pathlib import Path

import pytest

from helpers.commands import HAARPOOL, run_in_terminal, run_main, run_process, run_python

pytestmark = pytest.mark.usefixtures("without_data")
LOADING = "haarpool: loading torch ...\n"
SMALL = ("rings", "--arch", "GC8-HP-FC8", "--epochs", 1)

# Call commands one after the other; say whether torch is imported when each ends.
_CALLS = """
import sys
from haarpool.cli import main
for command in sys.argv[1:]:
    code = main(command.split())
    print(code, "torch" in sys.modules)
"""

ERRORS = {
    "no run to predict": ("predict runs/nothere", "a run folder at runs/nothere, got no folder"),
    "no run to report": ("report nothere", "a run folder at nothere, got no folder"),
    "no run to resume": ("train --resume nothere", "a run folder at nothere, got no folder"),
    "an unfinished run": ("predict unfinished", "finish the run with haarpool train --resume"),
    "settings beside --resume": ("train --resume nothere --epochs 3", "got --epochs; leave"),
    "no file to train": ("train nofile.csv", "'nofile.csv', which does not exist"),
    "no file to predict": ("predict complete nofile.csv", "'nofile.csv', which does not exist"),
    "no such dataset": ("train MUTAH", "did you mean MUTAG?"),
    "no number of folds": ("train rings --split kfold:x", "got 'kfold:x'"),
    "no file of splits": ("train rings --split no.json", "'no.json', which is no file that exists"),
    "no such root": ("train MUTAG --root nothere", "check --root"),
    "a folder that exists": ("train rings --out taken", "choose another folder, or remove it"),
    "no epochs": ("train rings --epochs 0", "expected --epochs >= 1, got 0"),
    "a ratio": ("train rings --ratio 1.5", "expected --ratio in (0, 1), got 1.5"),
    "an architecture": ("train rings --arch GC8-XP-FC8", "»XP«"),
    "a method": ("train rings --method magic", '--method "'),
    "a preset": ("train rings --preset paper", "a dataset of the paper for --preset paper"),
    "no dataset named": ("train --epochs 0", "expected --epochs >= 1, got 0"),
}


@pytest.fixture
def folders():
    """A folder with a file, and runs with and without a model."""
    Path("taken").mkdir()
    Path("taken/file").write_text("mine")
    for name in ("unfinished", "complete"):
        Path(name).mkdir()
        config = {"format": 2, "data": {"read": {"source": "rings"}}}
        Path(name, "config.json").write_text(json.dumps(config))
    Path("complete/model.safetensors").write_text("")


def test_errors_that_need_no_torch(folders):
    """All in one process: it has never imported torch."""
    commands = [command for command, _ in ERRORS.values()]
    out, err, _ = run_python(_CALLS, *commands)
    assert out.splitlines() == ["2 False"] * len(ERRORS)
    for (name, (_, message)), line in zip(ERRORS.items(), err.splitlines(), strict=True):
        assert message in line, name


def test_datasets_that_would_be_downloaded_are_checked_later():
    """Nothing is downloaded before rank 0 does it for all processes."""
    code = (
        "import sys\n"
        "from haarpool.datasets import find_dataset, locations\n"
        "locations.fetch = None\n"
        "print([find_dataset(name, download=False) for name in ('COLLAB', 'qm7', 'rings')])"
    )
    assert run_python(code).out == "[None, None, None]\n"


@pytest.mark.slow
def test_one_line_in_a_log():
    out, err, _ = run_process(HAARPOOL, "train", *SMALL)
    assert err == LOADING
    assert "loading" not in out
    out, err, _ = run_process(HAARPOOL, "train", *SMALL, "--json")
    assert err == LOADING
    assert json.loads(out)["dataset"] == "rings"
    for command in (("train", *SMALL), ("predict", "runs/rings-1")):
        assert run_process(HAARPOOL, *command, "--quiet").err == ""
    assert run_process(HAARPOOL, "report", "runs/rings-1").err == ""  # it has no progress


@pytest.mark.slow
def test_a_line_on_a_terminal_disappears():
    shown = run_in_terminal(HAARPOOL, "train", *SMALL)
    assert re.match(r"loading torch \.\.\.\r {17,}\r", shown)
    assert "haarpool: loading" not in shown
    assert "loading" not in run_in_terminal(HAARPOOL, "train", *SMALL, "--quiet")
    assert "loading" not in run_in_terminal(HAARPOOL, "methods")


def test_a_program_that_has_torch_sees_no_line():
    assert "torch" in sys.modules or __import__("torch")
    assert run_main("train", *SMALL).err == ""
