"""What `haarpool train` says before and during long work: how much there is, how far it is."""

import json
import re
from pathlib import Path

import pytest

from haarpool import _progress
from haarpool.datasets import read_graphs
from haarpool.estimator import HaarClassifier
from haarpool.training.progress import RunProgress
from helpers.commands import HAARPOOL, run_in_terminal, run_main
from helpers.files import write_rings_tu

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")
SMALL = ("rings", "--arch", "GC8-HP-FC8", "--epochs", 2)
TIME = r"\d:\d\d"
SCORE = r"validation accuracy [\d.]+ %"

PLANS = {
    "--split kfold:3 --repeats 2": "6 trainings (3 folds × 2 repeats)",
    "--split kfold:3": "3 trainings (3 folds)",
    "--repeats 3": "3 trainings (3 repeats)",
    "--ensemble 2": "2 trainings (2 members)",
    "--repeats 2 --ensemble 2": "4 trainings (2 repeats × 2 members)",
    "--split kfold:3 --repeats 2 --ensemble 2": "12 trainings (3 folds × 2 repeats × 2 members)",
}


@pytest.mark.parametrize("arguments", PLANS)
def test_several_trainings_are_announced(arguments):
    out = run_main("train", *SMALL, *arguments.split(), "--quiet").out
    before, _, after = out.partition(f"plan        {PLANS[arguments]}\n")
    assert before.startswith("features    ")
    assert after.startswith("rings, GC8-HP-FC8\n")


def test_one_hundred_trainings_are_announced(monkeypatch):
    monkeypatch.setattr("haarpool.training.train.train_run", interrupt)
    arguments = ("train", *SMALL, "--split", "kfold:10", "--repeats", 10)
    out = run_main(*arguments, code=130).out
    assert out.endswith("plan        100 trainings (10 folds × 10 repeats)\n")
    out, err, _ = run_main(*arguments, "--json", code=130)
    assert out == ""
    assert err.startswith("haarpool: 100 trainings (10 folds × 10 repeats)\n")
    assert "trainings" not in run_main(*arguments, "--json", "--quiet", code=130).err


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_splits_of_a_file_are_announced(tmp_path):
    run_main("train", *SMALL, "--split", "kfold:3", "--quiet", "--out", "folds")
    arguments = ("train", *SMALL, "--quiet", "--split")
    assert "plan        3 trainings (3 splits)\n" in run_main(*arguments, "folds/split.json").out
    one = tmp_path / "one.json"
    one.write_text(json.dumps(json.loads((tmp_path / "folds/split.json").read_text())[0]))
    assert "plan" not in run_main(*arguments, one).out
    again = run_main(*arguments, one, "--repeats", 2).out
    assert "plan        2 trainings (2 repeats)\n" in again


def test_help_says_that_repeats_multiply_folds():
    text = " ".join(run_main("train", "--help").out.split())
    assert "with folds, N of each fold" in text
    assert "kfold:K (K trainings per repeat)" in text


def test_a_line_after_each_repeat():
    out, err, _ = run_main("train", *SMALL, "--repeats", 3, "--json")
    assert json.loads(out)["repeats"] == 3
    announced, *lines = err.splitlines()
    assert announced == "haarpool: 3 trainings (3 repeats)"
    for number, line in enumerate(lines, start=1):
        left = "" if number == 3 else f", about {TIME} left"
        assert re.fullmatch(f"haarpool: repeat {number} of 3, {SCORE}, {TIME}{left}", line)
    assert len(lines) == 3
    result = json.loads(out)["scores"]["accuracy"]["validation"]["each"]
    assert [float(line.split(",")[1].split()[-2]) for line in lines] == [
        float(f"{100 * score:.4g}") for score in result
    ]


def test_repeats_folds_and_members_are_named():
    arguments = ("--split", "kfold:3", "--repeats", 2, "--ensemble", 2)
    lines = run_main("train", *SMALL, *arguments).err.splitlines()
    assert [line.split(", validation")[0] for line in lines] == [
        f"haarpool: repeat {repeat} of 2, fold {fold} of 3"
        for repeat in (1, 2)
        for fold in (1, 2, 3)
    ]


