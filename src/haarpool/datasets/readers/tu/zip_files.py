"""Datasets in TU layout in zip files, which people and programs write in many ways."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from haarpool._text import shorten
from haarpool.errors import HaarPoolError

A, INDICATOR = "_A.txt", "_graph_indicator.txt"


class ZipPath(NamedTuple):
    """A file or folder in a zip file, with the methods of `Path` that the reader uses.

    Attributes:
        archive: The zip file.
        members: Names of its files by their path. Names may be `MUTAG//MUTAG_A.txt`, as in the TU
            collection, `./MUTAG/MUTAG_A.txt` or, from Windows, with backslashes.
        path: Path in the zip file, "" for all of it.
    """

    archive: Path
    members: Mapping[str, str]
    path: str = ""

    def __truediv__(self, name: str) -> ZipPath:
        return self._replace(path=posixpath.join(self.path, name))

    def __str__(self) -> str:
        return f"{self.archive / self.path}"

    @property
    def name(self) -> str:
        """Its name without the path."""
        return posixpath.basename(self.path)

    def exists(self) -> bool:
        """Return whether it is a file of the zip file."""
        return self.path in self.members

    def read_text(self, encoding: str) -> str:
        """Read the file as text."""
        with (
            ZipFile(self.archive) as archive,
            archive.open(self.members[self.path]) as file,
            TextIOWrapper(file, encoding) as text,
        ):
            return text.read()


def dataset_in_zip(path: Path) -> tuple[ZipPath, str]:
    """Find the dataset in a zip file: the only one, or the one with the name of the zip file.

    Args:
        path: The zip file.

    Returns:
        The folder of the dataset, and its name.
    """
    with ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    members = {posixpath.normpath(name.replace("\\", "/")).lstrip("/"): name for name in names}
    # macOS adds files that start with a dot.
    stems = [
        member.removesuffix(A)
        for member in sorted(members)
        if member.endswith(A) and not posixpath.basename(member).startswith(".")
    ]
    stems = [stem for stem in stems if f"{stem}{INDICATOR}" in members]
    named = [stem for stem in stems if posixpath.basename(stem).lower() == path.stem.lower()]
    if len(stems) != 1 and len(named) != 1:
        remedy = "make a zip file of one dataset"
        expected = f"one dataset in TU layout, or one named {path.stem}, in {path}"
        if not stems:
            remedy = "name a zip file with the files of a dataset"
            expected = f"NAME{A} and NAME{INDICATOR} in {path}"
        names = stems or sorted(members)
        got = f"{len(names):,}: {shorten(names, 5)}" if names else "no files"
        raise HaarPoolError(expected, got, remedy)
    folder, name = posixpath.split(stems[0] if len(stems) == 1 else named[0])
    return ZipPath(path, members, folder), name
