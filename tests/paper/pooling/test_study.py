"""The study of pooling: the search, what is reported, shortcuts, and the tables of its page."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from haarpool.comparison.table import Trial
from haarpool.comparison.trials import TrialRunner
from helpers.commands import run_main
from helpers.errors import error_with
from helpers.study import grid_graph
from paper.__main__ import main
from paper.pooling import page
from paper.pooling.data import read_task
from paper.pooling.data.files import Dataset, both_directions, random_splits, save
from paper.pooling.learners import size_scores
from paper.pooling.methods import GRID, METHODS
from paper.pooling.run import choose
from paper.pooling.table import GIVEN, chosen_rates, final_table, search_table, settings
from paper.pooling.tasks import TASKS, find_task

SIDE, SCENARIOS = 5, 60
run_paper = partial(run_main, main=main)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of the study with a small grid, whose power flow is that of direct current."""
    monkeypatch.setenv("HAARPOOL_STUDY", str(tmp_path / "study"))
    rng, nodes = np.random.default_rng(0), SIDE * SIDE
    edges = both_directions(grid_graph(SIDE), nodes)
    weight = rng.uniform(1, 2, (nodes, nodes))
    weight = (weight + weight.T)[edges[0], edges[1]]
    load = rng.normal(size=(SCENARIOS, nodes))
    share = rng.random(nodes)
    share /= share.sum()
    A = sparse.csc_array((weight, (edges[0], edges[1])), shape=(nodes, nodes)).toarray()
    injection = load.sum(1, keepdims=True) * share - load
    angle = injection @ np.linalg.pinv(np.diag(A.sum(0)) - A) + rng.normal(size=nodes)
    same = np.broadcast_to(share, load.shape)
    arrays = {
        "edge_index": edges,
        "edge_weight": weight,
        "x": np.stack([load, same, same, same], 2).astype(np.float32),
        "y": np.stack([angle, load @ rng.normal(size=(nodes, nodes))], 2),
        "target_names": np.array(["angle", "magnitude"]),
    }
    save(Dataset(arrays, random_splits(SCENARIOS, 10)), "power", tmp_path / "study")
    return tmp_path


def lines(folder, name):
    return [json.loads(x) for x in (folder / name / "power.jsonl").read_text().splitlines()]


def test_the_study_from_the_shell(folder, monkeypatch):
    command = ("pooling", "--quick", "--dataset", "power", "--method", "haarunet,flat-4,mean",
               "--device", "cpu", "--results", folder)  # fmt: skip
    environment = {"HAARPOOL_CACHE": folder / "cache", "HAARPOOL_STUDY": folder / "study"}
    out = run_paper(*command, **environment).out
    assert "16 trials ok, 0 failed, 0 were there" in out
    tried = lines(folder, "pooling-search")
    assert len(tried) == 2 * len(GRID)
    for line in tried:  # nothing of the test part
        assert line["value"] == line["validation"]
        assert line["scores"].keys() == {"validation"}
        assert not {"parts", "reach"} & line.keys()
        assert (line["seed"], line["config"]["split"]) == (0, GIVEN)
    final = lines(folder, "pooling")
    assert {(line["method"], line["seed"]) for line in final} == {
        (name, seed) for name in ("haarunet", "flat-4", "mean") for seed in (0, 1)
    }
    for line in final:
        assert line["parts"].keys() == {"angle", "magnitude"}
        assert np.mean([*line["parts"].values()]) == pytest.approx(line["value"])
    assert "0 trials ok, 0 failed, 16 were there" in run_paper(*command, **environment).out
    listed = run_paper("pooling", "--list", "--dataset", "power").out
    assert "power\thaarunet" in listed
    assert "power\tdiffusion" in listed


@pytest.mark.parametrize(("name", "angle"), [("diffusion", 0.999), ("ridge", 0.9), ("mean", -0.5)])
def test_shortcuts(folder, name, angle):
    table = final_table(find_task("power"), {}, [name])
    line = TrialRunner(read_task, "cpu")(Trial(table.cells[0], 1))
    assert line["status"] == "ok", line["reason"]
    assert line["parts"]["angle"] > angle
    assert (line["parts"]["magnitude"] > 0.9) == (name == "ridge")


