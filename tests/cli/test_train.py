"""`haarpool train` and `predict` on generated graphs: files, scores, seeds, splits."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import haarpool as hp
from haarpool.training import results
from helpers.commands import run_main
from helpers.graphs import rings_and_paths
from helpers.runs import numbers, same_weights, train
from helpers.tolerances import LOOSER

pytestmark = pytest.mark.usefixtures("without_data")
SMALL = ("--arch", "GC8-HP-FC8", "--epochs", 4, "--batch-size", 32, "--quiet")


def test_a_run_without_data_folder_and_network():
    """All of it: a run, its files, its report, predictions."""
    out, err, _ = run_main("train", "rings", *SMALL, "--repeats", 2)
    assert err == ""
    auc = r"ROC-AUC \d\.\d+ ± \d\.\d+"
    assert re.search(rf"test accuracy [\d.]+ ± [\d.]+ %, {auc} \(2 repeats\)\n", out)
    assert re.search(rf"validation accuracy [\d.]+ ± [\d.]+ %, {auc}\n", out)
    assert "runs/rings-1/report.html" in out
    assert out.startswith("features    node labels (3), degree (9)\n")
    folder = Path("runs/rings-1")
    files = {path.name for path in folder.iterdir()}
    assert files == {
        "config.json", "split.json", "metrics.jsonl", "model.safetensors", "test.csv",
        "result.json", "report.html", "example_chain.npz",
    }  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    assert config["command"].startswith("haarpool train rings --arch GC8-HP-FC8")
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
        assert len(own) == result["graphs"]["test"][repeat] == 24
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
    out, err, _ = run_main("predict", folder, "rings", "--out", "new.csv")
    assert out == "240 predictions in new.csv\n"
    lines = Path("new.csv").read_text().splitlines()
    assert lines[0] == "graph,prediction,p(fused),p(linked)"
    assert [line.split(",")[0] for line in lines[1:]] == [str(g) for g in range(240)]
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
                np.array(predicted[graph][1:], float),
                np.array(probabilities, float),
                rtol=LOOSER["other batches"],
            )


@pytest.mark.usefixtures("blank_report")
def test_same_seed_same_result_other_seed_another():
    for out, seed in (("a", 3), ("b", 3), ("c", 4)):
        train("rings", *SMALL, "--seed", seed, "--out", out)
    assert numbers("a") == numbers("b")
    same_weights("a", "b")
    assert numbers("a")[0] != numbers("c")[0]


@pytest.mark.slow
@pytest.mark.usefixtures("blank_report")
def test_early_stopping_and_the_best_epoch():
    result = train("rings", *SMALL[:2], "--epochs", 60, "--patience", 3, "--lr", 0.05, "--out", "a",
                   "--monitor", "loss")  # fmt: skip
    lines, _, _ = numbers("a")
    losses = [line["validation_loss"] for line in lines]
    best = int(np.argmin(losses))
    assert result["best_epoch"] == [best + 1]
    assert len(losses) == best + 1 + 3 < 60
    assert [line["best"] for line in lines] == [
        loss < min(losses[:i], default=np.inf) for i, loss in enumerate(losses)
    ]
    result = train("rings", *SMALL[:2], "--epochs", 20, "--out", "b", "--monitor", "score")
    lines, _, _ = numbers("b")
    keys = [(line["validation_score"], -line["validation_loss"]) for line in lines]
    assert result["best_epoch"][0] - 1 == keys.index(max(keys))  # of equal scores the lower loss


@pytest.mark.slow
@pytest.mark.usefixtures("blank_report")
def test_folds_and_files(tmp_path):
    result = train("rings", *SMALL, "--split", "kfold:3", "--out", "folds")
    assert result["repeats"] == result["folds"] == 3
    out = run_main("train", "--resume", "folds").out
    assert "(3 folds)" in out
    assert sum(result["graphs"]["test"]) == 240
    result = train("rings", *SMALL, "--split", "folds/split.json", "--out", "again")
    assert numbers("folds") == numbers("again")


@pytest.mark.usefixtures("blank_report")
def test_a_bar_with_loss_score_and_time_left():
    arguments = ("train", "rings", *SMALL[:-1], "--out", "a")
    shown = run_main(*arguments, terminal=True, COLUMNS=140).err
    assert "rings 1/1" in shown
    assert re.search(r"<\d\d:\d\d", shown), "time left"
    assert re.search(r"epoch 4, loss \d\.\d+, validation accuracy [\d.]+ %", shown)
    assert "best epoch" not in shown  # the last one is kept
    shown = run_main(*arguments[:-1], "b", "--monitor", "score", terminal=True, COLUMNS=140).err
    assert re.search(r"validation accuracy [\d.]+ %, best epoch \d", shown)


@pytest.mark.usefixtures("blank_report")
def test_folders_that_another_process_takes_meanwhile(monkeypatch):
    """While this one reads the graphs, it makes the same folder."""
    describe = results.describe_run

    def describe_later(*arguments):
        for name in ("runs/rings-1", "chosen"):
            Path(name).mkdir(parents=True, exist_ok=True)
            Path(name, "config.json").write_text("theirs")
        return describe(*arguments)

    monkeypatch.setattr(results, "describe_run", describe_later)
    assert train("rings", *SMALL)["folder"] == "runs/rings-2"
    err = run_main("train", "rings", *SMALL, "--out", "chosen", code=2).err
    assert err.startswith("haarpool: expected a new folder for the run, got chosen")
    assert "choose another folder: another process may have started a run in it" in err
    assert Path("runs/rings-1/config.json").read_text() == "theirs"


SMALL_PARTS = {
    "--split two.json": "the test part has 2 graphs: its scores say little; --split kfold:K tests",
    "--split one.json": "the test part has 1 graph: its scores say little; --split kfold:K tests",
    "--split two.json --repeats 2": "a test part has only 2 graphs: the scores of a single repeat",
    "--split kfold:30": "a test part has only 8 graphs: the scores of a single repeat say little",
    "--split kfold:24": "",
    "": "",
}


@pytest.mark.usefixtures("blank_report")
@pytest.mark.parametrize("arguments", SMALL_PARTS)
def test_scores_of_few_test_graphs_come_with_a_warning(arguments):
    numbers = list(range(240))
    for name, count in (("one", 1), ("two", 2)):
        test = numbers[120 : 120 + count]
        split = {"train": numbers[::2][:40], "validation": [41, 43], "test": test}
        Path(f"{name}.json").write_text(json.dumps(split))
    arch = ("--arch", "GC8-HP-FC8", "--epochs", 1, "--quiet")
    out, err, _ = run_main("train", "rings", *arch, *arguments.split())
    scores, _, warning = out.partition("warning     ")
    assert "\nvalidation " in scores
    if message := SMALL_PARTS[arguments]:
        assert " ".join(warning.split()).startswith(message)
        assert max(map(len, out.splitlines())) <= 80
    else:
        assert warning == ""
    out, err, _ = run_main("train", "rings", *arch, *arguments.split(), "--json")
    assert json.loads(out)["repeats"]
    assert ("say little" in err) is bool(message)


def test_features_of_any_unit_give_the_same_predictions(tmp_path):
    """They are standardised by the training part, in the run and in its predictions."""
    rng = np.random.default_rng(0)
    graphs, rings, _ = rings_and_paths(40)
    values = [torch.from_numpy(rng.standard_normal((len(data.x), 2))).float() for data in graphs]
    found = []
    for name, unit in (("one", 1.0), ("other", 2.0**20)):
        for data, x, y in zip(graphs, values, rings.tolist(), strict=True):
            data.x, data.y = x * unit, y
        torch.save(graphs, tmp_path / f"{name}.pt")
        result = train(tmp_path / f"{name}.pt", *SMALL, "--out", tmp_path / name)
        assert result["features"] == "x (2, standardised), degree (3)"
        predicted = run_main("predict", tmp_path / name, tmp_path / f"{name}.pt", "--quiet").out
        found.append((numbers(tmp_path / name)[0], predicted))
    assert found[0] == found[1]
    assert "x (2, standardised), degree (3)" in (tmp_path / "one" / "report.html").read_text()
