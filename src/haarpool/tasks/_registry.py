"""The list of tasks: a task is found by its name, and inferred from labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from haarpool._modules import load_entry_points
from haarpool._validate import choice
from haarpool.errors import HaarPoolError
from haarpool.tasks._scores import Score
from haarpool.tasks._task import Task

_TASKS: dict[str, Task] = {}

TaskClass = TypeVar("TaskClass", bound=type[Task])


def register(name: str) -> Callable[[TaskClass], TaskClass]:
    """Return a decorator that makes the one object of a task class and adds it to the list.

    Args:
        name: Name of the task, for `read_graphs(task=name)`. A task of the package has that of its
            file.
    """

    def add(cls: TaskClass) -> TaskClass:
        _check_class(name, cls)
        if name in _TASKS and type(_TASKS[name]).__module__ != cls.__module__:
            raise HaarPoolError("an unused name for a task", f"{name!r}", "choose another name")
        _TASKS[name] = cls(name)
        return cls

    return add


def _check_class(name: str, cls: type[Task]) -> None:
    """Raise an error if a class of tasks is not complete."""
    package, _, file = cls.__module__.rpartition(".")
    if package == __package__ and not file.startswith("_") and file != name:
        raise HaarPoolError(
            f"a task in {file}.py with the name {file!r}", f"{name!r}", "rename one of them"
        )
    for attribute, example in (("scores", "(MAE, RMSE)"), ("headline", "(MAE,)")):
        value: Any = getattr(cls, attribute, None)
        is_tuple = isinstance(value, tuple) and value
        if not is_tuple or not all(isinstance(one, Score) for one in value):
            raise HaarPoolError(
                f"{attribute} of the task {name!r}, a tuple of `Score`s",
                f"{value!r}"[:80],
                f"write for example {attribute} = {example} in {cls.__name__}",
            )
    if others := [one.name for one in cls.headline if one not in cls.scores]:
        raise HaarPoolError(
            f"a headline of the task {name!r} out of its scores",
            ", ".join(others),
            f"add it to the scores of {cls.__name__}, or change its headline",
        )
    if cls.scale is not None and not isinstance(cls.scale, type):
        raise HaarPoolError(
            f"scale of the task {name!r}, a class such as `Scale`, or None",
            f"{cls.scale!r}"[:80],
            f"write for example scale = None in {cls.__name__}",
        )
    if cls.loss is Task.loss:
        raise HaarPoolError(f"a loss of the task {name!r}", "none", f"add {cls.__name__}.loss")


def task_names() -> list[str]:
    """Return the names of all tasks.

    Example:
        >>> "regression" in task_names()
        True
    """
    return sorted(_TASKS)


@overload
def find_task(name: str, num_targets: int = 1) -> Task: ...
@overload
def find_task(name: None, num_targets: int = 1) -> None: ...
def find_task(name: str | None, num_targets: int = 1) -> Task | None:
    """Return a task by its name; None for None.

    Args:
        name: The name.
        num_targets: Number of targets; for several, "classification" is "multilabel".

    Example:
        >>> find_task("classification", 3)
        'multilabel'
    """
    if name is None:
        return None
    plain = str(name) if isinstance(name, Task) else name
    if isinstance(plain, str) and plain not in _TASKS:
        load_entry_points("haarpool.tasks")
    task = _TASKS[choice("task", plain, task_names())]
    return _TASKS[task.of_several] if num_targets > 1 and task.of_several else task


def find_score(name: str) -> Score:
    """Return a score of any task by its name.

    Example:
        >>> find_score("mae").lower_is_better
        True
    """
    scores = {score.name: score for task in _TASKS.values() for score in task.scores}
    return scores[choice("score", name, sorted(scores))]


def infer_task(num_targets: int, num_classes: int | None = None, *, of_nodes: bool = False) -> Task:
    """Return the task of labels without a given one; classes that no task takes are values.

    Args:
        num_targets: Number of labels of each graph.
        num_classes: Number of different labels; None if they look like values.
        of_nodes: Whether nodes have labels, not graphs.

    Example:
        >>> infer_task(1, 5), infer_task(3, 2), infer_task(3, 5), infer_task(3)
        ('classification', 'multilabel', 'regression', 'regression')
    """
    tasks = [task for task in _TASKS.values() if task.of_nodes == of_nodes]
    takes_classes = [task for task in tasks if task.infers(num_targets, num_classes)]
    takes_values = [task for task in tasks if task.infers(num_targets, None)]
    # A task that extends another one, and so inherits its answer, does not replace it.
    return min(takes_classes or takes_values, key=lambda task: len(type(task).__mro__))


def is_registered(name: str) -> bool:
    """Return whether there is a task of this name.

    Example:
        >>> is_registered("regression"), is_registered("ranking")
        (True, False)
    """
    try:
        find_task(name)
    except HaarPoolError:
        return False
    return True