def test_lines_within_a_long_repeat(monkeypatch):
    monkeypatch.setattr(_progress, "SECONDS_PER_LINE", 0)
    lines = run_main("train", *SMALL, "--ensemble", 2).err.splitlines()
    trained = [line for line in lines if "epoch" in line]
    for (member, epoch), line in zip(((1, 1), (1, 2), (2, 1), (2, 2)), trained, strict=True):
        place = f"haarpool: member {member} of 2, epoch {epoch} of 2"
        assert re.match(rf"{place}, loss \d\.\d{{3}}, {SCORE}, {TIME}", line)
    assert lines[0].startswith("haarpool: chains: ")


def test_short_runs_and_quiet_ones_print_no_line():
    assert run_main("train", *SMALL).err == ""
    assert run_main("train", *SMALL, "--repeats", 2, "--quiet").err == ""


def test_a_resumed_run_counts_on(monkeypatch):
    from haarpool.training import train

    complete = train._complete_repeat

    def interrupt_after_two(run):
        if len(run.results) == 2:
            raise KeyboardInterrupt
        complete(run)

    monkeypatch.setattr(train, "_complete_repeat", interrupt_after_two)
    run_main("train", *SMALL, "--repeats", 4, "--out", "run", code=130)
    monkeypatch.setattr(train, "_complete_repeat", complete)
    lines = run_main("train", "--resume", "run").err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "haarpool: repeat 3 of 4",
        "haarpool: repeat 4 of 4",
    ]


def test_lines_of_predictions_and_chains(monkeypatch):
    run_main("train", *SMALL, "--out", "run")
    monkeypatch.setattr(_progress, "SECONDS_PER_LINE", 0)
    out, err, _ = run_main("predict", "run", "rings")
    assert out.count("\n") == 241
    assert err == "haarpool: predictions: 240 graphs, 0:00\n"
    assert run_main("predict", "run", "rings", "--quiet").err == ""
    folder = write_rings_tu(Path("data"), "MINE").parent
    out, err, _ = run_main("chain", folder, "--no-cache", "--json")
    assert json.loads(out)[0]["graphs"] == 240
    assert err.splitlines()[-1] == "haarpool: chains: 240 of 240 graphs, 0:00"
    assert run_main("chain", folder, "--no-cache", "--quiet").err == ""


def test_the_library_prints_no_lines(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "SECONDS_PER_LINE", 0)
    HaarClassifier(arch="GC8-HP-FC8", epochs=2).fit(read_graphs("rings"))
    assert capsys.readouterr() == ("", "")


NAME = "a dataset with a very long name"


@pytest.mark.parametrize("arguments", [
    (), ("--monitor", "score"), ("--repeats", 10), ("--ensemble", 10, "--repeats", 2),
])  # fmt: skip
@pytest.mark.parametrize("name", ["rings", NAME])
def test_a_bar_of_80_columns_has_room_for_the_score(name, arguments, monkeypatch):
    read = read_graphs("rings")
    object.__setattr__(read, "name", name)
    monkeypatch.setattr("haarpool.datasets.read_graphs", lambda *_, **__: read)
    make_bar = RunProgress.bar

    def narrow_bar(*arguments):
        bar = make_bar(*arguments)
        bar.ncols = 79  # as tqdm takes it from a terminal of 80 columns
        return bar

    monkeypatch.setattr(RunProgress, "bar", narrow_bar)
    shown = run_main("train", *SMALL, *arguments, terminal=True).err
    bars = [line for line in re.split(r"[\r\n]", shown) if "accuracy" in line]
    assert bars
    for line in bars:
        assert len(line) <= 79
        assert re.search(r"accuracy ([\d.]+ %|–)($|, best epoch \d+)", line.rstrip())
        assert len(line.split("|")[1]) >= 10


@pytest.mark.slow
def test_a_bar_on_a_terminal_and_no_lines():
    shown = run_in_terminal(HAARPOOL, "train", *SMALL, "--repeats", 2, TQDM_MININTERVAL="0")
    assert "rings 2/2: 100%|█" in shown
    assert "validation accuracy" in shown
    assert "haarpool: repeat" not in shown
