"""CSV files: rows with their lines, and columns of labels as classes or values."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from haarpool._types import Floats, Ints, Task
from haarpool.datasets.graphs import MISSING
from haarpool.datasets.labels import Number, as_classes, as_number
from haarpool.errors import HaarPoolError

DELIMITERS = (",", ";", "\t")
SAMPLE = 20  # rows that tell the separator
FEW = 20  # whole numbers with at most so many different values are classes
ABSENT = ("", "na", "n/a", "nan", "null")  # in any case: missing labels; "none" may be a class


class Row(NamedTuple):
    """The cells of some columns, and the line of the file in which they end."""

    line: int
    cells: list[str]


def read_rows(path: Path, columns: Sequence[str | None]) -> Iterator[Row]:
    """The rows of a CSV file below its header, one at a time, empty lines left out.

    Args:
        path: a file in UTF-8, separated by commas, semicolons or tabs.
        columns: different names in the header. None is the column "smiles", in any case.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            delimiter = _delimiter(file, columns)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(reader, [])]
            places = [_place(name, header, path) for name in columns]
            for place in places:
                if places.count(place) > 1:
                    expected = "each column once, for SMILES or as a target"
                    raise HaarPoolError(expected, f"{header[place]!r} twice", "leave one out")
            for cells in reader:
                if not any(cells):
                    continue
                if len(cells) != len(header):
                    raise HaarPoolError(
                        f"{len(header)} cells in each line of {path}, as in its header",
                        f"line {reader.line_num}: {len(cells)}",
                        "put cells that hold the separator into quotes",
                    )
                yield Row(reader.line_num, [cells[place].strip() for place in places])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HaarPoolError(
            "a CSV file in UTF-8 with a header", f"{path} ({error})", "check the file"
        ) from error


def _delimiter(file: TextIO, columns: Sequence[str | None]) -> str:
    """The separator that suits the columns asked for, then the first rows, then the header.

    A separator may stand inside of names and cells, so counting it in the header is not enough.
    """

    def suits(delimiter: str) -> tuple[bool, bool, int]:
        file.seek(0)
        rows: list[list[str]] = []
        with suppress(csv.Error):  # the wrong separator can tear quotes apart
            rows.extend(islice(csv.reader(file, delimiter=delimiter, strict=True), SAMPLE))
        header = [name.strip() for name in rows[0]] if rows else []
        there = all(_matches(name, header) for name in columns)
        even = all(len(cells) == len(header) for cells in rows if any(cells))
        return there, even and len(header) > 1, len(header)

    return max(DELIMITERS, key=suits)


def _matches(name: str | None, header: list[str]) -> list[int]:
    """The places of a column; more than one if its name stands there twice."""
    if name is None:
        return [place for place, known in enumerate(header) if known.lower() == "smiles"]
    return [place for place, known in enumerate(header) if known == name]


def _place(name: str | None, header: list[str], path: Path) -> int:
    found = _matches(name, header)
    expected = f"a column {name or 'smiles'!r} in {path}"
    if len(found) == 1:
        return found[0]
    if found:
        got = f"{len(found)}: {', '.join(header[place] for place in found)}"
        remedy = "rename all but one" if name else "rename all but one, or pass --smiles"
        raise HaarPoolError(expected, got, remedy)
    close = difflib.get_close_matches(name or "smiles", header, n=1)
    has = f"its columns are {', '.join(header)}" if any(header) else "it has no header"
    raise HaarPoolError(
        expected,
        "none",
        f"{has}; did you mean {close[0]}?" if close else has if name else f"{has}; pass --smiles",
    )


def read_targets(
    names: Sequence[str], rows: Sequence[Row], task: Task | None = None
) -> Mapping[str, Any]:
    """The fields of `Graphs` that say what is to be predicted, from columns of text.

    One column of text, or of whole numbers with few different values, holds classes; all others
    hold values. An empty cell, NA, NaN, null or none is a missing label.

    Args:
        names: (T,) of the columns.
        rows: (G,) each with T cells.
        task: forces classes or values.

    >>> found = read_targets(["kind"], [Row(2, ["b"]), Row(3, ["a"]), Row(4, [""])])
    >>> found["task"], found["classes"], found["targets"]
    ('classification', ('a', 'b'), array([ 1,  0, -1]))
    """
    if not names:
        if task is not None:
            raise HaarPoolError(f"a target column for {task}", "none", "pass --target COLUMN")
        return {}
    columns = [[row.cells[t] for row in rows] for t in range(len(names))]
    for name, cells in zip(names, columns, strict=True):
        if all(_is_missing(cell) for cell in cells):
            raise HaarPoolError(f"labels in the column {name!r}", "none", "choose another column")
    like_classes = [
        name for name, cells in zip(names, columns, strict=True) if _looks_like_classes(cells)
    ]
    if len(names) > 1 and (task == "classification" or (task is None and like_classes)):
        raise HaarPoolError(
            "one column of classes, or several of values",
            f"{len(names)} columns with classes in {', '.join(map(repr, like_classes or names))}",
            "choose one with --target, or take --task regression if they are numbers",
        )
    if task is None:
        task = "classification" if like_classes else "regression"
    if task == "regression":
        values = [_values(name, cells, rows) for name, cells in zip(names, columns, strict=True)]
        return {"task": task, "targets": np.stack(values, axis=1), "target_names": tuple(names)}
    numbers, classes = _classes(columns[0])
    return {"task": task, "targets": numbers, "classes": classes}


def _looks_like_classes(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if not _is_missing(cell)]
    numbers = [number for cell in known if (number := _number(cell)) is not None]
    different = len(set(known))
    if 2 * len(numbers) < len(known):  # text; if all of it differs, it is no label but a name
        return different < len(known) or different <= FEW
    whole = len(numbers) == len(known) and all(number % 1 == 0 for number in numbers)
    different = len(set(numbers))  # 1 and 1.0 are one
    return whole and different <= FEW and 2 * different < len(cells)


def _values(name: str, cells: Sequence[str], rows: Sequence[Row]) -> Floats:
    values = np.full(len(cells), np.nan)
    for g, cell in enumerate(cells):
        if not _is_missing(cell):
            number = _number(cell)
            if number is None:
                raise HaarPoolError(
                    f"a number in the column {name!r}",
                    f"line {rows[g].line}: {cell[:40]!r}",
                    "correct it or leave it empty; for classes take --task classification",
                )
            values[g] = number
    return values


def _classes(cells: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Numbers of classes, and their names: numbers by size, others by the alphabet."""
    known = {cell for cell in cells if not _is_missing(cell)}
    if all(_number(cell) is not None for cell in known):
        return as_classes([_number(cell) for cell in cells])
    classes = sorted(known)
    place = {name: c for c, name in enumerate(classes)}
    return np.array([place.get(cell, MISSING) for cell in cells], np.int64), tuple(classes)


def _is_missing(cell: str) -> bool:
    return cell.lower() in ABSENT


def _number(cell: str) -> Number | None:
    """A finite number."""
    number = as_number(cell)
    return number if number is not None and isfinite(number) else None
