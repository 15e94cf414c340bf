"""Tables of molecules: CSV files with a column of SMILES, read by RDKit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from haarpool.datasets.readers.registry import Reader, register

if TYPE_CHECKING:
    from haarpool._progress import ProgressOption
    from haarpool.datasets.graphs import Graphs
    from haarpool.datasets.table import TableRow


@register
class SmilesTable(Reader):
    """Tables of molecules; other columns can be predicted.

    A reader of tables in another format is a subclass with other `rows` and `columns`.
    """

    phrase = "CSV file with SMILES"
    suffixes = (".csv", ".tsv")

    def read(
        self,
        source: Path,
        task: str | None = None,
        *,
        smiles: str | None = None,
        targets: Sequence[str] = (),
        strict: bool = False,
        progress: ProgressOption = None,
    ) -> Graphs:
        """Read all molecules; a warning lists invalid SMILES, which are skipped."""
        from haarpool._progress import counted
        from haarpool.datasets.smiles import MoleculeParser
        from haarpool.datasets.table import TableRow, read_targets

        parser, rows = MoleculeParser(source), self.rows(source, [smiles, *targets])
        molecules = parser.parse(counted(rows, progress, "molecules", delay=1))
        parser.finish(strict)
        labels = [TableRow(molecule.row.line, molecule.row.cells[1:]) for molecule in molecules]
        return replace(parser.graphs(molecules), **read_targets(targets, labels, task))

    def stream(
        self, source: Path, block: int, *, smiles: str | None = None, strict: bool = False
    ) -> Iterator[Graphs]:
        """Read molecules without labels, `block` lines at a time, in bounded memory."""
        from haarpool.datasets.smiles import MoleculeParser

        parser, rows = MoleculeParser(source), self.rows(source, [smiles])
        while lines := list(islice(rows, block)):
            molecules = parser.parse(lines)
            if strict and parser.num_invalid:
                break
            if molecules:
                yield parser.graphs(molecules)
        parser.finish(strict)

    def rows(self, path: Path, columns: Sequence[str | None]) -> Iterator[TableRow]:
        """Read rows one at a time; None is the column "smiles"."""
        from haarpool.datasets.table import read_rows

        return read_rows(path, columns)

    def columns(self, path: Path, smiles: str | None = None) -> list[str]:
        """Return the names of all columns but the one of SMILES."""
        from haarpool.datasets.table import columns_besides

        return columns_besides(path, smiles)

    def sample(self, folder: Path) -> Path:
        """Write molecules with and without oxygen."""
        path = folder / "sample.csv"
        path.write_text("smiles,oxygen\n" + "CCO,yes\nCCC,no\nO,yes\nCC(C)C,no\n" * 4)
        return path
