"""CSV files: rows with line numbers, and columns of labels as classes or values."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from haarpool._text import shorten
from haarpool.datasets.labels import (
    MAX_CLASSES,
    Number,
    are_classes,
    as_number,
    as_rows,
    is_missing,
    label_fields,
    task_of,
    unclear_labels,
)
from haarpool.errors import HaarPoolError

DELIMITERS = (",", ";", "\t")
SAMPLE = 20  # rows that decide about the separator
DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][+-]?\d+)?")


class TableRow(NamedTuple):
    """A row of a CSV file."""

    line: int  # of the file, in which the row ends
    cells: list[str]  # of the chosen columns


def columns_besides(path: Path, smiles: str | None = None) -> list[str]:
    """Return the names of all columns of a CSV file but the one of SMILES, as in `read_rows`."""
    with _open(path, [smiles]) as (_, header):
        del header[_column_index("smiles", smiles, header, path)]
        return [name for name in header if name]


def read_rows(path: Path, columns: Sequence[str | None]) -> Iterator[TableRow]:
    """Read the rows of a CSV file one at a time, without its header and empty lines.

    Args:
        path: A file in UTF-8, separated by commas, semicolons or tabs.
        columns: Different names in the header: first the column of SMILES, then targets. None is
            the column "smiles", in upper or lower case.
    """
    with _open(path, columns) as (reader, header):
        parameters = ["smiles", *["targets"] * (len(columns) - 1)]
        indices = [
            _column_index(parameter, name, header, path)
            for parameter, name in zip(parameters, columns, strict=True)
        ]
        for index in indices:
            if indices.count(index) > 1:
                raise HaarPoolError(
                    "each column once, as {smiles} or in {targets}",
                    f"{header[index]!r} twice",
                    "leave one out",
                    smiles=...,
                    targets=...,
                )
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise HaarPoolError(
                    f"{len(header)} cells in each line of {path}, as in its header",
                    f"line {reader.line_num}: {len(cells)}",
                    "put cells that contain the separator into quotes",
                )
            yield TableRow(reader.line_num, [cells[index].strip() for index in indices])


@contextmanager
def _open(path: Path, columns: Sequence[str | None]) -> Iterator[tuple[Any, list[str]]]:
    """Open a CSV file: its reader and its header. An error due to the file says so."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            delimiter = _delimiter(file, columns)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            yield reader, [name.strip() for name in next(reader, [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HaarPoolError(
            "a CSV file in UTF-8 with a header", f"{path} ({error})", "check the file"
        ) from error


def _delimiter(file: TextIO, columns: Sequence[str | None]) -> str:
    """Guess the separator: it fits best to the requested columns, the first rows and the header.

    Names and cells may contain separators, so it is not enough to count them in the header.
    """

    def fit(delimiter: str) -> tuple[bool, bool, int]:
        file.seek(0)
        rows: list[list[str]] = []
        with suppress(csv.Error):  # the wrong separator can split quoted cells
            rows.extend(islice(csv.reader(file, delimiter=delimiter, strict=True), SAMPLE))
        header = [name.strip() for name in rows[0]] if rows else []
        has_columns = all(_matches(name, header) for name in columns)
        same_width = all(len(cells) == len(header) for cells in rows if any(cells))
        return has_columns, same_width and len(header) > 1, len(header)

    return max(DELIMITERS, key=fit)


def _matches(name: str | None, header: list[str]) -> list[int]:
    """Return the indices of a column; several if its name occurs more than once."""
    if name is None:
        return [i for i, title in enumerate(header) if title.lower() == "smiles"]
    return [i for i, title in enumerate(header) if title == name]


def _column_index(parameter: str, name: str | None, header: list[str], path: Path) -> int:
    matches = _matches(name, header)
    expected = f"as a column {name or 'smiles'!r} in {path}"
    if len(matches) == 1:
        return matches[0]
    if matches:
        got = f"{len(matches)}: {shorten([header[i] for i in matches])}"
        remedy = "rename all but one" if name else "rename all but one, or pass {smiles}"
        raise HaarPoolError(expected, got, remedy, parameter=parameter, smiles="COLUMN")
    remedy = f"its columns are {shorten(header)}" if any(header) else "it has no header"
    if close := difflib.get_close_matches(name or "smiles", header, n=1):
        remedy += f"; did you mean {close[0]}?"
    elif name is None:
        remedy += "; pass {smiles}"
    raise HaarPoolError(expected, "none", remedy, parameter=parameter, smiles="COLUMN")


