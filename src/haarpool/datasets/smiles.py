"""Molecules as graphs, from SMILES, by RDKit (extra `haarpool[chem]`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from haarpool._types import Floats
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.table import TableRow
from haarpool.errors import HaarPoolError, HaarPoolWarning, import_extra

MAX_LISTED = 3  # invalid SMILES that a message lists

# The features of atoms and bonds are the same for every file, so that a model fits all of them.
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
    *(f"chiral {code}" for code in ("R", "S", "r", "s", "without code")),
)
CIP_CODES = ("R", "S", "r", "s")  # r and s: its neighbours differ only by their own code
CIP_STEPS = 100_000  # of the search for a code; highly symmetric cages would take minutes
ORDERS = (1.0, 1.5, 2.0, 3.0)
BOND_FEATURES = (
    *("single", "aromatic", "double", "triple", "other bond"),
    *("conjugated", "in a ring"),
    *("cis (Z)", "trans (E)", "other stereo"),
)
BOND_STEREO = ("STEREOZ", "STEREOE")
ISOTOPE = re.compile(r"\[\d")


def scaffolds(smiles: Sequence[str]) -> list[str]:
    """Compute the Bemis-Murcko scaffold of each valid SMILES: its rings and the paths between them.

    Example:
        >>> scaffolds(["CCc1ccccc1", "CCO"])
        ['c1ccccc1', '']
    """
    murcko = _rdkit("Chem.Scaffolds.MurckoScaffold")
    with _rdkit("rdBase").BlockLogs():
        return [murcko.MurckoScaffoldSmiles(smiles=molecule) for molecule in smiles]


class Molecule(NamedTuple):
    """A row of the file with the kinds of its atoms, and its bonds: first and last atom, kind."""

    row: TableRow
    atoms: list[int]
    bonds: list[tuple[int, int, int]]


class MoleculeParser:
    """Conversion of SMILES to graphs.

    Nodes are atoms without hydrogens, with `ATOM_FEATURES` in the column "atoms". Edges are bonds,
    with the bond order as weight and `BOND_FEATURES` in the column "bonds". If there are isotopes,
    the column "isotopes" has the mass number minus that of the most common isotope: 1 for [13C].
    There are few different kinds of atoms and bonds, so features are computed once per kind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chem, self.base = _rdkit("Chem"), _rdkit("rdBase")
        self.labeler = _rdkit("Chem.rdCIPLabeler")
        self.atom_kinds: dict[tuple[Any, ...], int] = {}
        self.bond_kinds: dict[tuple[Any, ...], int] = {}
        self.num_valid = self.num_invalid = 0
        self.listed: list[str] = []  # the first invalid SMILES

    def parse(self, rows: Iterable[TableRow]) -> list[Molecule]:
        """Return the molecules of rows, without those that are invalid."""
        with self.base.BlockLogs():
            parsed = [self._molecule(row) for row in rows]
        molecules = [molecule for molecule in parsed if molecule is not None]
        self.num_valid += len(molecules)
        return molecules

    def _molecule(self, row: TableRow) -> Molecule | None:
        molecule = self.chem.MolFromSmiles(row.cells[0])
        if molecule is None or molecule.GetNumAtoms() == 0:
            self.num_invalid += 1
            if len(self.listed) < MAX_LISTED:
                self.listed.append(f"line {row.line} {row.cells[0][:40]!r}")
            return None
        # Calls of RDKit take longer than parsing, above all its enumerations. Without these signs
        # there is no stereochemistry.
        codes = self._cip_codes(molecule) if "@" in row.cells[0] else {}
        has_stereo = bool({"/", "\\"} & set(row.cells[0]))
        has_isotopes = ISOTOPE.search(row.cells[0]) is not None
        atoms, kinds = [], self.atom_kinds
        for i in range(molecule.GetNumAtoms()):
            atom = molecule.GetAtomWithIdx(i)
            key = (
                atom.GetAtomicNum(), atom.GetDegree(), atom.GetTotalNumHs(),
                atom.GetHybridization(), atom.GetFormalCharge(), atom.GetIsAromatic(),
                atom.IsInRing(), codes.get(i), atom.GetIsotope() if has_isotopes else 0,
            )  # fmt: skip
            atoms.append(kinds.setdefault(key, len(kinds)))
        bonds, bond_kinds = [], self.bond_kinds
        for i in range(molecule.GetNumBonds()):
            bond = molecule.GetBondWithIdx(i)
            bond_key = (
                bond.GetBondTypeAsDouble(), bond.GetIsConjugated(), bond.IsInRing(),
                bond.GetStereo().name if has_stereo else "STEREONONE",
            )  # fmt: skip
            kind = bond_kinds.setdefault(bond_key, len(bond_kinds))
            bonds.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), kind))
        return Molecule(row, atoms, bonds)

    def _cip_codes(self, molecule: Any) -> dict[int, str]:
        """Return the code of each chiral atom by its index; "" if it has none."""
        unspecified = self.chem.ChiralType.CHI_UNSPECIFIED
        codes = {
            atom.GetIdx(): atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
            for atom in molecule.GetAtoms()
            if atom.GetChiralTag() != unspecified
        }
        # The parser finds no code where neighbours differ only in space, as in a ring that is cis
        # or trans. The full rules, which take longer, do.
        if without := [i for i, code in codes.items() if not code]:
            with suppress(RuntimeError):  # too many steps
                self.labeler.AssignCIPLabels(molecule, without, [], CIP_STEPS)
            for i in without:
                atom = molecule.GetAtomWithIdx(i)
                codes[i] = atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
        return codes

    def finish(self, strict: bool) -> None:
        """Warn about invalid SMILES; raise an error if `strict`, or if there is no valid one."""
        more = self.num_invalid - len(self.listed)
        listed = ", ".join(self.listed) + (f" and {more} more" if more else "")
        if self.num_valid == 0 or (strict and self.num_invalid):
            remedy = "check the file and {smiles}, its column of SMILES"
            raise HaarPoolError(
                f"valid SMILES in {self.path}",
                listed or "no lines below the header",
                "correct these lines, or leave out {strict}" if self.num_valid else remedy,
                smiles=...,
                strict=...,
            )
        if self.num_invalid:
            text = f"{self.num_invalid} invalid SMILES in {self.path} skipped: {listed}"
            warnings.warn(text, HaarPoolWarning, stacklevel=4)

    def graphs(self, molecules: Sequence[Molecule]) -> Graphs:
        """Return the molecules that were parsed last as graphs, without labels."""
        start = np.cumsum([0, *(len(molecule.atoms) for molecule in molecules)])
        shift = np.repeat(start[:-1], [len(molecule.bonds) for molecule in molecules])
        bonds = np.array([bond for molecule in molecules for bond in molecule.bonds], np.int64)
        begin, end, kind = bonds.reshape(-1, 3).T
        begin, end = begin + shift, end + shift
        edges = np.stack([np.concatenate([begin, end]), np.concatenate([end, begin])])
        order = np.lexsort(edges[::-1])
        kind = np.concatenate([kind, kind])[order]
        features, weights = self._bond_table()
        table, shifts = self._atom_table()
        atoms = np.array([i for molecule in molecules for i in molecule.atoms], np.int64)
        return Graphs(
            self.path.stem,
            start,
            edges[:, order],
            {"atoms": table[atoms]} | ({"isotopes": shifts[atoms]} if shifts.any() else {}),
            edge_weight=weights[kind],
            edge_columns={"bonds": features[kind]},
            ids=tuple(molecule.row.cells[0] for molecule in molecules),
            id_name="smiles",
            lines=np.array([molecule.row.line for molecule in molecules], np.int64),
            numbers=np.arange(self.num_valid - len(molecules), self.num_valid),
        )

    def _atom_table(self) -> tuple[Floats, Floats]:
        """Return the (kinds, features) of atoms, and their (kinds, 1) isotopes.

        An isotope is the mass number minus that of the most common one.
        """
        periodic = self.chem.GetPeriodicTable()
        symbol, common = periodic.GetElementSymbol, periodic.GetMostCommonIsotope
        rows = [
            [
                *_one_hot(symbol(number) if number else "*", ELEMENTS),
                *(min(neighbours, 5) == d for d in range(6)),
                *(min(hydrogens, 4) == h for h in range(5)),
                *_one_hot(hybridisation.name, HYBRIDISATIONS),
                charge,
                aromatic,
                ring,
                *([False] * 5 if code is None else _one_hot(code, CIP_CODES)),
            ]
            for (
                number, neighbours, hydrogens, hybridisation, charge, aromatic, ring, code, _
            ) in self.atom_kinds
        ]  # fmt: skip
        features = np.array(rows, np.float64).reshape(-1, len(ATOM_FEATURES))
        shifts = [mass - common(number) if mass else 0 for number, *_, mass in self.atom_kinds]
        return features, np.array(shifts, np.float64)[:, None]

    def _bond_table(self) -> tuple[Floats, Floats]:
        """Return the (kinds, features) of bonds, and their (kinds,) weights.

        The weight is the bond order; a bond without order has the weight of a single bond.
        """
        rows = [
            [
                *_one_hot(order, ORDERS),
                conjugated,
                ring,
                *([False] * 3 if stereo == "STEREONONE" else _one_hot(stereo, BOND_STEREO)),
            ]
            for order, conjugated, ring, stereo in self.bond_kinds
        ]
        weights = np.array([order for order, *_ in self.bond_kinds], np.float64)
        weights[weights == 0] = 1
        return np.array(rows, np.float64).reshape(-1, len(BOND_FEATURES)), weights


def _one_hot(value: object, known: Sequence[object]) -> list[bool]:
    """Encode a value one-hot; the last entry means that it is not a known value."""
    return [*(value == choice for choice in known), value not in known]


def _rdkit(module: str) -> Any:
    return import_extra(f"rdkit.{module}", "chem")
