"""Trials that another row has trained are not trained again; those of dead processes have lines."""

import pytest
import torch

from haarpool.comparison.learners import network_config
from haarpool.comparison.lines import ResultLines
from haarpool.comparison.processes import Died
from haarpool.comparison.runner import run_table
from haarpool.datasets import read_graphs
from haarpool.errors import HaarPoolError
from paper.known import copy_known
from paper.tables import find_table


def append_line(folder, table, method, seed, **others):
    cells = {cell.key: cell for cell in find_table(table).cells}
    config = network_config(cells["MUTAG", method, "random"]).to_json()
    line = {
        "dataset": "MUTAG", "method": method, "protocol": "random", "seed": seed, "status": "ok",
        "metric": "accuracy", "value": 0.5 + seed / 10, "seconds": 1.0, "sizes": [8, 1, 1],
        "config": config,
    }  # fmt: skip
    ResultLines(folder, table).append(line | others)


@pytest.mark.parametrize(
    ("trained", "asked"),
    [
        (("ablation", "default"), ("table1", "best")),
        (("table1", "best-no-pooling"), ("ablation", "levels-0")),
    ],
)
def test_a_trial_of_another_row_with_the_same_settings_is_copied(tmp_path, trained, asked):
    for seed in range(2):
        append_line(tmp_path, *trained, seed)
    table, method = asked
    chosen = find_table(table).select(["MUTAG"], [method], ["random"])
    copy_known(chosen, tmp_path, 2)
    summary = run_table(chosen, tmp_path, 2, read_graphs, progress=False)
    assert summary == (2, 0, 0)
    lines = [line for line in ResultLines(tmp_path, table).read() if line["method"] == method]
    assert [line["value"] for line in lines] == [0.5, 0.6]


def test_failed_trials_and_other_settings_are_not_copied(tmp_path, monkeypatch):
    append_line(tmp_path, "ablation", "default", 0, status="failed", reason="x")
    append_line(tmp_path, "ablation", "levels-1", 1)
    asked = []
    monkeypatch.setattr(
        "haarpool.comparison.runner.run_in_processes",
        lambda train, trials, jobs, is_broken: (asked.extend(trials), (_ for _ in ()))[1],
    )
    chosen = find_table("table1").select(["MUTAG"], ["best"], ["random"])
    copy_known(chosen, tmp_path, 2)
    summary = run_table(chosen, tmp_path, 2, read_graphs, progress=False)
    assert summary == (0, 0, 0)
    assert [trial.seed for trial in asked] == [0, 1]


KEYS = {
    "dataset", "method", "seed", "protocol", "status", "reason", "metric", "value", "validation",
    "epoch", "split_hash", "chain_hash", "seconds", "config", "versions",
}  # fmt: skip


def test_lines_of_text_say_how_many_trials_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr("haarpool._progress.SECONDS_PER_LINE", 0)
    monkeypatch.setattr(
        "haarpool.comparison.runner.run_in_processes",
        lambda train, trials, *_, **__: ((trial, Died(1)) for trial in trials),
    )
    chosen, lines = find_table("table1").select(["MUTAG"], ["best"], ["random"]), []
    run_table(chosen, tmp_path, 2, read_graphs, progress=lines.append, show=lambda text: None)
    assert lines == ["table1: 1 of 2 trials, 0:00, about 0:00 left", "table1: 2 of 2 trials, 0:00"]


def test_a_dead_process_leaves_a_line_with_all_keys(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "haarpool.comparison.runner.run_in_processes",
        lambda train, trials, *_, **__: ((trial, Died(-9)) for trial in trials),
    )
    chosen = find_table("table1").select(["MUTAG"], ["best"], ["random"])
    assert run_table(chosen, tmp_path, 2, read_graphs, progress=False) == (0, 0, 2)
    for line in ResultLines(tmp_path, "table1").read():
        assert line.keys() >= KEYS
        assert line["status"] == "failed"
        assert line["reason"] == "its process ended with code -9 (killed, often for memory)"


def test_a_dataset_that_must_not_be_read_is_an_error_before_the_work(tmp_path):
    def check(dataset):
        raise HaarPoolError("another dataset", dataset, "choose one")

    table = find_table("triangles")
    with pytest.raises(HaarPoolError, match="another dataset, got TRIANGLES"):
        run_table(table, tmp_path, 1, read_graphs, check=check, progress=False)
    assert not list(tmp_path.glob("triangles"))


def test_a_folder_that_cannot_be_made_is_an_error_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("haarpool.comparison.runner.run_in_processes", None)  # never called
    (tmp_path / "table1").write_text("a file")
    chosen = find_table("table1").select(["MUTAG"], ["gin"], ["random"])
    with pytest.raises(HaarPoolError, match="a folder that can be written"):
        run_table(chosen, tmp_path, 1, read_graphs, progress=False)


@pytest.mark.parametrize(("device", "is_used_again"), [("cpu", True), ("cuda", False)])
def test_a_process_is_used_again_after_a_failure_but_not_on_a_gpu(
    tmp_path, monkeypatch, device, is_used_again
):
    """The kernel of CSM takes minutes and is kept, with its error, for all splits."""
    asked = []
    monkeypatch.setattr(
        "haarpool.comparison.runner.run_in_processes",
        lambda train, trials, jobs, is_broken: (asked.append(is_broken), (_ for _ in ()))[1],
    )
    monkeypatch.setattr("haarpool.comparison.runner.find_device", torch.device)
    chosen = find_table("table1").select(["MUTAG"], ["csm"])
    run_table(chosen, tmp_path, 2, read_graphs, progress=False, device=device)
    assert asked[0]({"status": "failed"}) is not is_used_again
    assert not asked[0]({"status": "ok"})
