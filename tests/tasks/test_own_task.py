"""Tasks from outside of the package: registering them, and all that a run does with them."""

import csv
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone

import haarpool as hp
from haarpool import HaarClassifier, HaarRegressor
from haarpool.datasets import read_graphs
from haarpool.tasks import SCORES, _registry, find_task, register
from haarpool.tasks._task import Task
from haarpool.tasks.regression import Regression
from helpers.commands import run_main
from helpers.errors import error_with
from helpers.tasks import Grades, LogScale, Positive, registered, save_rings

ROOT = Path(__file__).parents[2]
SMALL = ("--arch", "GC8-HP-FC8", "--epochs", 2, "--quiet")
FAST = {"arch": "GC8-HP-FC8", "epochs": 2, "device": "cpu", "progress": False}


@pytest.fixture(autouse=True)
def place(without_data):
    """An empty working directory."""


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


# ---------------------------------------------------------------------- targets of another form


def test_a_scale_of_ones_own_in_training_testing_and_prediction():
    with registered(Positive, "of_tests"):
        save_rings("rings.pt", lambda rings, nodes: [1000.0 * nodes])
        arguments = ("--arch", "GC8-SUM-FC8", "--epochs", 30, "--lr", 0.02, "--quiet")
        run_main("train", "rings.pt", "--task", "of_tests", *arguments, "--out", "run")
        test = table("run/test.csv")
        target, own = (np.array(test[f"{kind} y"], float) for kind in ("target", "prediction"))
        assert np.abs(own / target - 1).mean() < 0.3
        run_main("predict", "run", "--out", "new.csv")
        predicted = np.array(table("new.csv")["y"], float)[np.array(test["graph"], int)]
        np.testing.assert_allclose(predicted, own, rtol=1e-4)
        model = hp.load("run", device="cpu")
        assert type(model.trained.scale) is LogScale
        np.testing.assert_allclose(
            model.predict("rings.pt")[[0]], np.array(table("new.csv")["y"][:1], float), rtol=1e-4
        )


