"""A run of an earlier version, which did not have all settings, predicts as before."""

import json
import shutil
from pathlib import Path

import pytest

from helpers.commands import run_main

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")


def predictions(folder):
    run_main("predict", folder, "rings", "--quiet", "--out", "predictions.csv")
    return Path("predictions.csv").read_text()


def test_settings_that_are_missing(trained, tmp_path):
    path = shutil.copytree(trained, tmp_path / "old") / "config.json"
    config = json.loads(path.read_text())
    for name in ("ensemble", "optimizer", "label_smoothing"):
        del config["training"][name]
    path.write_text(json.dumps(config))
    assert predictions(path.parent) == predictions(trained)
