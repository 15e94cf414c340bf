"""The scores that a run writes, shows and reports."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from haarpool.datasets import read_graphs
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
    assert re.search(r"validation accuracy [^,]*, ROC-AUC [01]\.\d\d\d ± [^ ]*\n", out)
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
