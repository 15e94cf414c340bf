"""CSV files: rows with their lines, and columns of labels as classes or values."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from haarpool.datasets.graphs import MISSING, Floats, Task
from haarpool.errors import HaarPoolError
from haarpool.graph import Ints

DELIMITERS = (",", ";", "\t")
FEW = 20  # whole numbers with at most so many different values are classes


class Row(NamedTuple):
    """The cells of some columns, and the line of the file in which they end."""

    line: int
    cells: list[str]


def read_rows(path: Path, columns: Sequence[str | None]) -> Iterator[Row]:
    """The rows of a CSV file below its header, one at a time, empty lines left out.

    Args:
        path: a file in UTF-8, separated by commas, semicolons or tabs.
        columns: names in the header. None is the column "smiles", in any case.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            delimiter = max(DELIMITERS, key=head.count)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(reader, [])]
            places = [_place(name, header, path) for name in columns]
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


def _place(name: str | None, header: list[str], path: Path) -> int:
    if name in header:
        return header.index(name)
    if name is None:
        for place, known in enumerate(header):
            if known.lower() == "smiles":
                return place
    close = difflib.get_close_matches(name or "smiles", header, n=1)
    has = f"its columns are {', '.join(header)}" if any(header) else "it has no header"
    raise HaarPoolError(
        f"a column {name or 'smiles'!r} in {path}",
        "none",
        f"{has}; did you mean {close[0]}?" if close else has if name else f"{has}; pass --smiles",
    )


def read_targets(
    names: Sequence[str], rows: Sequence[Row], task: Task | None = None
) -> Mapping[str, Any]:
    """The fields of `Graphs` that say what is to be predicted, from columns of text.

    One column of text, or of whole numbers with few different values, holds classes; all others
    hold values. An empty cell or NaN is a missing label.

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
    numbers = {cell: _number(cell) for cell in known}
    if None in numbers.values():
        names = {cell: cell for cell in known}
        classes = sorted(known)
    else:  # 1 and 1.0 are one class
        names = {cell: f"{number:g}" for cell, number in numbers.items()}
        classes = sorted(set(names.values()), key=float)
    place = {name: c for c, name in enumerate(classes)}
    found = [MISSING if _is_missing(cell) else place[names[cell]] for cell in cells]
    return np.array(found, np.int64), tuple(classes)


def _is_missing(cell: str) -> bool:
    return cell.lower() in ("", "nan")


def _number(cell: str) -> float | None:
    """A finite number."""
    with suppress(ValueError):
        number = float(cell)
        return number if np.isfinite(number) else None
    return None
