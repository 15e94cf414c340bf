"""Lines on disk: what counts as finished, and what a crash leaves behind."""

import json
import math

import pytest

from haarpool.comparison.learners import NetworkLearner, network_config
from haarpool.comparison.lines import (
    ResultLines,
    current_lines,
    make_folder,
    missing_trials,
)
from haarpool.errors import HaarPoolError
from paper.tables import find_table

TABLE = find_table("table1").select(["MUTAG"], ["haarpool"], ["random"])
(CELL,) = TABLE.cells


def line(seed=0, status="ok", **others):
    dataset, method, protocol = CELL.key
    config = network_config(CELL).to_json()
    return {
        "dataset": dataset, "method": method, "protocol": protocol, "seed": seed,
        "status": status, "metric": "accuracy", "value": 0.8, "sizes": [8, 1, 1], "config": config,
        **others,
    }  # fmt: skip


def missing(results, repeats, *, retry=False):
    current = current_lines(TABLE, results.read())
    return [trial.seed for trial in missing_trials(TABLE, current, repeats, retry)]


def values(results):
    return [one["value"] for one in current_lines(TABLE, results.read()).values()]


def test_finished_trials_are_left_out_and_failed_ones_unless_retried(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0))
    results.append(line(2, "failed", reason="x"))
    assert missing(results, 4) == [1, 3]
    assert missing(results, 4, retry=True) == [1, 2, 3]
    results.append(line(2))  # the last line counts
    assert missing(results, 4, retry=True) == [1, 3]
    assert (tmp_path / "table1" / "MUTAG.jsonl").is_file()


def test_the_last_line_counts_unless_it_failed_or_has_other_settings(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0, value=0.7))
    results.append(line(0, value=0.8))
    results.append(line(0, "failed", reason="x", value=None))
    other = network_config(CELL).to_json() | {"lr": 0.5}
    results.append(line(0, config=other, value=0.9))
    results.append(line(0, config=other, value=None, status="failed", reason="x"))
    assert values(results) == [0.8]
    assert len(results.read()) == 5


def test_other_settings_are_run_again(tmp_path):
    results = ResultLines(tmp_path, "table1")
    config = network_config(CELL).to_json()
    results.append(line(0, config=config | {"lr": 0.5}))
    results.append(line(1, config=config | {"setting_of_the_future": 1}))
    older = {name: value for name, value in config.items() if name != "pooling"}
    results.append(line(2, config=older))  # a version without this setting
    assert missing(results, 3) == [0, 1]


def test_an_incomplete_line_is_left_out_and_the_next_one_is_whole(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0))
    path = tmp_path / "table1" / "MUTAG.jsonl"
    path.write_bytes(path.read_bytes() + json.dumps(line(1)).encode()[:40])
    results.append(line(2))
    assert [one["seed"] for one in results.read()] == [0, 2]


@pytest.mark.parametrize(
    "damage",
    [
        {"dataset": ["MUTAG"]}, {"method": None}, {"seed": "x"}, {"status": 1}, {"config": None},
        {"metric": None}, {"value": None}, {"value": "0.8"}, {"sizes": None}, {"sizes": [8, 1]},
        {"sizes": [8, 1, None]}, {"seed": True}, {"value": True}, {"value": math.nan},
        {"status": "weird"}, {"parts": None}, {"parts": {"train": None}}, {"scores": None},
        {"scores": {"test": None}}, {"chain_hashes": None}, {"chain_hash": []}, {"split_hash": []},
    ],
)  # fmt: skip
def test_damaged_lines_are_left_out(tmp_path, damage):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0))
    path = tmp_path / "table1" / "MUTAG.jsonl"
    for text in (json.dumps(line(1) | damage), "[]", "null", '"dataset"'):
        path.write_text(path.read_text() + text + "\n")
    assert [one["seed"] for one in results.read()] == [0]


def test_lines_without_the_parts_of_their_table_do_not_count(tmp_path):
    table = find_table("triangles")
    cell = table.cells[0]
    names = dict(zip(("dataset", "method", "protocol"), cell.key, strict=True))
    config = network_config(cell).to_json()
    parts = dict.fromkeys(table.parts, 0.5)
    lines = [line(seed, config=config, **names) for seed in range(2)]
    lines[1]["parts"] = parts
    assert [key[-1] for key in current_lines(table, lines)] == [1]


def test_numbers_that_are_not_finite_are_null(tmp_path):
    results = ResultLines(tmp_path, "table1")
    results.append(line(0, scores={"test": {"r2": math.nan}}, history=(1, math.inf)))
    (read,) = results.read()
    assert (read["scores"], read["history"]) == ({"test": {"r2": None}}, [1, None])


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "table1").write_text("a file")
    results = ResultLines(tmp_path, "table1")
    for call in (lambda: results.append(line()), lambda: make_folder(results.folder)):
        with pytest.raises(HaarPoolError, match="a folder that can be written"):
            call()


def test_settings_that_a_line_leaves_out_count_as_their_defaults():
    config = network_config(CELL).to_json()
    for name in ("optimizer", "ensemble", "pooling", "domain"):
        del config[name]
    for name in ("ratio", "symmetrize", "order"):
        del config["chain"][name]
    assert NetworkLearner.has_settings(config, CELL)
    assert not NetworkLearner.has_settings(config | {"optimizer": "adamw"}, CELL)
    del config["chain"]["by_size"]  # by default it is True
    assert not NetworkLearner.has_settings(config, CELL)
