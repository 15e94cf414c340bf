"""`haarpool compare`."""

import json
import re
import signal
from pathlib import Path

import pytest
from filelock import FileLock

from haarpool.comparison.lines import read_lines
from helpers.commands import run_main, run_until_signal

FAST = ("--epochs", 1, "--width", 4, "--device", "cpu")
TWO = ("--method", "GC4-SUM-FC4", "--method", "GC4-HP-FC4")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))


def compare(folder, *arguments, methods=TWO, source="rings", **options):
    return run_main("compare", source, *methods, *FAST, "--out", folder, *arguments, **options)


def read(folder):
    keys = ("method", "seed", "split_hash", "value", "status")
    lines = read_lines(folder / "trainings" / "rings.jsonl")
    return sorted(tuple(line[key] for key in keys) for line in lines)


def test_a_table_and_what_it_allows_to_say(tmp_path):
    out, err, _ = compare(tmp_path / "out", "--repeats", 2)
    lines = out.splitlines()
    caption = "rings: accuracy in % on the test part, 2 repeats, split rule stratified."
    assert lines[0] == caption
    assert lines[1].split()[:2] == ["Method", "Mean"]
    assert lines[2].startswith("GC4-SUM-FC4")
    assert max(map(len, lines[:6])) <= 80
    assert lines[-2] == "rings: 2 splits: no interval and no statement; these need 3 or more."
    assert "4 trainings (2 methods × 2 repeats)" in err
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "README.md", "report.html", "tables.tex", "intervals.png", "result.json", "trainings",
    }  # fmt: skip


def test_lines_have_the_keys_that_are_documented(tmp_path):
    compare(tmp_path, "--repeats", 1, "--ensemble", 2)
    keys = {key for line in read_lines(tmp_path / "trainings" / "rings.jsonl") for key in line}
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
    _, table = page.split("<!-- keys of a line -->")
    names = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \|", table, re.M)))
    assert sorted(names) == sorted(keys | {"resumed"})


def test_json(tmp_path):
    out = compare(tmp_path / "out", "--repeats", 1, "--json").out
    assert out == (tmp_path / "out" / "result.json").read_text()
    content = json.loads(out)
    assert [row["method"] for row in content["rows"]] == ["GC4-SUM-FC4", "GC4-HP-FC4"]
    assert content["schema"] == 1
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
    assert all(f"`{key}`" in page for row in content["rows"] for key in row)
    assert content["conclusions"]


def test_folds_are_announced(tmp_path):
    err = compare(tmp_path, "--split", "kfold:3", "--repeats", 2).err
    assert "12 trainings (2 methods × 2 repeats × 3 folds)" in err
    err = compare(tmp_path, "--repeats", 1, methods=TWO[:2]).err
    assert "1 training (one repeat)" in err


def test_without_out_the_same_command_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        run_main("compare", "rings", *TWO[:2], *FAST, "--repeats", 1)
    assert len(read_lines(tmp_path / "comparisons/rings/trainings/rings.jsonl")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGKILL, 1), (signal.SIGINT, 2)])
def test_an_ended_command_goes_on_with_equal_lines(number, jobs, tmp_path):
    moment = ("haarpool.comparison.lines:ResultLines", "append", "rings", 3)
    command = ("compare", "rings", *TWO, *FAST, "--repeats", 3, "--out", tmp_path / "killed")
    run = run_until_signal(number, moment, *command, "--jobs", jobs)
    if number == signal.SIGINT:
        assert "interrupted; continue with: haarpool " in run.err
    assert len(read(tmp_path / "killed")) == 2
    compare(tmp_path / "killed", "--repeats", 3)
    compare(tmp_path / "whole", "--repeats", 3)
    assert read(tmp_path / "killed") == read(tmp_path / "whole")


def test_a_method_that_fails_is_named(tmp_path):
    methods = ("--method", "GC4-SUM-FC4", "--method", "GC4-S2S-FC4")
    file, other = tmp_path / "tied.json", tmp_path / "features.json"
    file.write_text(json.dumps({"arch": "2GC4-SUM-FC4", "tied": [0]}))
    other.write_text(json.dumps({"arch": "2GC4-SUM-FC4", "features": "nope"}))
    methods = (*methods, "--method", file, "--method", other)
    out = compare(tmp_path / "out", "--repeats", 1, methods=methods, code=1).out
    out = " ".join(out.split())
    assert "tied fails: expected tied as 2 whole numbers" in out
    assert "features fails: expected --features of rings out of" in out
    assert "all trainings failed of tied; features: the table has the reasons." in out
    assert len(read(tmp_path / "out")) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--repeats", 0), "--repeats in 1..1000"),
        (("--jobs", 0), "--jobs"),
        (("--split", "halves"), "--split"),
        (("--split", "scaffold"), "molecules given as SMILES"),
        (("--features", "nope"), "--features of rings out of"),
        (
            ("--method", "nosuch"),
            "a method: haarnet, haarsum, haarunet, best, paper, plain, plain-TOKEN, a",
        ),
        (("--method", "GC4-XX-FC4"), "»XX«"),
        (("--method", "nothere.json"), "nothere.json"),
        (("--epochs", 0), "--epochs >= 1"),
        (("--device", "tpu"), "device of this machine"),
    ],
)
def test_bad_input(arguments, words, tmp_path):
    err = compare(tmp_path / "out", *arguments, code=2).err
    assert words in err
    assert "Traceback" not in err
    assert not any(flag in err for flag in ("--arch", "--preset", "--pooling"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flag", ["--repeats", "--jobs"])
def test_wrong_numbers_are_errors_before_anything_else(flag, tmp_path):
    run = compare(tmp_path / "out", flag, 0, source="no such", code=2)
    assert run.err.startswith(f"haarpool: expected {flag} in 1..")


def test_a_dataset_that_is_not_there(tmp_path):
    assert "'no such'" in compare(tmp_path, source="no such", code=2).err


def test_two_commands_on_one_folder(tmp_path):
    with FileLock(tmp_path / ".lock"):
        assert "another process uses" in compare(tmp_path, code=2).err


def test_a_table_of_molecules_needs_a_column(tmp_path):
    pytest.importorskip("rdkit")
    file = tmp_path / "two.csv"
    file.write_text("smiles,a,b\n" + "CC,1,0\nCCO,0,1\nC,1,1\n" * 5)
    assert "choose with --target" in compare(tmp_path / "out", source=file, code=2).err
    out = compare(tmp_path / "out", "--target", "a", "--repeats", 1, source=file).out
    assert out.startswith("two: accuracy in % on the test part, 1 repeat,")


@pytest.mark.parametrize(
    ("name", "command"), [("bench", "python -m benchmarks"), ("reproduce", "python -m paper")]
)
def test_commands_that_moved_say_where(name, command):
    run = run_main(name, "table1", "--quick", code=2)
    assert run.err.count("\n") == 1
    assert f"it is now {command}" in run.err
    assert name not in run_main("--help", code=0).out.split()
