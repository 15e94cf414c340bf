"""What a report shows of predictions, as plain data; `report/` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from haarpool._types import Floats, Ints


class Panel(NamedTuple):
    """Points in a square with a dashed diagonal.

    Attributes:
        name: What it shows, for example a target.
        x: (n,) Horizontal positions.
        y: (n,) Vertical positions.
    """

    name: str
    x: Floats
    y: Floats


class Matrix(NamedTuple):
    """A table of counts.

    Attributes:
        names: (C,) Names of rows and columns.
        counts: (C, C) Numbers of graphs.
    """

    names: Sequence[str]
    counts: Ints

    @property
    def shows_shares(self) -> bool:
        """True if cells have space for a share beside the number."""
        return len(self.names) <= 12

    @property
    def shares(self) -> Floats:
        """(C, C) counts divided by the sum of their row; 0 in a row without graphs."""
        rows = self.counts.sum(axis=1, keepdims=True)
        result: Floats = self.counts / rows.clip(1)
        return result


class Figure(NamedTuple):
    """A picture or a table with its caption.

    Attributes:
        caption: The text below it, or alone if there is nothing else.
        panels: The panels of a picture.
        label: What the panels show, for screen readers.
        axes: Names of the horizontal and the vertical axis.
        is_curve: The points of a panel are joined, and both axes go from 0 to 1.
        matrix: A table.
    """

    caption: str
    panels: Sequence[Panel] = ()
    label: str = ""
    axes: tuple[str, str] = ("", "")
    is_curve: bool = False
    matrix: Matrix | None = None
