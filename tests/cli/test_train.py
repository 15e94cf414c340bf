"""`haarpool train` and `predict`, run as a user runs them."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import haarpool as hp
from helpers.commands import HAARPOOL, on_a_terminal, run

pytestmark = pytest.mark.usefixtures("without_data")
SMALL = ("--arch", "GC8-HP-FC8", "--epochs", 4, "--batch-size", 32, "--quiet")


def train(*arguments, **more):
    out, _ = run("train", *arguments, "--json", **more)
    return json.loads(out)


def numbers(folder):
    """All that a run measured, less its times."""
    lines = [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    result = json.loads(Path(folder, "result.json").read_text())
    del result["seconds"], result["folds"]
    return lines, result, Path(folder, "test.csv").read_text()


def same_weights(one, other):
    ours, theirs = (load_file(Path(folder, "model.safetensors")) for folder in (one, other))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours)


def test_mutag_without_data_folder_and_network():
    """All of it: a run, its files, its report, predictions."""
    out, err = run("train", "MUTAG", *SMALL, "--repeats", 2)
    assert err == ""
    assert re.search(r"test accuracy \d+\.\d ± \d+\.\d % \(2 repeats\)", out)
    assert "runs/MUTAG-1/report.html" in out
    folder = Path("runs/MUTAG-1")
    files = {path.name for path in folder.iterdir()}
    assert files == {
        "config.json", "split.json", "metrics.jsonl", "model.safetensors", "test.csv",
        "result.json", "report.html",
    }  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    assert config["command"].startswith("haarpool train MUTAG --arch GC8-HP-FC8")
    assert config["versions"]["haarpool"] == hp.__version__
    assert len(config["split_digests"]) == 2
    assert len(config["chain"]["digest"]) == len(config["data"]["digest"]) == 64
    lines, result, test = numbers(folder)
    assert [(line["repeat"], line["epoch"]) for line in lines] == [
        (repeat, epoch) for repeat in range(2) for epoch in range(1, 5)
    ]
    rows = [line.split(",") for line in test.splitlines()[1:]]
    for repeat in range(2):
        own = [row for row in rows if row[0] == str(repeat)]
        accuracy = np.mean([row[2] == row[3] for row in own])
        assert np.isclose(accuracy, result["scores"]["accuracy"]["test"]["each"][repeat])
        assert len(own) == result["graphs"]["test"][repeat] == 18
        best = min(
            (li for li in lines if li["repeat"] == repeat), key=lambda li: li["validation_loss"]
        )
        assert (
            best["epoch"] == result["best_epoch"][repeat]
            or config["training"]["monitor"] == "score"
        )
    for part in ("test", "validation"):
        found = result["scores"]["accuracy"][part]
        assert np.isclose(found["mean"], np.mean(found["each"]))
        assert np.isclose(found["std"], np.std(found["each"], ddof=1))
    out, err = run("predict", folder, "MUTAG", "--out", "new.csv")
    assert out == "188 predictions in new.csv\n"
    lines = Path("new.csv").read_text().splitlines()
    assert lines[0] == "graph,prediction,p(-1),p(1)"
    assert [line.split(",")[0] for line in lines[1:]] == [str(g) for g in range(188)]
    # The model that was saved is that of the repeat that validates best, at its best epoch.
    chosen = result["model_of_repeat"]
    assert result["scores"]["accuracy"]["validation"]["each"][chosen] == max(
        result["scores"]["accuracy"]["validation"]["each"]
    )
    predicted = {line.split(",")[0]: line.split(",")[1:] for line in lines[1:]}
    for repeat, graph, _, prediction, *probabilities in rows:
        if int(repeat) == chosen:
            assert predicted[graph][0] == prediction
            np.testing.assert_allclose(
                np.array(predicted[graph][1:], float), np.array(probabilities, float), rtol=1e-4
            )


def test_same_seed_same_result_other_seed_another():
    for out, seed in (("a", 3), ("b", 3), ("c", 4)):
        train("MUTAG", *SMALL, "--seed", seed, "--out", out)
    assert numbers("a") == numbers("b")
    same_weights("a", "b")
    assert numbers("a")[0] != numbers("c")[0]


@pytest.mark.parametrize("arch", ["GC8-HP-GC8-HP-FC8", "GIN8-TP-GIN8-SUM", "2GC8-DP-GC8-AP"])
def test_a_killed_run_goes_on_to_the_same_numbers(arch):
    """Killed twice, at any moment: the files are those of a run that was not."""
    arguments = ["MUTAG", "--arch", arch, "--epochs", "12", "--repeats", "2", "--dropout", "0.5",
                 "--schedule", "cosine", "--quiet"]  # fmt: skip
    train(*arguments, "--out", "whole")
    process = subprocess.Popen([HAARPOOL, "train", *arguments, "--out", "cut"])
    for wanted, again in ((5, ["--resume", "cut", "--quiet"]), (16, None)):
        lines = Path("cut/metrics.jsonl")
        while not lines.exists() or len(lines.read_text().splitlines()) < wanted:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
        assert Path("cut/checkpoint.safetensors").exists()
        assert not Path("cut/model.safetensors").exists()
        if again:
            process = subprocess.Popen([HAARPOOL, "train", *again])
    run("predict", "cut", "MUTAG", code=2)  # not yet
    assert train("--resume", "cut")["folder"] == "cut"
    assert not Path("cut/checkpoint.safetensors").exists()
    assert numbers("cut") == numbers("whole")
    same_weights("cut", "whole")
    assert train("--resume", "cut")["repeats"] == 2  # complete: nothing more to do


def test_an_interrupted_run_says_how_to_go_on():
    arguments = ["MUTAG", "--arch", "GC8-HP-FC8", "--epochs", "100000", "--patience", "100000"]
    process = subprocess.Popen(
        [HAARPOOL, "train", *arguments, "--out", "cut"], stderr=subprocess.PIPE, text=True
    )
    while not Path("cut/checkpoint.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("haarpool: interrupted; go on with: haarpool train --resume cut\n")
    process = subprocess.Popen([HAARPOOL, "train", "--resume", "cut", "--quiet"])
    lines = len(Path("cut/metrics.jsonl").read_text().splitlines())
    while len(Path("cut/metrics.jsonl").read_text().splitlines()) <= lines + 2:
        assert process.poll() is None
        time.sleep(0.01)
    _, err = run("train", "--resume", "cut", code=2)
    assert "another process does" in err  # and leaves it alone
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    epochs = [
        json.loads(line)["epoch"] for line in Path("cut/metrics.jsonl").read_text().splitlines()
    ]
    assert epochs == list(range(1, len(epochs) + 1))
    _, err = run("train", "MUTAG", "--out", "cut", code=2)
    assert "go on with it: haarpool train --resume cut" in err
    (line,) = [x for x in Path("cut/config.json").read_text().splitlines() if '"digest"' in x][:1]
    text = Path("cut/config.json").read_text()
    Path("cut/config.json").write_text(text.replace(line, '"digest": "0",'))
    _, err = run("train", "--resume", "cut", code=2)
    assert "start a new run" in err


@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0])
def test_interrupted_at_any_moment(seconds):
    """Also while packages are imported, whose complaints would fill the screen."""
    process = subprocess.Popen(
        [HAARPOOL, "train", "MUTAG", "--epochs", "100000", "--patience", "100000", "--out", "cut"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    if process.returncode == 130:  # else Python itself was not up yet
        assert err.startswith("haarpool: interrupted")
        assert err.count("\n") == 1


def test_early_stopping_and_the_best_epoch():
    result = train("MUTAG", *SMALL[:2], "--epochs", 60, "--patience", 3, "--lr", 0.05, "--out", "a",
                   "--monitor", "loss")  # fmt: skip
    lines, _, _ = numbers("a")
    losses = [line["validation_loss"] for line in lines]
    best = int(np.argmin(losses))
    assert result["best_epoch"] == [best + 1]
    assert len(losses) == best + 1 + 3 < 60
    assert [line["best"] for line in lines] == [
        loss < min(losses[:i], default=np.inf) for i, loss in enumerate(losses)
    ]
    result = train("MUTAG", *SMALL[:2], "--epochs", 20, "--out", "b", "--monitor", "score")
    lines, _, _ = numbers("b")
    keys = [(line["validation_score"], -line["validation_loss"]) for line in lines]
    assert result["best_epoch"][0] - 1 == keys.index(max(keys))  # of equal scores the lower loss


def test_folds_and_files(tmp_path):
    result = train("MUTAG", *SMALL, "--split", "kfold:3", "--out", "folds")
    assert result["repeats"] == result["folds"] == 3
    out, _ = run("train", "--resume", "folds")
    assert "(3 folds)" in out
    assert sum(result["graphs"]["test"]) == 188
    result = train("MUTAG", *SMALL, "--split", "folds/split.json", "--out", "again")
    assert numbers("folds") == numbers("again")


def test_two_processes_train_one_model():
    """Same split, gradients averaged over all graphs, scores over all ranks, one writer."""
    arguments = ["MUTAG", "--arch", "GC8-HP-GC8-HP-FC8", "--epochs", "5", "--dropout", "0",
                 "--batch-size", "31", "--repeats", "2", "--class-weights"]  # fmt: skip
    train(*arguments, "--out", "one")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command = [*torchrun, "--standalone", "-m", "haarpool", "train"]
    done = subprocess.run(
        [*command, *arguments, "--out", "two", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (result,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert result["folder"] == "two"
    config = json.loads(Path("two/config.json").read_text())
    assert config["processes"] == 2
    assert (
        config["split_digests"] == json.loads(Path("one/config.json").read_text())["split_digests"]
    )
    one, two = numbers("one"), numbers("two")
    assert len(one[0]) == len(two[0]) == 10
    for ours, theirs in zip(one[0], two[0], strict=True):
        for key, value in ours.items():
            assert value == pytest.approx(theirs[key], rel=1e-4), key
    for key, value in load_file("one/model.safetensors").items():
        np.testing.assert_allclose(value, load_file("two/model.safetensors")[key], atol=1e-4)


def test_a_bar_with_loss_score_and_time_left():
    shown = on_a_terminal(
        *("train", "MUTAG", "--arch", "2GC64-HP-FC64", "--epochs", "60", "--patience", "60"),
        *("--out", "a"),
        columns=140,
    )
    assert "MUTAG 1/1" in shown
    assert re.search(r"<\d\d:\d\d", shown), "time left"
    assert re.search(r"loss \d\.\d+, validation accuracy \d\.\d+", shown)
