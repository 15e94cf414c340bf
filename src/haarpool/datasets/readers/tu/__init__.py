"""The TU collection (Morris et al., 2020), and any dataset in its layout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from haarpool.datasets.readers.registry import Reader, register
from haarpool.datasets.readers.tu.names import ALIASES, TU_NAMES

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs

URL = "https://www.chrsmrrs.com/graphkerneldatasets"  # HAARPOOL_TU_URL names a mirror
A, INDICATOR = "_A.txt", "_graph_indicator.txt"


@register
class TU(Reader):
    """A folder with text files, or a zip file of such a folder."""

    phrase = "folder or zip in TU layout"
    suffixes = (".zip",)
    names = TU_NAMES
    aliases = ALIASES
    content = f"NAME{A} and NAME{INDICATOR}"
    tasks = ("classification", "regression")

    def read(self, source: Path, task: str | None = None) -> Graphs:
        """Read all graphs that have nodes."""
        from haarpool.datasets.readers.tu.layout import read_tu

        return read_tu(source, task)

    def find_in(self, folder: Path, name: str) -> Path | None:
        """Return the folder if it has text files, else a zip file with its name in it."""
        if tu_name(folder):
            return folder
        packed = folder / f"{name}.zip"
        return packed if packed.is_file() else None

    def url(self, name: str) -> str:
        """Return the address of a zip file."""
        return f"{os.environ.get('HAARPOOL_TU_URL') or URL}/{name}.zip"

    def check_download(self, file: Path) -> None:
        """Check that it is a zip file."""
        from zipfile import is_zipfile

        if not is_zipfile(file):
            raise OSError("a file that is no zip file")

    def sample(self, folder: Path) -> Path:
        """Write paths and rings of four nodes, without columns."""
        first = range(1, 65, 4)
        pairs = [(n + i, n + i + 1) for n in first for i in range(3)]
        pairs += [(n, n + 3) for n in first[::2]]
        files = {
            A: [f"{u}, {v}" for pair in pairs for u, v in (pair, pair[::-1])],
            INDICATOR: [str(node // 4 + 1) for node in range(64)],
            "_graph_labels.txt": ["ring", "path"] * 8,
        }
        for end, lines in files.items():
            (folder / f"SAMPLE{end}").write_text("\n".join(lines) + "\n")
        return folder


def tu_name(folder: Path) -> str | None:
    """Return the name of the dataset whose files are in `folder`, or None if there is none."""
    files = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    names = sorted(file.removesuffix(INDICATOR) for file in files if file.endswith(INDICATOR))
    return next((name for name in names if f"{name}{A}" in files), None)
