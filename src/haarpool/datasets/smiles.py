"""Molecules out of a CSV file with a column of SMILES, through RDKit (extra `haarpool[chem]`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from haarpool._types import Floats, Task
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.table import Row, read_rows, read_targets
from haarpool.errors import HaarPoolError, HaarPoolWarning

SHOWN = 20  # bad SMILES that a message lists

# The features of atoms and bonds are the same for every file, so that a model fits any of them.
ELEMENTS = ("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I")
HYBRIDISATIONS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
ATOM_FEATURES = (
    *ELEMENTS,
    "other element",
    *(f"{d} neighbours" for d in range(6)),  # five or more count as five
    *(f"{h} hydrogens" for h in range(5)),  # four or more count as four
    *HYBRIDISATIONS,
    "other hybridisation",
    "charge",
    "aromatic",
    "in a ring",
    "chiral",
)
ORDERS = (1.0, 1.5, 2.0, 3.0)
BOND_FEATURES = (
    *("single", "aromatic", "double", "triple", "other bond"),
    *("conjugated", "in a ring", "stereo"),
)


def read_smiles(
    path: Path,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    *,
    task: Task | None = None,
    strict: bool = False,
    progress: bool | None = None,
) -> Graphs:
    """All molecules of a CSV file; bad SMILES are listed and skipped.

    The nodes are atoms without hydrogens, their column "atoms" has `ATOM_FEATURES`; edges have the
    order of the bond as weight and `BOND_FEATURES` in their column "bonds". Graphs have the line
    of the file as place.

    Args:
        path: of the file, which needs a header.
        smiles: the column of SMILES; else one of that name.
        targets: the columns to predict; several of them are values.
        task: classes or values; else found out, see `read_targets`.
        strict: refuse bad SMILES.
        progress: show a bar; None shows it on a terminal, after a second.
    """
    rows = read_rows(path, [smiles, *targets])
    parser = _Parser(path)
    hidden = None if progress is None else not progress
    molecules = parser.parse(tqdm(rows, desc="molecules", delay=1, disable=hidden, leave=False))
    parser.finish(strict)
    labels = [Row(molecule.row.line, molecule.row.cells[1:]) for molecule in molecules]
    return replace(parser.graphs(molecules), **read_targets(targets, labels, task))


def stream_smiles(
    path: Path, smiles: str | None = None, *, strict: bool = False, block: int = 1024
) -> Iterator[Graphs]:
    """The same without labels, `block` lines at a time, so that files of any length fit.

    With `strict` the first block with a bad SMILES is refused.
    """
    rows = read_rows(path, [smiles])
    parser = _Parser(path)
    while some := list(islice(rows, block)):
        molecules = parser.parse(some)
        if strict and parser.bad:
            break
        if molecules:
            yield parser.graphs(molecules)
    parser.finish(strict)


def scaffolds(smiles: Sequence[str]) -> list[str]:
    """The Bemis-Murcko scaffold of each molecule: its rings and what links them, as SMILES.

    >>> scaffolds(["CCc1ccccc1", "CCO"])
    ['c1ccccc1', '']
    """
    murcko = _rdkit("Chem.Scaffolds.MurckoScaffold")
    return [murcko.MurckoScaffoldSmiles(smiles=molecule) for molecule in smiles]


class _Molecule(NamedTuple):
    """A row of the file with its atoms and bonds, as numbers of their kinds."""

    row: Row
    atoms: list[int]
    begin: list[int]
    end: list[int]
    bonds: list[int]


class _Parser:
    """SMILES to graphs.

    There are few kinds of atoms and bonds, so the features of each kind are made only once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chem, self.base = _rdkit("Chem"), _rdkit("rdBase")
        self.atom_kinds: dict[tuple[Any, ...], int] = {}
        self.bond_kinds: dict[tuple[Any, ...], int] = {}
        self.good = self.bad = 0
        self.shown: list[str] = []  # the first bad ones

    def parse(self, rows: Iterable[Row]) -> list[_Molecule]:
        """The molecules among `rows`; the bad ones are counted."""
        with self.base.BlockLogs():
            found = [self._molecule(row) for row in rows]
        molecules = [molecule for molecule in found if molecule is not None]
        self.good += len(molecules)
        return molecules

    def _molecule(self, row: Row) -> _Molecule | None:
        molecule = self.chem.MolFromSmiles(row.cells[0])
        if molecule is None or molecule.GetNumAtoms() == 0:
            self.bad += 1
            if len(self.shown) < SHOWN:
                self.shown.append(f"line {row.line} {row.cells[0][:40]!r}")
            return None
        # Asking RDKit costs more than parsing. Enumerations are slow, and without these signs
        # there is no stereochemistry to ask for.
        chiral, stereo = "@" in row.cells[0], bool({"/", "\\"} & set(row.cells[0]))
        atoms, kinds = [], self.atom_kinds
        for i in range(molecule.GetNumAtoms()):
            atom = molecule.GetAtomWithIdx(i)
            key = (
                atom.GetAtomicNum(), atom.GetDegree(), atom.GetTotalNumHs(),
                atom.GetHybridization(), atom.GetFormalCharge(), atom.GetIsAromatic(),
                atom.IsInRing(), chiral and atom.GetChiralTag().name != "CHI_UNSPECIFIED",
            )  # fmt: skip
            atoms.append(kinds.setdefault(key, len(kinds)))
        begin, end, bonds, bond_kinds = [], [], [], self.bond_kinds
        for i in range(molecule.GetNumBonds()):
            bond = molecule.GetBondWithIdx(i)
            begin.append(bond.GetBeginAtomIdx())
            end.append(bond.GetEndAtomIdx())
            sort = (
                bond.GetBondTypeAsDouble(), bond.GetIsConjugated(), bond.IsInRing(),
                stereo and bond.GetStereo().name != "STEREONONE",
            )  # fmt: skip
            bonds.append(bond_kinds.setdefault(sort, len(bond_kinds)))
        return _Molecule(row, atoms, begin, end, bonds)

    def finish(self, strict: bool) -> None:
        """Say which SMILES were bad, or refuse them."""
        more = f" and {self.bad - len(self.shown)} more" if self.bad > len(self.shown) else ""
        listed = ", ".join(self.shown) + more
        if self.good == 0 or (strict and self.bad):
            raise HaarPoolError(
                f"valid SMILES in {self.path}",
                listed or "no lines below the header",
                "correct these lines" if self.good else "check the file and its column of SMILES",
            )
        if self.bad:
            warnings.warn(
                f"{self.bad} bad SMILES in {self.path} skipped: {listed}",
                HaarPoolWarning,
                stacklevel=4,
            )

    def graphs(self, molecules: Sequence[_Molecule]) -> Graphs:
        """The molecules that were parsed last, without their labels."""
        start = np.cumsum([0, *(len(molecule.atoms) for molecule in molecules)])
        shift = np.repeat(start[:-1], [len(molecule.bonds) for molecule in molecules])
        begin, end, bonds = (
            np.array([i for molecule in molecules for i in getattr(molecule, field)], np.int64)
            for field in ("begin", "end", "bonds")
        )
        begin, end = begin + shift, end + shift
        edges = np.stack([np.concatenate([begin, end]), np.concatenate([end, begin])])
        order = np.lexsort(edges[::-1])
        kind = np.concatenate([bonds, bonds])[order]
        features, weights = self._bond_table()
        atoms = np.array([i for molecule in molecules for i in molecule.atoms], np.int64)
        return Graphs(
            self.path.stem,
            start,
            edges[:, order],
            {"atoms": self._atom_table()[atoms]},
            edge_weight=weights[kind],
            edge_columns={"bonds": features[kind]},
            ids=tuple(molecule.row.cells[0] for molecule in molecules),
            id_name="smiles",
            places=np.array([molecule.row.line for molecule in molecules], np.int64),
            numbers=np.arange(self.good - len(molecules), self.good),
        )

    def _atom_table(self) -> Floats:
        """(kinds, features) of atoms."""
        symbol = self.chem.GetPeriodicTable().GetElementSymbol
        rows = [
            [
                *_one_hot(symbol(number) if number else "*", ELEMENTS),
                *(min(neighbours, 5) == d for d in range(6)),
                *(min(hydrogens, 4) == h for h in range(5)),
                *_one_hot(hybridisation.name, HYBRIDISATIONS),
                charge,
                aromatic,
                ring,
                chiral,
            ]
            for (
                number, neighbours, hydrogens, hybridisation, charge, aromatic, ring, chiral
            ) in self.atom_kinds
        ]  # fmt: skip
        return np.array(rows, np.float64).reshape(-1, len(ATOM_FEATURES))

    def _bond_table(self) -> tuple[Floats, Floats]:
        """(kinds, features) of bonds, and their orders; a bond of no order counts as a single."""
        rows = [
            [*_one_hot(order, ORDERS), conjugated, ring, stereo]
            for order, conjugated, ring, stereo in self.bond_kinds
        ]
        weights = np.array([order for order, *_ in self.bond_kinds], np.float64)
        weights[weights == 0] = 1
        return np.array(rows, np.float64).reshape(-1, len(BOND_FEATURES)), weights


def _one_hot(value: object, known: Sequence[object]) -> list[bool]:
    """Which of the known ones it is; the last one says that it is another."""
    return [*(value == one for one in known), value not in known]


def _rdkit(module: str) -> Any:
    try:
        return import_module(f"rdkit.{module}")
    except ImportError as error:
        raise HaarPoolError(
            "RDKit to read SMILES", f"{error}", 'pip install "haarpool[chem]"'
        ) from error
