"""The command as a whole: help, version, exit codes, completion."""

import signal
import sys
import warnings

import numpy as np
import pytest
import torch

import haarpool as hp
from haarpool import cli
from haarpool.cli.parser import MOVED
from helpers.commands import HAARPOOL, run_main, run_process, run_python

COMMANDS = [
    "chain", "plot", "plot chain", "compare", "cache", "methods", "train", "predict",
    "info", "completion",
]  # fmt: skip


def test_help_fits_a_screen():
    out = run_main("--help").out
    assert len(out.splitlines()) <= 24
    assert "haarpool train digits" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(command):
    out = run_main(*command.split(), "--help").out
    assert "example:\n  haarpool " in out


def test_help_loads_nothing_heavy():
    code = (
        "import sys, contextlib\n"
        "from haarpool.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['train', '--help'])\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'rdkit', 'torch', 'torch_geometric', 'joblib'}\n"
        "print(heavy & set(sys.modules))"
    )
    assert run_python(code).out.endswith("set()\n")


def test_version_and_no_command():
    version = f"haarpool {hp.__version__}\n"
    assert run_main("--version").out == version
    assert run_process(HAARPOOL, "--version").out == version
    assert run_process(sys.executable, "-m", "haarpool", "--version").out == version
    assert "usage: haarpool" in run_main(code=2).out


def test_commands_that_moved_say_where():
    for name, where in MOVED.items():
        assert f"it is now {where}, in a clone" in run_main(name, "--quick", code=2).err


def test_arguments_that_argparse_refuses(root):
    for arguments in (["chain"], ["chain", "X", "--jobs", "two"], ["cache"], ["plot"], ["fly"]):
        err = run_main(*arguments, code=2).err
        assert "usage: haarpool" in err


@pytest.mark.parametrize("command", ["chain", "train", "info"])
def test_debug_raises_the_error(command, root):
    with pytest.raises(hp.HaarPoolError, match="NOTHING"):
        run_main(command, "NOTHING", "--debug", HAARPOOL_DATA=root)


def test_file_errors_are_one_line(cache, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "chains.sqlite")

    monkeypatch.setattr("haarpool.chains.cache.ChainCache.info", refuse)
    err = run_main("cache", "--info", "--cache", cache, code=2).err
    assert err == "haarpool: [Errno 13] Permission denied: 'chains.sqlite'\n"


ALLOCATIONS = {
    "Python": lambda: [None] * 10**18,
    "numpy": lambda: np.empty(10**18),
    "torch": lambda: torch.empty(10**15),
}


@pytest.mark.parametrize("name", ALLOCATIONS)
@pytest.mark.parametrize("command", ["train", "info", "chain"])
def test_too_little_memory_is_one_line(command, name, monkeypatch, root):
    monkeypatch.setattr(
        "haarpool.datasets.readers.tu.layout.read_tu", lambda *_, **__: ALLOCATIONS[name]()
    )
    out, err, _ = run_main(command, "RANDOM", "--root", root, code=2)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("haarpool: out of memory (")


def test_other_errors_keep_their_traceback(monkeypatch, root):
    def fail(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr("haarpool.datasets.readers.tu.layout.read_tu", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        run_main("info", "RANDOM", "--root", root)


def test_a_closed_pipe_is_no_error():
    out, err, _ = run_process("sh", "-c", f"{HAARPOOL} methods | head -1")
    assert out.startswith(min(hp.clusterings()))
    assert err == ""


def test_main_can_be_called_from_a_program(capsys, root, cache):
    """Again and again; it leaves no trace in the process."""
    before = [*warnings.filters], warnings.showwarning, signal.getsignal(signal.SIGINT)
    arguments = ["chain", "RANDOM", "--root", str(root), "--cache", str(cache), "--quiet"]
    for computed in (30, 0):
        assert cli.main(arguments) == 0
        assert f"{computed} chains computed" in capsys.readouterr().out
    assert cli.main(["chain", "NOTHING", "--root", str(root)]) == 2
    after = [*warnings.filters], warnings.showwarning, signal.getsignal(signal.SIGINT)
    assert after == before


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell):
    out = run_main("completion", shell).out
    assert "predict" in out
    assert "--class-weights" in out
    if shell == "bash":
        asked = 'COMP_WORDS=(haarpool tr); COMP_CWORD=1; _shtab_haarpool; echo "${COMPREPLY[@]}"'
        assert run_process("bash", "-c", out + asked).out.split() == ["train"]


def test_completion_without_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)  # as if it were not installed
    assert 'pip install "haarpool[completion]"' in run_main("completion", "bash", code=2).err
