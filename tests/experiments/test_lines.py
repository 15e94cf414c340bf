"""Lines on disk: what counts as finished, and what a crash leaves behind."""

import json
import math

import pytest

from haarpool.errors import HaarPoolError
from haarpool.experiments.lines import ResultLines, has_settings, missing_trials, network_config
from haarpool.experiments.table import find_table

TABLE = find_table("table1").select(["MUTAG"], ["haarpool"], ["random"])
(CELL,) = TABLE.cells


def line(seed=0, status="ok", **others):
    dataset, method, protocol = CELL.key
    config = network_config(CELL).to_json()
    return {
        "dataset": dataset, "method": method, "protocol": protocol, "seed": seed,
        "status": status, "value": 0.8, "config": config, **others,
    }  # fmt: skip


def seeds(trials):
    return [trial.seed for trial in trials]


def test_finished_trials_are_left_out_and_failed_ones_unless_retried(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0))
    results.append(line(2, "failed", reason="x"))
    assert seeds(missing_trials(TABLE, results.read(), 4, retry=False)) == [1, 3]
    assert seeds(missing_trials(TABLE, results.read(), 4, retry=True)) == [1, 2, 3]
    results.append(line(2))  # the last line counts
    assert seeds(missing_trials(TABLE, results.read(), 4, retry=True)) == [1, 3]
    assert (tmp_path / "table1" / "MUTAG.jsonl").is_file()


def test_a_failure_does_not_hide_a_result_with_the_same_settings(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0))
    results.append(line(0, "failed", reason="x"))
    assert [one["status"] for one in results.read().values()] == ["ok"]
    other = network_config(CELL).to_json() | {"lr": 0.5}
    results.append(line(0, "failed", reason="x", config=other))
    assert [one["status"] for one in results.read().values()] == ["failed"]


def test_other_settings_are_run_again(tmp_path):
    results = ResultLines(tmp_path, "table1")
    config = network_config(CELL).to_json()
    results.append(line(0, config=config | {"lr": 0.5}))
    results.append(line(1, config=config | {"setting_of_the_future": 1}))
    older = {name: value for name, value in config.items() if name != "pooling"}
    results.append(line(2, config=older))  # a version without this setting
    assert seeds(missing_trials(TABLE, results.read(), 3, retry=False)) == [0, 1]


def test_an_incomplete_line_is_left_out_and_the_next_one_is_whole(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0))
    path = tmp_path / "table1" / "MUTAG.jsonl"
    path.write_bytes(path.read_bytes() + json.dumps(line(1)).encode()[:40])
    results.append(line(2))
    assert sorted(key[-1] for key in results.read()) == [0, 2]


def test_numbers_that_are_not_finite_are_null(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0, scores={"test": {"r2": math.nan}}, sizes=(1, math.inf)))
    (read,) = results.read().values()
    assert (read["scores"], read["sizes"]) == ({"test": {"r2": None}}, [1, None])


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "table1").write_text("a file")
    with pytest.raises(HaarPoolError, match="a folder that can be written"):
        ResultLines(tmp_path, "table1").append(line())


def test_settings_that_a_line_leaves_out_count_as_their_defaults():
    config = network_config(CELL).to_json()
    for name in ("optimizer", "ensemble", "pooling", "domain"):
        del config[name]
    for name in ("ratio", "symmetrize", "order"):
        del config["chain"][name]
    assert has_settings({"config": config}, CELL)
    assert not has_settings({"config": config | {"optimizer": "adamw"}}, CELL)
    del config["chain"]["by_size"]  # by default it is True
    assert not has_settings({"config": config}, CELL)
