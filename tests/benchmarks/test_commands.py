"""`python -m benchmarks`."""

import json
from functools import partial
from pathlib import Path

import pytest

from benchmarks import parts
from benchmarks.__main__ import main
from benchmarks.parts import collating
from benchmarks.results import Measurement
from helpers.commands import run_main

run_benchmarks = partial(run_main, main=main)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sparse")  # PyG, in ASAPooling
def test_all_parts_in_small(tmp_path):
    out = run_benchmarks("--device", "cpu", "--quick", "--out", tmp_path, HAARPOOL_DATA="").out
    written = json.loads((tmp_path / "bench-cpu-quick.json").read_text())
    assert {"processor", "cores", "torch", "python"} <= written["machine"].keys()
    parts = {line["part"] for line in written["lines"]}
    assert parts == {
        *("timing", "eager", "transforms", "growth", "training", "memory", "chains", "collating")
    }
    assert all(line["name"] in out for line in written["lines"])
    errors = {line["error"] for line in written["lines"]}
    assert errors == {"", "left out: very slow"}  # EdgePooling, memory
    assert (tmp_path / "bench-cpu-quick.png").stat().st_size > 5000


def test_some_parts(tmp_path):
    only = ("--device", "cpu", "--quick", "--only", "collating,growth")
    out = run_benchmarks(*only, "--out", tmp_path).out
    assert "0 of 6 lines failed" in out
    lines = json.loads((tmp_path / "bench-cpu-quick.json").read_text())["lines"]
    assert [line["part"] for line in lines] == ["collating"] * 2 + ["growth"] * 4


def test_a_missed_limit_and_a_part_that_fails_give_code_1(tmp_path, monkeypatch):
    arguments = ("--device", "cpu", "--only", "collating", "--out", tmp_path)

    def miss(options):
        yield Measurement("too slow", 5.0, at_most=4.0)

    def fail(options):
        yield Measurement("fine", 1.0)
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(collating, "run", miss)
    assert "FAILED (<= 4)" in run_benchmarks(*arguments, code=1).out
    monkeypatch.setattr(collating, "run", fail)
    out = run_benchmarks(*arguments, code=1).out
    assert "RuntimeError: no such kernel" in out
    assert "1 of 2 lines failed" in out
    monkeypatch.setattr(collating, "run", miss)  # tiny sizes have no limits
    assert "0 of 1 lines failed" in run_benchmarks(*arguments, "--quick").out


def test_a_part_with_a_file_of_its_own(tmp_path):
    only = ("--device", "cpu", "--quick", "--only", "denoising", "--out", tmp_path)
    assert "0 of 15 lines failed" in run_benchmarks(*only).out
    (path,) = tmp_path.iterdir()
    assert path.name == "denoising-quick.json"
    content = json.loads(path.read_text())
    assert content.keys() == {"machine", "results"}
    assert {line["part"] for line in content["results"]} == {"denoising"}


def test_a_part_that_fails_leaves_its_file(tmp_path):
    path = tmp_path / "padded.json"
    path.write_text("as before")
    out = run_benchmarks("--device", "cpu", "--only", "padded", "--out", tmp_path, code=1).out
    assert "FAILED  left out: needs a GPU" in out
    assert path.read_text() == "as before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_parts_that_run_the_command(tmp_path):
    pytest.importorskip("rdkit")
    only = ("--device", "cpu", "--quick", "--only", "large_data,training_loop")
    out = run_benchmarks(*only, "--out", tmp_path, HAARPOOL_CACHE=tmp_path / "cache").out
    assert "0 of 7 lines failed" in out
    assert (tmp_path / "training-quick.json").exists()
    lines = json.loads((tmp_path / "large_data-quick.json").read_text())["results"]
    assert all(0.01 < line["value"] < 4 for line in lines)  # GB


def test_list():
    lines = run_benchmarks("--list").out.splitlines()
    assert len(lines) == len(list(Path(parts.__path__[0]).glob("[!_]*.py")))
    assert "training_loop: the training loop beside a bare one" in "\n".join(lines)
    assert sum("(on request, " in line for line in lines) == 8


def test_unknown_part(tmp_path):
    err = run_benchmarks("--only", "timing,speed", "--out", tmp_path, code=2).err
    assert "speed" in err
    assert "collating" in err
