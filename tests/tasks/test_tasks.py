"""A task is one class in one file: nothing else compares its name."""

import ast
import copy
import csv
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

import haarpool
from haarpool import HaarRegressor
from haarpool._modules import module_names
from haarpool.datasets import read_graphs
from haarpool.tasks import _task, find_task, infer_task, register, task_names
from haarpool.tasks.regression import Regression
from helpers.commands import run_main, run_python
from helpers.errors import error_with

SOURCE = Path(haarpool.__file__).parent
NAMES = set(task_names())


# ---------------------------------------------------------------------- nothing compares a name


def comparisons(text):
    """Return the lines of a module that do something else with the name of a task than state it.

    A name is stated as the default of a parameter or class attribute `task`, in the class attribute
    `tasks`, as the argument `task=`, or as the argument of `find_task`, also one of two by a
    condition.
    """
    tree = ast.parse(text)
    stated, parent, lines = set(), {}, set()
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            parent[child] = node
        if (isinstance(node, ast.keyword) and node.arg == "task") or (
            isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "task"
        ):
            stated.add(node.value)
        elif isinstance(node, ast.ClassDef):
            lists = [one for one in node.body if isinstance(one, ast.Assign)]
            lists = [one.value for one in lists if getattr(one.targets[0], "id", "") == "tasks"]
            stated.update(name for one in lists for name in one.elts)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "find_task":
            stated.update(node.args)
        elif isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            pairs = [*zip(positional[::-1], node.defaults[::-1], strict=False)]
            pairs += zip(node.kwonlyargs, node.kw_defaults, strict=True)
            stated.update(default for name, default in pairs if name.arg == "task")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            while isinstance(parent[node], ast.IfExp) and node is not parent[node].test:
                node = parent[node]
            either = isinstance(parent[node], ast.BoolOp) and isinstance(parent[node].op, ast.Or)
            if node not in stated and not (either and parent[node] in stated):
                lines.add(node.lineno)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            modules = [getattr(node, "module", None), *(alias.name for alias in node.names)]
            if any(str(name).startswith("haarpool.tasks.") for name in modules):
                lines.add(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize(
    "line",
    [
        'if task == "regression": pass',
        'if task in ("classification", "multilabel"): pass',
        'SCORES = {"regression": 1}',
        'SCORES["regression"]',
        'name = "multilabel"',
        'match task:\n case "regression": pass',
        'find_task("a" if task == "regression" else "b")',
        'find_task(names["regression"])',
        'f(task={"regression": 1}[x])',
        'find_task(task == "regression" or "classification")',
        "from haarpool.tasks.regression import Regression",
        "import haarpool.tasks.regression",
        'def f(name="regression"): pass',
    ],
)
def test_a_comparison_is_found(line):
    assert comparisons(line) == [1 if "case" not in line else 2]


@pytest.mark.parametrize(
    "line",
    [
        'def f(task="classification"): "regression or classification"',
        'def f(x, *, task: str = "classification"): pass',
        'class A:\n task: str = "classification"',
        'class A:\n tasks = ("classification", "regression")',
        'Graphs(task="classification")',
        'find_task("classification" if whole else "regression")',
        'find_task(task or "regression")',
    ],
)
def test_a_declaration_is_none(line):
    assert comparisons(line) == []


def test_nothing_else_compares_the_name_of_a_task():
    wrong = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if SOURCE / "tasks" not in path.parents and (lines := comparisons(path.read_text()))
    }
    assert wrong == {}
    template = (SOURCE / "report" / "report.html").read_text()
    assert not [name for name in NAMES if f'"{name}"' in template or f"'{name}'" in template]


# ---------------------------------------------------------------------- the list of tasks


def test_a_task_has_the_name_of_its_file():
    assert task_names() == module_names("haarpool.tasks")


def test_a_task_is_its_name_and_one_object():
    task = find_task("regression")
    assert task == "regression"
    assert json.dumps({"task": task}) == '{"task": "regression"}'
    for same in (find_task(task), pickle.loads(pickle.dumps(task)), copy.deepcopy(task)):
        assert same is task
    assert find_task(None) is None
    with error_with('task "classification", "multilabel" or "regression"', "'ranking'"):
        find_task("ranking")
    with error_with("an unused name for a task", "'regression'"):
        register("regression")(type("Other", (Regression,), {}))


