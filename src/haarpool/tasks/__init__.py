"""Tasks: one class per task, in a file of this folder that `register`s it."""

from importlib import import_module
from pkgutil import iter_modules

from haarpool.tasks.figures import Figure, Matrix, Panel
from haarpool.tasks.scale import Scale
from haarpool.tasks.scores import SCORES, Score
from haarpool.tasks.task import (
    MISSING,
    Names,
    Task,
    find_task,
    register,
    spread,
    task_names,
)

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "MISSING",
    "SCORES",
    "Figure",
    "Matrix",
    "Names",
    "Panel",
    "Scale",
    "Score",
    "Task",
    "find_task",
    "register",
    "spread",
    "task_names",
]
