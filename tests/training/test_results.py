"""The scores that a run writes, shows and reports."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup
from haarpool.training.results import run_result
from haarpool.training.run import start_run
from haarpool.training.train import train_run
from helpers.commands import run_main

SMALL = ("--arch", "GC8-HP-FC8", "--epochs", 2, "--quiet")


@pytest.fixture
def one_class(tmp_path, monkeypatch):
    """Two splits of the dataset rings; the test part of the second one has one class only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    targets = read_graphs("rings").targets
    order = np.random.default_rng(0).permutation(len(targets))
    first = {"train": order[:160], "validation": order[160:200], "test": order[200:]}
    test = order[targets[order] == 0][:40]
    others = np.setdiff1d(order, test)
    second = {"train": others[:150], "validation": others[150:], "test": test}
    splits = [{part: graphs.tolist() for part, graphs in one.items()} for one in (first, second)]
    Path("splits.json").write_text(json.dumps(splits))
    return ("--split", "splits.json")


@pytest.mark.parametrize("ensemble", [1, 2])
def test_roc_auc_is_the_mean_over_the_repeats_that_define_it(one_class, ensemble):
    arguments = (*SMALL, *one_class, "--ensemble", ensemble, "--out", "run")
    out = run_main("train", "rings", *arguments).out
    assert re.search(r"test accuracy [^,]*, ROC-AUC [\d.]+ in 1 of 2 repeats \(2 repeats", out)
    assert re.search(r"validation accuracy [^,]*, ROC-AUC [01]\.\d+ ± [^ ]*\n", out)
    result = json.loads(Path("run/result.json").read_text())
    area = result["scores"]["roc_auc"]["test"]
    assert area["each"][1] is None
    assert area["mean"] == area["each"][0]
    assert area["std"] is None
    page = Path("run/report.html").read_text()
    cells = r"\s*<td>[\d.]+</td><td>[\d.]+ ± [\d.]+</td>\s*<td>1</td>"
    assert re.search(rf"ROC-AUC</th>{cells}", page)
    assert "over the repeats in which the score is defined" in page
    if ensemble > 1:
        members = result["members"]["scores"]["roc_auc"]["test"]
        assert members["each"][1] == [None, None]
        assert members["mean"] == pytest.approx(np.mean(members["each"][0]))


def test_published_folds_are_counted_as_folds(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    rings = read_graphs("rings")
    graphs = replace(rings, folds=np.arange(len(rings)) % 5)
    config = RunConfig(arch="GC8-HP-FC8", epochs=1, split="given")
    result = run_result(train_run(start_run(graphs, config, ProcessGroup(), progress=False)))
    assert result["repeats"] == result["folds"] == 5