def test_a_resumed_run_keeps_the_scale(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with registered(Positive, "of_tests"):
        save_rings("rings.pt", lambda rings, nodes: [1000.0 * nodes])
        arguments = ("train", "rings.pt", "--task", "of_tests", *SMALL, "--ensemble", 2, "--out")
        run_main(*arguments, "whole")
        with monkeypatch.context() as patch:
            patch.setattr("haarpool.training.results.write_results", interrupt)
            run_main(*arguments, "resumed", code=130)
        run_main("train", "--resume", "resumed")
        values = [hp.load(run).predict("rings.pt") for run in ("whole", "resumed")]
        np.testing.assert_array_equal(*values)


# ---------------------------------------------------------------------- several outputs per target


def test_several_outputs_per_target_from_reading_to_the_report():
    with registered(Grades, "of_tests") as task:
        graphs = save_rings("rings.pt", lambda rings, nodes: [rings % 3, nodes % 3])
        members = ("--ensemble", 2, "--repeats", 2)
        run_main("train", "rings.pt", "--task", "of_tests", *SMALL, *members, "--out", "run")
        config = json.loads(Path("run/config.json").read_text())
        assert config["model"]["out_channels"] == 6
        assert list(json.loads(Path("run/result.json").read_text())["targets"]) == ["y0", "y1"]
        assert "This task has no picture" in Path("run/report.html").read_text()
        run_main("predict", "run", "rings.pt", "--out", "new.csv")
        names = [f"p(y{t}: {c})" for t in range(2) for c in range(3)]
        assert [*table("new.csv")] == ["graph", *names, "y0 uncertainty", "y1 uncertainty"]
        model = hp.load("run")
        assert isinstance(model, HaarClassifier)
        assert model.predict(graphs).shape == (240, 2)
        assert model.predict_uncertainty(graphs).shape == (240, 2)
        assert 0 <= model.score(graphs) <= 1
        some = [data for data in graphs if data.y[0, 0] > 0 and data.y[0, 1] > 0]  # two classes
        right = (model.predict(some) == [data.y[0].tolist() for data in some]).mean()
        assert model.score(some) == pytest.approx(right)
        assert hp.load_dataset("rings.pt", task="of_tests").num_classes == 6
        assert find_task("of_tests") is task


@pytest.mark.parametrize("names", [(0, 1, 2), ("high", "low", "middle"), (1.5, 2.5, 4.0)])
def test_classes_of_several_targets_as_an_array(names):
    with registered(Grades, "of_tests"):
        graphs, numbers = read_graphs("rings"), np.arange(480).reshape(240, 2) // 2 % 3
        y = np.array(names)[numbers]
        model = HaarClassifier(task="of_tests", **FAST).fit(graphs, y)
        assert model.classes_.tolist() == list(names)
        predicted = model.predict(graphs)
        assert predicted.dtype == y.dtype
        assert model.score(graphs, y) == pytest.approx((predicted == y).mean())
        two = np.where(y == names[0], names[1], y)  # one class is not there
        assert model.score(graphs, two) == pytest.approx((predicted == two).mean())
        some = y.astype(object)
        some[::2, 0] = None
        known = some != None  # noqa: E711
        right = [(predicted == y)[known[:, t], t].mean() for t in range(2)]
        assert model.score(graphs, some) == pytest.approx(np.mean(right))
        with error_with("finite numbers as classes, got inf for graph 3"):
            model.fit(graphs, np.where(np.arange(480).reshape(240, 2) == 7, np.inf, numbers))


def test_columns_of_another_width_are_an_error():
    class Wide(Grades):
        columns = Task.columns

    with (
        registered(Wide, "of_tests") as task,
        error_with("a prediction of of_tests for each of 2 targets, got 6", "Wide.columns"),
    ):
        task.score(np.zeros((3, 6)), np.zeros((3, 2)))


# ---------------------------------------------------------------------- wrong classes


MAE, RMSE = SCORES["mae"], SCORES["rmse"]


@pytest.mark.parametrize(
    ("attributes", "parts"),
    [
        ({"scores": ()}, ("scores of the task 'wrong', a tuple", "scores = (MAE, RMSE) in Wrong")),
        ({"scores": MAE}, ("scores of the task 'wrong', a tuple", "Score(name='mae'")),
        ({"scores": ("mae",)}, ("scores of the task 'wrong', a tuple", "('mae',)")),
        ({"headline": MAE}, ("headline of the task 'wrong', a tuple", "headline = (MAE,)")),
        ({"scores": (RMSE,)}, ("a headline of the task 'wrong' out of its scores, got mae",)),
        ({"scale": lambda self, targets: None}, ("scale of the task 'wrong', a class",)),
        ({"loss": Task.loss}, ("a loss of the task 'wrong', got none; add Wrong.loss",)),
    ],
)
def test_a_wrong_class_is_an_error_when_it_is_registered(attributes, parts):
    class Right(Regression):
        scores = (MAE, RMSE)
        headline = (MAE,)

    with error_with(*parts):
        register("wrong")(type("Wrong", (Right,), attributes))
    assert "wrong" not in _registry._TASKS


def test_a_task_without_scores_is_an_error():
    with error_with("scores of the task 'wrong', a tuple", "got None"):
        register("wrong")(type("Wrong", (Task,), {}))


def test_a_task_of_the_package_has_the_name_of_its_file():
    cls = type("Wrong", (Regression,), {"__module__": "haarpool.tasks.counts"})
    with error_with("a task in counts.py with the name 'counts', got 'count'", "rename"):
        register("count")(cls)


def test_mypy_accepts_other_scores_and_scales(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from haarpool.tasks import SCORES, register\n"
        "from haarpool.tasks.regression import Regression\n"
        "@register('two')\nclass Two(Regression):\n"
        "    scores = (SCORES['mae'], SCORES['r2'])\n    headline = scores\n    scale = None\n"
    )
    assert run_tool("mypy", "--no-error-summary", file) == ""


def run_tool(*command):
    command = [sys.executable, "-m", *map(str, command)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.stdout if run.returncode else ""


@pytest.mark.parametrize(
    ("answer", "got"),
    [(lambda output: output, "Tensor (30, 1)"), (lambda output: output.numpy()[0], "ndarray (1,)")],
)
def test_predictions_that_are_no_rows_of_an_array(answer, got):
    class Wrong(Regression):
        def to_predictions(self, output, scale, names):
            return answer(output)

    with registered(Wrong, "of_tests"):
        graphs = read_graphs("rings")
        values = np.arange(len(graphs), dtype=float)
        with error_with(
            "a numpy array", "columns) from Wrong.to_predictions", got.partition(" ")[0]
        ):
            HaarRegressor(task="of_tests", **FAST).fit(graphs, values)


# ---------------------------------------------------------------------- estimators


def test_an_estimator_has_the_task_that_it_is_given():
    with registered(Positive, "of_tests") as task:
        save_rings("rings.pt", lambda rings, nodes: [float(nodes)])
        model = HaarRegressor(task="of_tests", **FAST)
        assert "task='of_tests'" in repr(model)
        assert clone(model).get_params()["task"] == "of_tests"
        for data in ("rings.pt", read_graphs("rings.pt", task="regression")):
            assert clone(model).fit(data).trained.task is task
        values = np.arange(1.0, 241.0)
        fitted = clone(model).fit("rings", values)
        assert fitted.trained.task is task
        error = np.abs(fitted.predict("rings") - values).mean()
        assert fitted.score("rings", values) == pytest.approx(-error)
        fitted.save("run")
        again = hp.load("run").fit("rings", values)
        assert again.trained.task is task


def test_what_a_score_is():
    values = np.arange(240.0)
    model = HaarRegressor(**FAST).fit("rings", values)
    own = model.trained.task.score(model.predict("rings")[:, None], values[:, None])
    assert model.score("rings", values) == own["r2"]
    with registered(type("Own", (Regression,), {}), "of_tests"):  # it has R², too
        model = HaarRegressor(task="of_tests", **FAST).fit("rings", values)
        own = model.trained.task.score(model.predict("rings")[:, None], values[:, None])
        assert model.score("rings", values) == own["r2"]


def test_a_task_of_the_other_estimator_is_an_error():
    with error_with("task with classes as labels", "'regression'", "use HaarRegressor"):
        HaarClassifier(task="regression").fit("rings")
    with error_with("task with values as labels", "'multilabel'", "use HaarClassifier"):
        HaarRegressor(task="multilabel").fit("rings")
    with error_with("task", "'ranking'"):
        HaarRegressor(task="ranking").fit("rings")


def test_labels_of_another_number_of_targets_are_an_error():
    values = np.arange(480.0).reshape(240, 2)
    model = HaarRegressor(**FAST).fit("rings", values)
    with error_with("labels for regression, 2 per graph, as in fit", "regression, 1 per"):
        model.score("rings", values[:, 0])


def test_one_column_of_zeros_and_ones_for_multilabel():
    labels = np.arange(240) % 2
    model = HaarClassifier(task="multilabel", **FAST).fit("rings", labels)
    assert model.trained.task == "multilabel"
    assert model.predict_proba("rings").shape == (240, 1)
    assert HaarClassifier(task="multilabel", **FAST).fit("rings").trained.task == "multilabel"


def test_the_words_of_a_task_about_labels_stay():
    class Checked(Positive):
        def check(self, targets, names, dataset):
            if np.nanmin(targets) <= 0:
                raise hp.HaarPoolError("values > 0", f"{np.nanmin(targets):g}", "remove zeros")

    with registered(Checked, "of_tests"), error_with("values > 0, got 0; remove zeros"):
        HaarRegressor(task="of_tests", **FAST).fit("rings", np.arange(240))


# ---------------------------------------------------------------------- the shell


def test_the_shell_takes_any_registered_task_and_checks_it_first():
    err = run_main("train", "nowhere", "--task", "regresion", code=2).err
    assert 'expected --task "classification", ' in err
    with registered(Positive, "of_tests"):
        save_rings("rings.pt", lambda rings, nodes: [float(nodes)])
        run_main("train", "rings.pt", "--task", "of_tests", *SMALL, "--out", "run")


# ---------------------------------------------------------------------- the recipe in CONTRIBUTING


@pytest.fixture
def recipe(tmp_path):
    """The file of the recipe "A task"."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.partition("### A task")[2].partition("\n### ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.S | re.M)
    path = tmp_path / "counts.py"
    path.write_text(code)
    return path


def test_the_recipe_trains_predicts_and_reports(recipe):
    spec = importlib.util.spec_from_file_location("haarpool.tasks.counts", recipe)
    before = _registry._TASKS.pop("counts", None)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        task = find_task("counts")
        graphs = save_rings("rings.pt", lambda rings, nodes: [float(rings)])
        run_main("train", "rings.pt", "--task", "counts", *SMALL, "--out", "run")
        scores = json.loads(Path("run/result.json").read_text())["scores"]
        assert [*scores] == [one.name for one in task.scores]
        run_main("predict", "run", "--out", "new.csv")
        predicted = np.array(table("new.csv")["y"], float)
        assert (predicted > 0).all()
        assert run_main("report", "run").out == "run/report.html\n"
        model = hp.load("run")
        np.testing.assert_allclose(model.predict(graphs), predicted, rtol=1e-4)
        assert np.isfinite(model.score(graphs))
        output = torch.zeros(3, 1, requires_grad=True)
        assert task.loss(output, torch.full((3, 1), torch.nan)).item() == 0
        with error_with("counts >= 0"):
            model.fit("rings", np.arange(240) - 5.0)
    finally:
        del _registry._TASKS["counts"]
        if before is not None:
            _registry._TASKS["counts"] = before


def test_the_recipe_passes_ruff_and_mypy(recipe):
    place = ("--stdin-filename", "src/haarpool/tasks/counts.py", "-")
    for check in (("check",), ("format", "--check")):
        command = [sys.executable, "-m", "ruff", *check, *place]
        run = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, input=recipe.read_text()
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert run_tool("mypy", "--no-error-summary", recipe) == ""
