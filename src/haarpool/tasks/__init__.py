"""Tasks: one file per task, with the name of the task; it `register`s a class."""

from haarpool._modules import import_modules
from haarpool.tasks._figures import Figure, Matrix, Panel
from haarpool.tasks._labels import MISSING, Names, spread
from haarpool.tasks._registry import (
    find_score,
    find_task,
    infer_task,
    is_registered,
    register,
    task_names,
)
from haarpool.tasks._scale import Scale
from haarpool.tasks._scores import SCORES, Score
from haarpool.tasks._task import Task

import_modules(__name__)

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
    "find_score",
    "find_task",
    "infer_task",
    "is_registered",
    "register",
    "spread",
    "task_names",
]
