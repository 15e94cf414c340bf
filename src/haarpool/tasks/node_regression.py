"""Regression at nodes: one or several real values per node."""

from __future__ import annotations

from typing import ClassVar

from haarpool.tasks._registry import register
from haarpool.tasks._scores import MAE, R2, RMSE, Score
from haarpool.tasks.regression import Regression


@register("node_regression")
class NodeRegression(Regression):
    """T values per node: (N, T) over the nodes of all graphs, NaN without label."""

    __slots__ = ()

    of_nodes = True
    headline: ClassVar[tuple[Score, ...]] = (R2, RMSE)
    scores: ClassVar[tuple[Score, ...]] = (R2, RMSE, MAE)