def read_targets(
    names: Sequence[str], rows: Sequence[TableRow], task: str | None = None
) -> Mapping[str, Any]:
    """Convert columns of text to the fields of `Graphs` about labels.

    One column of text, or of whole numbers with at most 20 different values, contains classes; all
    other columns contain values. Several columns of the same two classes are targets of the task
    "multilabel". An empty cell, NA, N/A, NaN or null is a missing label.

    Args:
        names: (T,) Names of the columns.
        rows: (G,) Rows with T cells each.
        task: The task; by default what the labels look like. For several columns "classification"
            is "multilabel".

    Example:
        >>> rows = [TableRow(2, ["b"]), TableRow(3, ["a"]), TableRow(4, [""])]
        >>> fields = read_targets(["kind"], rows)
        >>> fields["task"], fields["classes"], fields["targets"]
        ('classification', ('a', 'b'), array([ 1,  0, -1]))
    """
    if not names:
        if task is not None:
            raise HaarPoolError(
                "a target column for {task}", "none", "pass {targets}", task=task, targets="COLUMN"
            )
        return {}
    columns = {name: [row.cells[t] for row in rows] for t, name in enumerate(names)}
    for name, cells in columns.items():
        if all(is_missing(cell) for cell in cells):
            expected = f"with labels in the column {name!r}"
            raise HaarPoolError(expected, "none", "choose another", parameter="targets")
        if task is None:
            _check_clear(name, cells, rows)
    cells_by_row = [row.cells for row in rows]
    all_cells = [cell for cells in cells_by_row for cell in cells]
    like_classes = task is None and _looks_like_classes(all_cells)
    kind = task_of(as_rows(cells_by_row), task, like_classes=like_classes)
    if not kind.reads_classes:
        _check_values(columns, rows, task)
    return label_fields(cells_by_row, kind, names)


def _check_clear(name: str, cells: Sequence[str], rows: Sequence[TableRow]) -> None:
    """Raise an error if the task does not follow from the labels."""
    known = [(row, cell) for row, cell in zip(rows, cells, strict=True) if not is_missing(cell)]
    others = [(row, cell) for row, cell in known if _number(cell) is None]
    if others and all(DECIMAL_COMMA.fullmatch(cell) for _, cell in others):
        row, cell = others[0]
        raise HaarPoolError(
            f"numbers with a decimal point in the column {name!r}",
            f"line {row.line}: {cell!r}",
            "write for example 0.5, or pass {task}",
            task="classification",
        )
    numbers = [number for _, cell in known if (number := _number(cell)) is not None]
    is_whole = not others and all(number % 1 == 0 for number in numbers)
    if is_whole and len(set(numbers)) == len(numbers) > MAX_CLASSES:
        raise unclear_labels(f"the column {name!r}", len(numbers), len(numbers))


def _looks_like_classes(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if not is_missing(cell)]
    numbers = [number for cell in known if (number := _number(cell)) is not None]
    if 2 * len(numbers) < len(known):  # text; if most cells differ, these are names, not labels
        different = len(set(known))
        return 2 * different <= len(known) or different <= MAX_CLASSES
    return len(numbers) == len(known) and are_classes(numbers, len(cells))


def _check_values(
    columns: Mapping[str, Sequence[str]], rows: Sequence[TableRow], task: str | None
) -> None:
    """Raise an error if columns contain classes, or a cell that is no number."""
    like_classes = [name for name, cells in columns.items() if _looks_like_classes(cells)]
    if task is None and like_classes:
        raise HaarPoolError(
            "one column of classes, several of the same two classes, or several of values",
            f"{len(columns)} columns with classes in {', '.join(map(repr, like_classes))}",
            "choose one with {targets}, or pass {task} if all are numbers",
            targets="COLUMN",
            task="regression",
        )
    for name, cells in columns.items():
        for row, cell in zip(rows, cells, strict=True):
            if not is_missing(cell) and _number(cell) is None:
                raise HaarPoolError(
                    f"a number in the column {name!r}",
                    f"line {row.line}: {cell[:40]!r}",
                    "correct it or leave it empty; for classes pass {task}",
                    task="classification",
                )


def _number(cell: str) -> Number | None:
    """Convert a cell to a finite number; None if it is none."""
    number = as_number(cell)
    return number if number is not None and isfinite(number) else None
