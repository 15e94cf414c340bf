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
from haarpool.tasks import find_task, infer_task, register, task_names
from haarpool.tasks.regression import Regression
from helpers.commands import run_main, run_python
from helpers.errors import error_with
from helpers.tasks import registered, save_rings

SOURCE = Path(haarpool.__file__).parent
NAMES = set(task_names())


# ---------------------------------------------------------------------- nothing compares a name

CLASSES = {type(find_task(name)).__name__ for name in NAMES}
# Names of variables and attributes that are tasks. "kind" also has other meanings.
VARIABLES = {"task"}


def is_task(node):
    """Whether an expression is a task by its name, also as `str(task)` and `task[:5]`."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", "")
        return name in ("find_task", "infer_task") or (
            name == "str" and any(map(is_task, node.args))
        )
    if isinstance(node, ast.Subscript):
        return is_task(node.value)
    return getattr(node, "id", getattr(node, "attr", "")) in VARIABLES


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def asks(node):
    """Whether an expression finds out which task it is, in whatever way."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        has_task = any(map(is_task, sides))
        has_found = any(isinstance(s, ast.Call) and is_task(s) for s in sides)
        return has_task and (has_found or any(map(is_text, sides)))
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and hasattr(str, node.func.attr)
        looks = method and node.func.attr != "format" and is_task(node.func.value)
        return looks or (getattr(node.func, "id", "") == "type" and any(map(is_task, node.args)))
    if isinstance(node, ast.ImportFrom | ast.Import):
        module = getattr(node, "module", None) or ""
        modules = [module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)]
        homes = {f"haarpool.tasks.{name}" for name in NAMES}
        return any(one in homes or ".".join(one.split(".")[:3]) in homes for one in modules)
    if is_text(node):
        return node.value.startswith("haarpool.tasks.")
    return getattr(node, "id", getattr(node, "attr", "")) in CLASSES


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
        if asks(node):
            lines.add(node.lineno)
        elif isinstance(node, ast.Constant) and node.value in NAMES:
            while isinstance(parent[node], ast.IfExp) and node is not parent[node].test:
                node = parent[node]
            either = isinstance(parent[node], ast.BoolOp) and isinstance(parent[node].op, ast.Or)
            if node not in stated and not (either and parent[node] in stated):
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
        'if task == find_task("regression"): pass',
        'if graphs.task is not find_task("regression"): pass',
        'if task.startswith("multi"): pass',
        'if self.task.endswith("label"): pass',
        'if "reg" in task: pass',
        'if task[:3] == "reg": pass',
        'if str(task).lower() == "regression": pass',
        'if type(task).__name__ == "Counts": pass',
        "if isinstance(task, Regression): pass",
        "if isinstance(task, tasks.regression.Regression): pass",
        "from haarpool.tasks import regression",
        "from haarpool.tasks.multilabel import Multilabel as M",
        'import_module("haarpool.tasks.regression")',
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
        "if task is None or task == other: pass",
        "if graphs.task in (task, task.of_several): pass",
        "if task not in task_names(): pass",
        "isinstance(task, Task)",
        "from haarpool.tasks import Task, find_task",
        'module_names("haarpool.tasks")',
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
    assert set(module_names("haarpool.tasks")) <= set(task_names())


def test_a_task_is_its_name_and_one_object():
    task = find_task("regression")
    assert task == "regression"
    assert json.dumps({"task": task}) == '{"task": "regression"}'
    for same in (find_task(task), pickle.loads(pickle.dumps(task)), copy.deepcopy(task)):
        assert same is task
    assert find_task(None) is None
    with error_with("expected task ", *(f'"{name}"' for name in task_names()), "'ranking'"):
        find_task("ranking")
    with error_with("an unused name for a task", "'regression'"):
        register("regression")(type("Other", (Regression,), {}))


def test_tasks_do_not_import_torch():
    code = "import sys, haarpool.tasks; print({'torch', 'sklearn', 'scipy'} & set(sys.modules))"
    assert run_python(code).out == "set()\n"


# ---------------------------------------------------------------------- a new task


class Poisson(Regression):
    """Numbers of things: a network predicts their mean."""

    __slots__ = ()
    is_linear = False
    scale = None

    def loss(self, output, target, weight=None, smoothing=0.0):
        rate = softplus(output)
        return (rate - target.view_as(rate) * rate.log()).nanmean()

    def to_predictions(self, output, scale, names):
        return softplus(output.double()).numpy()


@pytest.fixture
def rings_with_counts(without_data):
    """Files of graphs whose label is the number of their rings."""
    return save_rings("counted.pt", lambda rings, nodes: [rings])


def test_a_new_task_from_reading_to_the_report(rings_with_counts):
    small = ("--arch", "GC8-HP-FC8", "--epochs", 2, "--repeats", 2, "--ensemble", 2, "--quiet")
    with registered(Poisson, "of_tests"):
        run_main("train", "counted.pt", "--task", "of_tests", *small, "--out", "run")
        config = json.loads(Path("run/config.json").read_text())
        result = json.loads(Path("run/result.json").read_text())
        assert config["data"]["task"] == "of_tests"
        assert config["data"]["summary"]["targets"]["y"]["min"] >= 1
        assert (result["metric"], list(result["scores"])) == ("mae", ["mae", "rmse", "r2"])
        page = Path("run/report.html").read_text()
        assert "Of_tests of y." in page
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


class Choices(type(find_task("multilabel"))):
    """Several targets of more than two classes."""

    __slots__ = ()

    def infers(self, num_targets, num_classes):
        return num_targets > 1 and num_classes is not None and num_classes > 2


def test_a_new_task_takes_labels_that_no_other_takes():
    with registered(Poisson, "of_tests"):  # it inherits its answer
        assert infer_task(1) == infer_task(3) == "regression"
    with registered(Choices, "of_tests"):
        found = [infer_task(2, 3), infer_task(2, 2), infer_task(1, 3), infer_task(2)]
    assert found == ["of_tests", "multilabel", "classification", "regression"]
    assert infer_task(2, 3) == "regression"


def test_a_new_task_has_its_own_loss():
    output, target = torch.zeros(3, 1, requires_grad=True), torch.tensor([[1.0], [2.0], [np.nan]])
    with registered(Poisson, "of_tests"):
        network = haarpool.nn.build_model("GC8-HP-FC8", 3, 1, task="of_tests")
        rate = np.log(2)
        expected = rate - 1.5 * np.log(rate)
        assert network.loss(output, target).item() == pytest.approx(expected)


def test_without_the_task_its_data_say_so(rings_with_counts):
    with error_with("expected task ", "'of_tests'"):
        read_graphs("counted.pt", task="of_tests")