def test_the_validation_part_chooses_the_learning_rate():
    task = find_task("power")
    table = search_table(task, ["haarunet", "flat-8"])
    scores = [0.1, 0.3, 0.2, 0.15, 0.12, 0.5, 0.4, 0.3, 0.2, 0.1]
    made = [
        {
            "dataset": "power", "method": cell.method, "protocol": GIVEN, "seed": 0,
            "status": "ok", "metric": "r2", "validation": score, "value": score, "parts": {},
            "config": cell.learner.config(cell),
        }
        for cell, score in zip(table.cells, scores, strict=True)
    ]  # fmt: skip
    methods = ["haarunet", "flat-8"]
    assert chosen_rates(task, methods, made) == {"haarunet": GRID[1], "flat-8": GRID[0]}
    assert chosen_rates(task, methods, made[:-1]) == {"haarunet": GRID[1]}  # one is missing
    made[1] |= {"status": "failed", "reason": "OutOfMemoryError: no"}  # it may work another time
    assert chosen_rates(task, methods, made) == {"flat-8": GRID[0]}
    made[1] |= {"reason": "HaarPoolError: expected a finite validation loss, got nan"}
    assert chosen_rates(task, methods, made)["haarunet"] == GRID[2]
    for line in made:
        line["metric"] = "mae"
    assert chosen_rates(task, methods, made) == {"haarunet": GRID[0], "flat-8": GRID[4]}
    for line in made:
        line["config"] |= {"epochs": 1}
    assert chosen_rates(task, methods, made) == {}


def test_all_methods_have_the_same_settings_but_their_networks():
    """No method is given less than ours."""
    for task in TASKS.values():
        ours = settings(task, "haarunet", GRID[0])
        for name in task.methods:
            given = settings(task, name, GRID[0])
            different = {key for key in given if given[key] != ours[key]}
            assert different <= {"arch", "chain", "epochs"}
            assert given["epochs"] == METHODS[name].longer * ours["epochs"]


def test_names():
    assert {task.name: names for task, names in choose(["huangpu"], ["trees", "sag"]).items()} == {
        "huangpu": ["sag", "trees"]
    }
    assert len(choose([], [])) == len(TASKS)
    with error_with("a task of the study: ", "got city"):
        choose(["city"], [])
    with error_with("a method of the study: ", "got gat"):
        choose([], ["haarunet", "gat"])
    with error_with("methods that one of the tasks has, got gcnii"):
        choose(["peptides"], ["gcnii"])


def test_tables_of_the_page(folder, monkeypatch):
    table = final_table(find_task("power"), {}, ["mean", "diffusion"])
    runner = TrialRunner(read_task, "cpu")
    (folder / "pooling").mkdir()
    text = "".join(json.dumps(runner(one)) + "\n" for one in table.trials(3))
    (folder / "pooling" / "power.jsonl").write_text(text)
    path = folder / "page.md"
    path.write_text("before\n\n<!-- power -->\n<!-- end -->\nafter\n")
    monkeypatch.setattr(page, "PAGES", (folder / "other.md",))
    with error_with("the page of the study, got no "):
        page.write_page(folder)
    monkeypatch.setattr(page, "PAGES", (path,))
    assert page.write_page(folder) == [path]
    written = path.read_text()
    assert "| DC solve, one fitted factor | 3 |" in written
    assert "angle" in written
    assert written.startswith("before\n")
    assert written.endswith("after\n")


def test_sensors(tmp_path, monkeypatch):
    """Speeds are a linear function of two numbers, so known sensors say the missing ones."""
    monkeypatch.setenv("HAARPOOL_STUDY", str(tmp_path))
    rng, nodes, steps = np.random.default_rng(0), 12, 200
    speed = rng.normal(size=(steps, 2)) @ rng.normal(size=(2, nodes)) + rng.normal(size=nodes)
    missing = rng.random(speed.shape) < 0.2
    arrays = {
        "edge_index": np.stack([np.arange(nodes), np.roll(np.arange(nodes), 1)]),
        "x": np.stack([np.where(missing, 0, speed), ~missing], 2),
        "y": np.where(missing, 60 + 10 * speed, np.nan),
    }
    arrays["edge_index"] = np.concatenate([arrays["edge_index"], arrays["edge_index"][::-1]], 1)
    save(Dataset(arrays, random_splits(steps, 20)), "traffic-random", tmp_path)
    names = ("sensor-mean", "sensor-regression")
    table = final_table(find_task("traffic-random"), {}, names)
    runner = TrialRunner(read_task, "cpu")
    mean, regression = (runner(Trial(cell, 0)) for cell in table.cells)
    assert regression["value"] > 0.95
    assert mean["value"] < 0.7


def test_larger_graphs_do_not_count_in_the_main_score():
    networks = SimpleNamespace(
        run=SimpleNamespace(graphs=SimpleNamespace(sizes=np.array([2, 3, 9]), rows=rows_of)),
        task=SimpleNamespace(of_nodes=True, score=lambda out, y: {"r2": float((out == y).mean())}),
        test=np.arange(12.0),
    )
    networks.run.graphs.targets = np.array([0.0, 0, *range(3), *[-1] * 9])
    split = SimpleNamespace(test=np.array([1, 2]))
    assert size_scores(5, "r2", networks, split) == {"original sizes": 1.0, "large": 0.0}


def rows_of(graphs):
    assert graphs.tolist() == [1, 2]
    return np.arange(2, 14)
