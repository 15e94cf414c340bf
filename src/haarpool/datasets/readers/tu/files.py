"""The text files of a dataset in TU layout, in a folder or a zip file: numbers and labels by line.

They are read as people and programs write them: numbers between commas or blanks, empty lines,
names in zip files with backslashes or double slashes. Errors name the file and the line.
"""

from __future__ import annotations

import posixpath
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO, TextIOWrapper
from math import isinf, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool._text import shorten
from haarpool._types import Ints
from haarpool.datasets.labels import Number, as_number, is_missing
from haarpool.datasets.locations import downloads
from haarpool.datasets.readers.tu import INDICATOR, A, tu_name
from haarpool.errors import HaarPoolError

# RuntimeError: it has a password, or an unknown compression.
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError)

Rows = list[tuple[int, str]]  # number and text of each


class GraphRows(NamedTuple):
    """The rows of a file about graphs that have nodes."""

    kind: str  # of the file
    rows: Rows  # (G,), with the text "" without label
    listed: int  # number of graphs that the file lists, with those that have no nodes


@dataclass(frozen=True)
class TuFiles:
    """The files of a dataset. Empty lines are skipped, but errors count them."""

    source: Path  # their folder, or the zip file
    stem: str  # how paths in it begin: the name of the dataset, in a zip file after folders
    members: Mapping[str, str]  # by path the names of files in the folder or zip file

    @classmethod
    def find(cls, path: Path) -> TuFiles:
        """Find the files in a folder, or in a zip file."""
        try:
            members = _members(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise _unreadable(path, error) from error
        return cls(path, tu_name(path) or _stem(path, members), members)

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return posixpath.basename(self.stem)

    def path(self, kind: str) -> Path:
        """Return the file of a kind, such as "A" or "node_labels"."""
        return self.source / f"{self.stem}_{kind}.txt"

    def has(self, kind: str) -> bool:
        """Return whether there is a file of a kind."""
        return f"{self.stem}_{kind}.txt" in self.members

    def text(self, kind: str) -> str:
        """Read a file."""
        path = self.path(kind)
        try:
            if self.source.is_dir():
                return path.read_text(encoding="utf-8-sig")
            name = self.members[f"{self.stem}_{kind}.txt"]
            with zipfile.ZipFile(self.source) as archive, archive.open(name) as file:
                return TextIOWrapper(file, "utf-8-sig").read()
        except _DAMAGED as error:
            raise _unreadable(path, error) from error

    def rows(self, kind: str) -> Rows:
        """Return the lines of a file that are not empty, with their numbers from 1."""
        lines = enumerate(self.text(kind).splitlines(), start=1)
        return [(number, line.strip()) for number, line in lines if line.strip()]

    def quote(self, kind: str, row: int) -> str:
        """Quote a row of `table` for an error message."""
        return _quote(*self.rows(kind)[row])

    def lines(self, kind: str, count: int, per: str) -> NDArray[Any] | None:
        """Read a table of `count` lines, one per node or edge; None if the file does not exist."""
        if not self.has(kind):
            return None
        table = self.table(kind)
        self._check_count(kind, len(table), count, per)
        return table

    def of_graphs(self, kind: str, ids: Ints) -> GraphRows | None:
        """Read a file about graphs: a line per graph, or only per graph that has nodes.

        Args:
            kind: Kind of the file.
            ids: (G,) Ids of the graphs that have nodes, ascending.

        Returns:
            The lines; None if the file does not exist. If the empty lines are needed to have enough
            of them, these are missing labels.
        """
        if not self.has(kind):
            return None
        texts = self.text(kind).rstrip().splitlines()
        every = list(enumerate(map(str.strip, texts), start=1))
        rows = [(number, text) for number, text in every if text]
        if len(every) == ids[-1] > len(ids):  # a line for each id, some of them empty
            rows = every
        for lines in (rows, every):
            if len(lines) == len(ids):
                return GraphRows(kind, lines, len(lines))
            if len(lines) >= ids[-1]:
                return GraphRows(kind, [lines[i - 1] for i in ids.tolist()], len(lines))
        self._check_count(kind, len(rows), int(ids[-1]), "graph")
        return None

    def table(self, kind: str, columns: int | None = None) -> NDArray[Any]:
        """Read a file, one row per line: real numbers of attributes, else whole numbers.

        If most lines of a file of labels are no numbers, they are one column of text. The number of
        columns is by default that of the first line.
        """
        dtype = np.float64 if kind.endswith("attributes") else np.int64
        values = _parsed(self.text(kind), dtype)
        has_columns = values is not None and values.shape[1] == (columns or values.shape[1])
        if values is not None and has_columns and np.isfinite(values).all():
            return values
        lines = self.rows(kind)
        if kind.endswith("labels") and is_text([line for _, line in lines]):
            return np.array([line for _, line in lines])[:, None]
        return self.numbers(kind, lines, dtype, columns)

    def numbers(
        self, kind: str, lines: Rows, dtype: type = object, columns: int | None = None
    ) -> NDArray[Any]:
        """Read the numbers of lines one by one; objects keep all digits, and NaN if it is missing.

        The number of columns is by default that of the first line with text.
        """
        width = columns or next((len(_cells(text)) for _, text in lines if text), 1)
        rows = []
        for number, line in lines:
            cells = _cells(line) or [""] * width
            missing = [dtype is object and is_missing(cell) for cell in cells]
            row = [nan if m else as_number(cell) for cell, m in zip(cells, missing, strict=True)]
            if expected := _violation(row, width, dtype):
                remedy = "correct this line"
                if expected == "whole numbers" and kind.endswith("labels"):
                    real = self.path(kind.replace("labels", "attributes")).name
                    remedy = f"real numbers belong into {real}"
                raise self.wrong(kind, f"{width} {expected} per line", _quote(number, line), remedy)
            rows.append(row)
        return np.array(rows, dtype).reshape(-1, width)

    def wrong(
        self,
        kind: str,
        expected: str,
        got: str,
        remedy: str = "correct this line",
        **values: Any,
    ) -> HaarPoolError:
        """Return the error for a file with wrong content."""
        if _is_download(self.source):
            remedy = f"the file is damaged; delete {self.source} to download it again"
        return HaarPoolError(f"{expected} in {self.path(kind)}", got, remedy, **values)

    def _check_count(self, kind: str, num_lines: int, count: int, per: str) -> None:
        if num_lines != count:
            every = self.text(kind).splitlines()
            empty = next((i for i, line in enumerate(every, start=1) if not line.strip()), 0)
            besides = f" besides empty ones such as line {empty}" if empty else ""
            got = f"{num_lines} lines{besides}"
            remedy = "add the missing lines" if num_lines < count else "remove lines"
            raise self.wrong(kind, f"{count} lines, one per {per},", got, remedy)


def is_text(lines: Sequence[str]) -> bool:
    """Return whether less than half of the lines that are not empty are numbers.

    Example:
        >>> is_text(["C", "N", "", "7"]), is_text(["1, 2", "3", "x"])
        (True, False)
    """
    known = [line for line in lines if line]
    return 2 * sum(all(as_number(c) is not None for c in _cells(x)) for x in known) < len(known)


def _members(path: Path) -> dict[str, str]:
    """Return the names of the files in a folder or zip file, by path.

    A name in a zip file may be `MUTAG//MUTAG_A.txt`, as in the TU collection,
    `./MUTAG/MUTAG_A.txt` or, from Windows, have backslashes.
    """
    if path.is_dir():
        return {file.name: file.name for file in path.iterdir()}
    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    return {posixpath.normpath(name.replace("\\", "/")).lstrip("/"): name for name in names}


def _stem(path: Path, members: Mapping[str, str]) -> str:
    """Find the dataset in a zip file: the only one, or the one with the name of the zip file."""
    stems = [
        member.removesuffix(A)
        for member in sorted(members)  # macOS adds files that start with a dot
        if member.endswith(A) and not posixpath.basename(member).startswith(".")
    ]
    stems = [stem for stem in stems if f"{stem}{INDICATOR}" in members]
    named = [stem for stem in stems if posixpath.basename(stem).lower() == path.stem.lower()]
    for found in (stems, named):
        if len(found) == 1:
            return found[0]
    expected, remedy = f"NAME{A} and NAME{INDICATOR}", "name a zip file with the files of a dataset"
    if stems:
        expected = f"one dataset in TU layout, or one named {path.stem},"
        remedy = "make a zip file of one dataset"
    names = stems or sorted(members)
    got = f"{len(names):,}: {shorten(names, 5)}" if names else "no files"
    raise HaarPoolError(f"{expected} in {path}", got, remedy)


def _is_download(path: Path) -> bool:
    return downloads() in path.parents


def _unreadable(path: Path, error: Exception) -> HaarPoolError:
    remedy = "save it again, text as UTF-8"
    if _is_download(path):
        remedy = "delete it to download it again"
    return HaarPoolError(f"a readable file {path}", " ".join(f"{error}".split()), remedy)


def _quote(number: int, line: str) -> str:
    return f"line {number}: {line[:40]!r}"


def _cells(line: str) -> list[str]:
    """Split a line at commas or, if it has none, at blanks."""
    return line.split(",") if "," in line else line.split()


def _parsed(text: str, dtype: type) -> NDArray[Any] | None:
    """Parse all numbers of a text at once, which is fast; None if it has any problem."""
    first = text.lstrip()[:1000].partition("\n")[0]
    separator = "," if "," in first else None  # None: blanks
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # for an empty text, or if an older numpy rounds numbers
        try:
            return np.loadtxt(StringIO(text), dtype, comments=None, delimiter=separator, ndmin=2)
        except (ValueError, UserWarning, DeprecationWarning):
            return None


def _violation(row: Sequence[Number | None], width: int, dtype: type) -> str:
    """Return what a row should contain and does not; "" for a valid row. Objects may be NaN."""
    numbers = [number for number in row if number is not None]
    if len(numbers) != width or len(row) != width:
        return "numbers"
    if any(isinf(number) or (isnan(number) and dtype is not object) for number in numbers):
        return "finite numbers"
    if dtype is np.int64 and any(number % 1 != 0 for number in numbers):
        return "whole numbers"
    if dtype is np.int64 and any(not -(2**63) <= number < 2**63 for number in numbers):
        return "whole numbers of 64 bits"
    return ""
