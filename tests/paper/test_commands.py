"""`python -m paper`."""

import json
import os
import re
import signal
from functools import partial

import pytest

from helpers.commands import run_main, run_until_signal, still_alive
from helpers.files import needs_data
from paper.__main__ import main

MAIN = "paper.__main__:main"
run_paper = partial(run_main, main=main)

FLAT = {
    "dataset", "method", "seed", "protocol", "status", "metric", "value", "validation", "epoch",
    "split_hash", "chain_hash", "seconds", "config", "versions",
}  # fmt: skip


def read(folder):
    text = (folder / "table1" / "MUTAG.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def quick(folder, *arguments, **options):
    options = {"HAARPOOL_CACHE": folder / "cache"} | options
    command = ("table1", "--quick", "--device", "cpu", "--results", folder)
    return run_paper(*command, *arguments, **options)


@needs_data
def test_quick_version_of_table_1(tmp_path):
    out = quick(tmp_path).out
    lines = read(tmp_path)
    assert len(lines) == 6
    for line in lines:
        assert line["status"] == "ok"
        assert line.keys() >= FLAT
        assert 0 <= line["value"] <= 1
        assert line["chain_hash"] if line["method"] == "haarpool" else not line["chain_hash"]
    hashes = {(line["seed"], line["split_hash"]) for line in lines}
    assert len(hashes) == 2  # the same splits for all methods
    assert "6 trials ok, 0 failed, 0 were there" in out
    report = (tmp_path / "README.md").read_text()
    assert "| HaarPool |" in report
    assert "- Nothing." in report
    # The second time there is nothing to do, and the same report.
    assert "0 trials ok, 0 failed, 6 were there" in quick(tmp_path).out
    assert read(tmp_path) == lines
    assert (tmp_path / "README.md").read_text() == report
    (tmp_path / "README.md").unlink()
    run_paper("table1", "--quick", "--report", "--results", tmp_path)
    assert (tmp_path / "README.md").read_text() == report
    assert read(tmp_path) == lines


@pytest.mark.slow
def test_quick_version_of_the_ablation(tmp_path):
    environment = {"HAARPOOL_CACHE": tmp_path / "cache"}
    command = ("ablation", "--quick", "--device", "cpu", "--results", tmp_path)
    assert "6 trials ok, 0 failed" in run_paper(*command, **environment).out
    assert "Haar domain" in (tmp_path / "README.md").read_text()


@needs_data
def test_a_line_is_a_repeat_of_haarpool_train(tmp_path):
    quick(tmp_path, "--method", "haarpool")
    environment = {"HAARPOOL_CACHE": tmp_path / "cache"}
    settings = ("--preset", "paper", "--tied", "authors", "--epochs", 3, "--threads", 1)
    run = run_main(
        *("train", "MUTAG", *settings, "--repeats", 2, "--json", "--device", "cpu"),
        *("--out", tmp_path / "run"),
        **environment,
    )
    scores = json.loads(run.out)["scores"]["accuracy"]
    assert scores["test"]["each"] == [line["value"] for line in read(tmp_path)]
    assert scores["validation"]["each"] == [line["validation"] for line in read(tmp_path)]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_command_goes_on(jobs, tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    command = ("table1", "--quick", "--device", "cpu", "--results", tmp_path)
    moment = ("haarpool.comparison.lines:ResultLines", "append", "'gin'", 2)
    run = run_until_signal(signal.SIGINT, moment, *command, "--jobs", jobs, main=MAIN)
    where = f"finished trials are in {tmp_path / 'table1'}"
    assert f"{where}; continue with: python -m paper table1 --quick" in run.err
    assert "Traceback" not in run.err
    printed = run.out.split("\n")  # a line has the numbers of the worker processes
    workers = [
        int(pid) for line in printed if re.fullmatch(r"[\d ]+", line) for pid in line.split()
    ]
    assert not still_alive(workers)
    finished = len(read(tmp_path))
    assert finished == 3 if jobs == 1 else finished >= 1  # results come in any order
    assert f"{6 - finished} trials ok, 0 failed, {finished} were there" in quick(tmp_path).out


@pytest.mark.slow
def test_a_killed_command_goes_on_with_several_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    command = ("table1", "--quick", "--device", "cpu", "--results", tmp_path)
    moment = ("haarpool.comparison.lines:ResultLines", "append", "MUTAG", 3)
    run_until_signal(signal.SIGKILL, moment, *command, "--jobs", 2, main=MAIN)
    assert len(read(tmp_path)) == 2
    assert "4 trials ok, 0 failed, 2 were there" in quick(tmp_path, "--jobs", 2).out


@needs_data
def test_a_failed_run_is_recorded_and_retried(tmp_path, monkeypatch):
    only = ("--method", "gin", "--repeats", 1)

    def fail(run, repeat, folder):
        raise RuntimeError("no such\nkernel")

    with monkeypatch.context() as patch:
        patch.setattr("haarpool.comparison.learners.train_repeat", fail)
        assert "0 trials ok, 1 failed" in quick(tmp_path, *only, code=1).out
    (line,) = read(tmp_path)
    assert (line["status"], line["reason"]) == ("failed", "RuntimeError: no such kernel")
    assert line["value"] is None
    assert "failed: RuntimeError: no such kernel" in (tmp_path / "README.md").read_text()
    assert "0 trials ok, 0 failed, 1 were there" in quick(tmp_path, *only).out
    assert "1 trials ok, 0 failed" in quick(tmp_path, *only, "--retry").out


def test_without_a_table_it_prints_help():
    out = run_paper(code=2).out
    assert "table1" in out
    assert "--report" in out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qm7", "triangles"])
def test_quick_version_of_a_table_on_real_data(name, tmp_path):
    if not os.environ.get("HAARPOOL_DATA"):
        pytest.skip("HAARPOOL_DATA is not set: no real datasets here")
    only = ("--method", "linear,haarpool" if name == "qm7" else "sagpool", "--repeats", 1)
    command = (name, "--quick", *only, "--device", "cpu", "--results", tmp_path)
    out = run_paper(*command, HAARPOOL_CACHE=tmp_path / "cache").out
    assert f"{2 if name == 'qm7' else 1} trials ok, 0 failed" in out


def test_speed_is_measured_once_part_by_part(tmp_path, monkeypatch):
    asked = []

    def run_parts(settings, folder, only, show):
        asked.append(only)
        path = folder / "bench-cpu-quick.json"
        lines = json.loads(path.read_text())["lines"] if path.exists() else []
        # The command was interrupted after the first part.
        for part in only[:1] if not lines else only:
            case = {"layer": "TopKPooling", "nodes": 10, "mode": "forward", "way": "eager"}
            lines.append({"part": part, "case": case, "value": 1.0, "median_ms": 1.0})
        machine = {"processor": "some", "cores": 2}
        path.write_text(json.dumps({"machine": machine, "lines": lines}))

    monkeypatch.setattr("benchmarks.runner.run_parts", run_parts)
    same = {"processor": "some", "cores": 2}
    monkeypatch.setattr("benchmarks.results.describe_machine", lambda options: same)
    command = ("properties", "--quick", "--device", "cpu", "--results", tmp_path)
    for _ in range(2):
        run_paper(*command)
    assert asked == [["timing", "growth", "memory"], ["growth", "memory"]]
    out = run_paper(*command).out
    assert "bench-cpu-quick.json is there; measure again with --retry" in out
    run_paper(*command, "--retry")
    assert asked[2:] == [["timing", "growth", "memory"]]
    # The rest of a file of another machine is not measured: it would be replaced.
    path = tmp_path / "bench-cpu-quick.json"
    content = json.loads(path.read_text())
    lines = [line for line in content["lines"] if line["part"] == "timing"]
    other = {"processor": "other", "cores": 4}
    path.write_text(json.dumps({"machine": other, "lines": lines}))
    run_paper(*command)
    assert asked[3:] == [["timing", "growth", "memory"]]
    path.write_text("{")
    assert "a file of `python -m benchmarks`" in run_paper(*command, code=2).err


def test_list():
    out = run_paper("table1", "--list", "--dataset", "mutag").out
    assert "MUTAG\thaarpool\t10-fold\n" in out
    assert "NCI1" not in out
    assert run_paper("timing", "--list").out == "timing\ngrowth\nmemory\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table1", "--method", "harpool"), "a method of table1: haarpool, "),
        (("table1", "--repeats", "0"), "--repeats in 1..1000"),
        (("table1", "--method", "csm", "--protocol", "10-fold"), "a cell of table1, got none"),
        (("table1", "--jobs", "0"), "--jobs in 1..256"),
        (("table1", "--device", "tpu"), "expected --device of this machine"),
        (("--report",), "lines of results in"),
        (("table1", "--report"), "lines of results in"),
        (("--report", "--dataset", "MUTAG"), "--report without a selection"),
        (("table1", "--report", "--list"), "also list"),
    ],
)
def test_bad_input(tmp_path, arguments, words):
    err = run_paper(*arguments, "--results", tmp_path, code=2).err
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "table1").exists()


def test_a_results_folder_with_other_content(tmp_path):
    (tmp_path / "README.md").write_text("my own page")
    err = run_paper("table1", "--quick", "--results", tmp_path, code=2).err
    assert "README.md, which is not a report" in err
    file = tmp_path / "README.md"
    err = run_paper("timing", "--results", file, code=2).err
    assert f"a folder for results, got the file {file}" in err
    assert list(tmp_path.iterdir()) == [file]


def test_generated_graphs_are_not_those_of_the_paper(without_data, tmp_path):
    err = run_paper("triangles", "--results", tmp_path, code=2).err
    assert "the published dataset TRIANGLES, got generated" in err
    assert not list(tmp_path.glob("triangles"))
