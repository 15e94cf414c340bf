"""`haarpool train` and `predict` with several targets of two classes, and with ensembles."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from haarpool.tasks import find_task
from helpers.commands import run_main
from helpers.runs import train
from helpers.tolerances import LOOSER

pytestmark = pytest.mark.usefixtures("without_data")
SMALL = ("--arch", "GC8-HP-FC8", "--epochs", 4, "--batch-size", 32, "--quiet")
LABELS = ("--target", "oxygen,long,rare")


@pytest.fixture
def table():
    """Write a table of molecules with three targets, some labels of which are missing."""
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    random = np.random.default_rng(0)
    rows = []
    for i in range(80):
        smiles = "".join(random.choice(["C", "N", "O"], random.integers(2, 9)))
        labels = [int("O" in smiles), int(len(smiles) > 5), int(i in (7, 31))]
        rows.append([smiles, *("" if random.random() < 0.2 else label for label in labels)])
    write("mol.csv", [["smiles", "oxygen", "long", "rare"], *rows])
    return rows


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.filterwarnings("ignore:a training part has graphs of one class")
def test_several_targets_from_a_table_to_predictions(table):
    out = run_main("train", "mol.csv", *LABELS, *SMALL, "--repeats", 2, "--out", "run").out
    scored = r"mean over (\d|\d to \d)( of 3)? targets"
    assert re.search(rf"test ROC-AUC 0\.\d+ ± 0\.\d+ \(2 repeats, ({scored})\)\n", out)
    config = json.loads(Path("run/config.json").read_text())
    assert config["data"]["task"] == "multilabel"
    assert config["data"]["target_names"] == ["oxygen", "long", "rare"]
    assert config["model"]["out_channels"] == 3
    header, *rows = read("run/test.csv")
    assert header[2:5] == ["target oxygen", "target long", "target rare"]
    result = json.loads(Path("run/result.json").read_text())
    assert result["metric"] == "roc_auc"
    for repeat in range(2):
        own = np.array([row[2:] for row in rows if row[0] == str(repeat)], float)
        scores = find_task("multilabel").score(own[:, 3:], own[:, :3])
        for name, value in scores.items():
            assert result["scores"][name]["test"]["each"][repeat] == pytest.approx(value)
        each = [result["targets"][t]["roc_auc"]["test"]["each"][repeat] for t in result["targets"]]
        defined = [value for value in each if value is not None]
        assert np.mean(defined) == pytest.approx(scores["roc_auc"])
        assert result["scored_targets"]["test"][repeat] == len(defined)
    assert "ROC curve: rare" in Path("run/report.html").read_text()
    run_main("predict", "run", "mol.csv", "--out", "new.csv")
    header, *rows = read("new.csv")
    assert header == ["line", "smiles", "p(oxygen)", "p(long)", "p(rare)"]
    probability = np.array([row[2:] for row in rows], float)
    assert probability.shape == (80, 3)
    assert ((probability > 0) & (probability < 1)).all()


@pytest.mark.usefixtures("blank_report")
@pytest.mark.filterwarnings("ignore:a training part has graphs of one class")
def test_names_of_targets_may_have_spaces_around(table):
    train("mol.csv", "--target", " oxygen, long ,", *SMALL, "--out", "run")
    config = json.loads(Path("run/config.json").read_text())
    assert config["data"]["target_names"] == ["oxygen", "long"]


def test_a_target_of_one_class_is_a_warning_or_an_error(table):
    write("one.csv", [["smiles", "a", "b"], *([row[0], i % 2, 0] for i, row in enumerate(table))])
    arguments = ("train", "one.csv", "--target", "a,b", *SMALL)
    err = run_main(*arguments, "--out", "run").err
    assert "one class only for b" in err
    result = json.loads(Path("run/result.json").read_text())
    assert result["targets"]["b"]["roc_auc"]["test"] == {"mean": None, "std": None, "each": [None]}
    assert result["scored_targets"] == {"validation": [1], "test": [1]}
    assert "leave these targets out" in run_main(*arguments, "--strict", code=2).err


def test_a_test_part_without_a_class_of_a_target_is_an_error_with_strict(table):
    rows = [[row[0], i % 2, int(i == 0)] for i, row in enumerate(table)]
    write("rare.csv", [["smiles", "a", "b"], *rows])
    numbers = list(range(len(table)))
    parts = {"train": numbers[:60], "validation": numbers[60:70], "test": numbers[70:]}
    Path("split.json").write_text(json.dumps(parts))
    arguments = ("train", "rare.csv", "--target", "a,b", "--split", "split.json", "--strict")
    err = run_main(*arguments, *SMALL, code=2).err
    assert "a validation part has graphs of one class only for b" in err
    assert "a test part has graphs of one class only for b" in err


def test_wrong_targets_and_tasks(table):
    for task, expected in (("multilabel", "two classes"), (None, "several of the same two")):
        write(
            "m.csv",
            [["smiles", "a", "b"], *([row[0], i % 2, i % 3] for i, row in enumerate(table))],
        )
        arguments = (
            "train",
            "m.csv",
            "--target",
            "a,b",
            *SMALL,
            *(["--task", task] if task else []),
        )
        err = run_main(*arguments, code=2).err
        assert expected in err
        assert err.count("\n") == 1
    err = run_main("train", "rings", "--task", "multilabel", *SMALL, code=2).err
    assert "leave it out" in err
    assert "--ensemble" in run_main("train", "rings", "--ensemble", 0, code=2).err


# ---------------------------------------------------------------------- ensembles


def columns(text):
    header, *rows = csv.reader(text.splitlines())
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def test_an_ensemble_of_a_classifier():
    out = run_main("train", "rings", *SMALL, "--ensemble", 3, "--out", "run").out
    assert "(1 repeat, mean prediction of 3 members)" in out
    assert "single members: test accuracy" in out
    assert "3 members" in Path("run/report.html").read_text()
    assert not list(Path("run").glob("member-*"))
    predicted = columns(run_main("predict", "run", "rings", "--quiet").out)
    assert list(predicted) == ["graph", "prediction", "p(fused)", "p(linked)", "uncertainty"]
    spread = np.array(predicted["uncertainty"], float)
    assert ((spread >= 0) & (spread < 0.6)).all()
    assert spread.max() > 0
    test = columns(Path("run/test.csv").read_text())
    chosen = [int(g) for g in test["graph"]]
    np.testing.assert_allclose(
        np.array(predicted["p(fused)"], float)[chosen],
        np.array(test["p(fused)"], float),
        rtol=LOOSER["other batches"],
    )


@pytest.mark.usefixtures("blank_report")
@pytest.mark.filterwarnings("ignore:a training part has graphs of one class")
def test_uncertainty_has_one_column_per_target(table):
    train("mol.csv", *LABELS, *SMALL, "--ensemble", 2, "--out", "several")
    names = list(columns(run_main("predict", "several", "mol.csv", "--quiet").out))
    assert names[5:] == ["oxygen uncertainty", "long uncertainty", "rare uncertainty"]
    values = [["smiles", "y"], *([row[0], len(row[0]) + 0.5] for row in table)]
    write("values.csv", values)
    train("values.csv", "--target", "y", *SMALL, "--ensemble", 2, "--out", "values")
    out = run_main("train", "--resume", "values").out
    assert re.search(r"test MAE [\d.]+, RMSE [\d.]+ \(1 repeat, mean", out)
    predicted = columns(run_main("predict", "values", "values.csv", "--quiet").out)
    assert list(predicted) == ["line", "smiles", "y", "uncertainty"]


@pytest.mark.usefixtures("blank_report")
def test_a_bar_names_the_member():
    arguments = ("train", "rings", *SMALL[:-1], "--ensemble", 2, "--out", "a")
    shown = run_main(*arguments, terminal=True, COLUMNS=140).err
    assert "rings 1/1, member 1/2" in shown
    assert "rings 1/1, member 2/2" in shown