def test_tasks_do_not_import_torch():
    code = "import sys, haarpool.tasks; print({'torch', 'sklearn', 'scipy'} & set(sys.modules))"
    assert run_python(code).out == "set()\n"


# ---------------------------------------------------------------------- a new task


@pytest.fixture
def counts():
    """A task of this test: whole numbers with the likelihood of Poisson."""

    @register("counts")
    class Counts(Regression):
        """Numbers of things: a network predicts their mean."""

        __slots__ = ()
        is_linear = False

        def loss(self, output, target, weight=None, smoothing=0.0):
            rate = softplus(output)
            return (rate - target.view_as(rate) * rate.log()).nanmean()

        def scale(self, targets):
            return None

        def to_predictions(self, output, scale):
            return softplus(output.double()).numpy()

    yield find_task("counts")
    del _task._TASKS["counts"]


@pytest.fixture
def rings_with_counts(tmp_path, monkeypatch):
    """Files of graphs whose label is the number of their rings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    graphs = haarpool.load_dataset("rings")
    saved = []
    for data in graphs:
        rings = data.edge_index.shape[1] // 2 - data.num_nodes + 1
        saved.append(type(data)(x=data.x, edge_index=data.edge_index, y=torch.tensor([rings])))
    torch.save(saved, "counted.pt")
    return saved


def test_a_new_task_from_reading_to_the_report(counts, rings_with_counts, monkeypatch):
    names = "haarpool.cli.parser.module_names"
    monkeypatch.setattr(names, lambda _: task_names())  # as if it had a file in the folder
    small = ("--arch", "GC8-HP-FC8", "--epochs", 2, "--repeats", 2, "--ensemble", 2, "--quiet")
    run_main("train", "counted.pt", "--task", "counts", *small, "--out", "run")
    config = json.loads(Path("run/config.json").read_text())
    result = json.loads(Path("run/result.json").read_text())
    assert config["data"]["task"] == "counts"
    assert config["data"]["summary"]["targets"]["y"]["min"] >= 1
    assert (result["metric"], list(result["scores"])) == ("mae", ["mae", "rmse", "r2"])
    page = Path("run/report.html").read_text()
    assert "Counts of y." in page
    assert "prediction against true value: y" in page
    run_main("predict", "run", "counted.pt", "--out", "new.csv")
    with open("new.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["graph", "y", "uncertainty"]
    assert all(float(row[1]) > 0 for row in rows)
    model = haarpool.load("run")
    assert isinstance(model, HaarRegressor)
    assert model.predict(rings_with_counts).shape == (240,)
    assert np.isfinite(model.score("counted.pt"))


def test_a_new_task_takes_labels_that_no_other_takes(counts):
    assert infer_task(1) == infer_task(3) == "regression"  # counts inherits its answer

    @register("choices")
    class Choices(type(find_task("multilabel"))):
        """Several targets of more than two classes."""

        __slots__ = ()

        def infers(self, num_targets, num_classes):
            return num_targets > 1 and num_classes is not None and num_classes > 2

    try:
        found = [infer_task(2, 3), infer_task(2, 2), infer_task(1, 3), infer_task(2)]
    finally:
        del _task._TASKS["choices"]
    assert found == ["choices", "multilabel", "classification", "regression"]
    assert infer_task(2, 3) == "regression"


def test_a_new_task_has_its_own_loss(counts):
    output, target = torch.zeros(3, 1, requires_grad=True), torch.tensor([[1.0], [2.0], [np.nan]])
    network = haarpool.nn.build_model("GC8-HP-FC8", 3, 1, task="counts")
    rate = np.log(2)
    expected = rate - 1.5 * np.log(rate)
    assert network.loss(output, target).item() == pytest.approx(expected)


def test_without_the_task_its_runs_say_so(rings_with_counts):
    with error_with('task "classification", "multilabel" or "regression"', "'counts'"):
        read_graphs("counted.pt", task="counts")
