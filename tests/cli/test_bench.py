"""`haarpool bench`."""

import json

import pytest

from haarpool.bench import collating
from haarpool.bench.results import Measurement
from helpers.commands import run_main


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sparse")  # PyG, in ASAPooling
def test_all_parts_in_small(tmp_path):
    out = run_main("bench", "--device", "cpu", "--quick", "--out", tmp_path, HAARPOOL_DATA="").out
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
    out = run_main("bench", *only, "--out", tmp_path).out
    assert "0 of 6 lines failed" in out
    lines = json.loads((tmp_path / "bench-cpu-quick.json").read_text())["lines"]
    assert [line["part"] for line in lines] == ["collating"] * 2 + ["growth"] * 4


def test_a_missed_limit_and_a_part_that_fails_give_code_1(tmp_path, monkeypatch):
    arguments = ("bench", "--device", "cpu", "--only", "collating", "--out", tmp_path)

    def miss(options):
        yield Measurement("too slow", 5.0, at_most=4.0)

    def fail(options):
        yield Measurement("fine", 1.0)
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(collating, "run", miss)
    assert "FAILED (<= 4)" in run_main(*arguments, code=1).out
    monkeypatch.setattr(collating, "run", fail)
    out = run_main(*arguments, code=1).out
    assert "RuntimeError: no such kernel" in out
    assert "1 of 2 lines failed" in out
    monkeypatch.setattr(collating, "run", miss)  # tiny sizes have no limits
    assert "0 of 1 lines failed" in run_main(*arguments, "--quick").out


def test_unknown_part(tmp_path):
    err = run_main("bench", "--only", "timing,speed", "--out", tmp_path, code=2).err
    assert "speed" in err
    assert "collating" in err
