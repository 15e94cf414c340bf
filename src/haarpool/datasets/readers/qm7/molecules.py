"""Molecules of QM7 as graphs, with features from their geometry.

The rows of the published Coulomb matrices X are sorted, while the charges Z and the coordinates R
have another order of atoms. Here everything has the order of Z and R: the matrices are computed
from them, and agree with X up to this order and rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from haarpool._types import Floats, Ints, Singles
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError
from haarpool.tasks import find_task

ELEMENTS = (1, 6, 7, 8, 16)  # H, C, N, O, S: charges of all nuclei of QM7
TARGET = "atomization energy [kcal/mol]"
CENTRES = np.arange(1.5, 12.0, 1.5)  # Bohr: centres of the Gaussians of distances
WIDTH = 1.5  # Bohr
EDGE_CENTRES, EDGE_WIDTH = np.arange(0.5, 12.5, 0.5), 0.5  # the same for features of edges


def read_qm7(path: Path, task: str | None = None) -> Graphs:
    """Read all molecules as complete graphs with self-loops, weighted by the Coulomb matrix.

    The columns are "atoms", see `atom_features`; "z" (N, 1), nuclear charges; and "pos" (N, 3),
    coordinates in Bohr. Edges have Gaussians of their length, "distances" (E, 24). The five
    published folds are kept for `split=given`.
    """
    charge, position, energy, folds = _load(path)
    is_atom = charge > 0
    sizes = is_atom.sum(axis=1)
    start = np.concatenate([[0], np.cumsum(sizes)])
    distance = np.linalg.norm(position[:, :, None] - position[:, None], axis=-1)
    both = is_atom[:, :, None] & is_atom[:, None]
    molecule, row, column = np.nonzero(both)
    return Graphs(
        "qm7",
        start,
        np.stack([row, column]) + start[molecule],
        {
            "atoms": atom_features(charge, distance)[is_atom],
            "z": charge[is_atom][:, None],
            "pos": position[is_atom],
        },
        edge_weight=coulomb(charge, distance)[both],
        edge_columns={"distances": gaussians(distance[both])},
        folds=folds,
        **find_task(task or "regression").label_fields(energy[:, None], targets=(TARGET,)),
    )


def coulomb(charge: Ints, distance: Floats) -> Floats:
    """Compute (G, n, n) Coulomb matrices: 0.5 Z^2.4 on the diagonal, else Z_i Z_j / distance.

    Charges Z (G, n) are 0 for padding; distances (G, n, n) are in Bohr.
    """
    z = charge.astype(np.float64)
    diagonal = np.eye(charge.shape[1], dtype=bool)
    apart = np.where(diagonal | (distance == 0), 1.0, distance)  # padding has distance 0
    matrix = z[:, :, None] * z[:, None] / apart
    matrix[:, diagonal] = 0.5 * z**2.4
    return matrix


def gaussians(distance: Floats) -> Singles:
    """Compute exp(-(d - centre)² / width²) of (E,) distances in Bohr for each of `EDGE_CENTRES`."""
    apart = (distance.astype(np.float32)[:, None] - EDGE_CENTRES.astype(np.float32)) / EDGE_WIDTH
    result: Singles = np.exp(-np.square(apart))
    return result


def atom_features(charge: Ints, distance: Floats) -> Floats:
    """Compute features of atoms: the element, and distances to other atoms by their element.

    The first 5 columns are the element, one-hot over `ELEMENTS`. Then follow, for each of
    `CENTRES`, 5 columns with the sum of exp(-(d - centre)² / width²) over the other atoms of each
    element. They do not depend on rotations of the molecule or on the order of other atoms.

    Returns:
        (G, n, 40) The features.
    """
    element = (charge[:, :, None] == np.array(ELEMENTS)).astype(np.float64)
    parts = [element]
    others = ~np.eye(charge.shape[1], dtype=bool)
    for centre in CENTRES:
        near = np.exp(-(((distance - centre) / WIDTH) ** 2)) * others
        parts.append(near @ element)
    return np.concatenate(parts, axis=-1)


def _load(path: Path) -> tuple[Ints, Floats, Floats, Ints | None]:
    """Read charges (G, n), coordinates (G, n, 3), energies (G,) and folds (G,) or None."""
    from scipy.io import loadmat

    try:
        arrays: dict[str, Any] = loadmat(path, variable_names=["R", "Z", "T", "P"])
        charge, position, energy = (np.asarray(arrays[key], np.float64) for key in ("Z", "R", "T"))
        if charge.ndim != 2 or position.shape != (*charge.shape, 3) or energy.size != len(charge):
            raise ValueError(f"Z {charge.shape}, R {position.shape}, T {energy.shape}")
        folds = _folds(arrays["P"], len(charge)) if "P" in arrays else None
    except Exception as error:  # a damaged file makes loadmat raise almost anything
        raise HaarPoolError(
            "qm7.mat with the arrays R, Z and T",
            f"{path} ({type(error).__name__}: {' '.join(str(error).split())[:80]})",
            "check the file, or remove it to download QM7",
        ) from error
    charges: Ints = charge.astype(np.int64)
    unknown = ~np.isin(charges, (0, *ELEMENTS))
    if unknown.any() or not (np.isfinite(position).all() and np.isfinite(energy).all()):
        got = f"a nuclear charge of {charge[unknown][0]:g}" if unknown.any() else "NaN or infinity"
        raise HaarPoolError(f"molecules of H, C, N, O and S in {path}", got, "remove them")
    return charges, position, energy.reshape(-1), folds


def _folds(molecules: Any, size: int) -> Ints:
    """Return the fold of each molecule from (folds, molecules per fold) numbers of molecules."""
    if molecules.ndim != 2 or not np.array_equal(np.sort(molecules, axis=None), np.arange(size)):
        raise ValueError(f"P {molecules.shape}, which does not name each molecule once")
    folds = np.zeros(size, np.int64)
    folds[molecules] = np.arange(len(molecules))[:, None]
    return folds
