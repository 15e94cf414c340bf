"""Runs of earlier versions: their models predict as before, and messages say what does not work."""

import json
import shutil
from pathlib import Path

import pytest

from haarpool.training.devices import CPU
from haarpool.training.run_folder import CHECKPOINT, RunFolder
from haarpool.training.trained_model import load_model
from helpers.commands import run_main

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")
NEW = ("ensemble", "optimizer", "label_smoothing")  # settings that format 1 does not have


@pytest.fixture
def old(trained, tmp_path):
    """A run as an earlier version wrote it."""
    shutil.copytree(trained, tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    config = json.loads(path.read_text())
    config["format"] = 1
    for name in NEW:
        del config["training"][name]
    path.write_text(json.dumps(config))
    return path.parent


def predictions(folder):
    run_main("predict", folder, "rings", "--quiet", "--out", "predictions.csv")
    return Path("predictions.csv").read_text()


def test_settings_that_are_missing(old, trained):
    assert predictions(old) == predictions(trained)


def test_clusters_are_those_of_the_version_that_trained(old, trained):
    assert load_model(RunFolder.open(old), CPU).chain == {"seed": 0, "by_size": False}
    assert load_model(RunFolder.open(trained), CPU).chain == {"seed": 0}


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ({}, {"by_size": False}),
        ({"method": "spectral", "by_size": True}, {"method": "spectral", "by_size": True}),
        ({"method": "matching"}, {"method": "matching"}),
    ],
)
def test_both_records_of_the_chain_are_brought_to_the_current_format(chain, expected, old):
    path = old / "config.json"
    config = json.loads(path.read_text()) | {"chain": chain}
    config["training"]["chain"] = chain
    path.write_text(json.dumps(config))
    found = RunFolder.open(old).config()
    assert found["chain"] == found["training"]["chain"] == expected


def test_an_interrupted_run_of_an_earlier_version(old):
    folder = RunFolder.open(old)
    (old / "result.json").unlink()
    folder.write_tensors(CHECKPOINT, {}, {"progress": [1, 1, 0.5, 0.5], "outcomes": []})
    err = run_main("train", "--resume", old, "--quiet", code=2).err
    assert "a checkpoint of this version of haarpool" in err
    assert err.count("\n") == 1
