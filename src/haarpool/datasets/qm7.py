"""QM7: 7,165 small molecules with their atomization energies (Rupp et al., 2012).

The rows of the published Coulomb matrices X are sorted, while the charges Z and the coordinates R
share another order of atoms. Here everything stands in the order of Z and R: the matrices are
computed anew from them, and agree with X up to that order and rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints, Task
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError

ELEMENTS = (1, 6, 7, 8, 16)  # H, C, N, O, S: charges of all nuclei of QM7
CENTRES = np.arange(1.5, 12.0, 1.5)  # Bohr: where the Gaussians of distances stand
WIDTH = 1.5  # Bohr


def read_qm7(path: Path, task: Task | None = None) -> Graphs:
    """All molecules as complete graphs with self-loops, weighted by the Coulomb matrix.

    The features are constant by default, as in the paper. The columns are "atoms", see
    `atom_features`; "z" (N, 1), nuclear charges; and "pos" (N, 3), coordinates in Bohr.
    """
    if task == "classification":
        raise HaarPoolError("regression for qm7, whose targets are energies", task, "leave it out")
    charge, place, energy = _load(path)
    there = charge > 0
    sizes = there.sum(axis=1)
    start = np.concatenate([[0], np.cumsum(sizes)])
    distance = np.linalg.norm(place[:, :, None] - place[:, None], axis=-1)
    both = there[:, :, None] & there[:, None]
    molecule, row, column = np.nonzero(both)
    return Graphs(
        "qm7",
        start,
        np.stack([row, column]) + start[molecule],
        {
            "atoms": atom_features(charge, distance)[there],
            "z": charge[there][:, None],
            "pos": place[there],
        },
        edge_weight=coulomb(charge, distance)[both],
        task="regression",
        targets=energy[:, None],
        target_names=("atomization energy [kcal/mol]",),
        default_features="constant",
    )


def coulomb(charge: Ints, distance: Floats) -> Floats:
    """(G, n, n) Coulomb matrices: 0.5 Z^2.4 on the diagonal, else Z_i Z_j / distance.

    Args:
        charge: (G, n) nuclear charges, 0 where there is no atom.
        distance: (G, n, n) in Bohr.
    """
    z = charge.astype(np.float64)
    diagonal = np.eye(charge.shape[1], dtype=bool)
    apart = np.where(diagonal | (distance == 0), 1.0, distance)  # padding lies in one place
    matrix = z[:, :, None] * z[:, None] / apart
    matrix[:, diagonal] = 0.5 * z**2.4
    return matrix


def atom_features(charge: Ints, distance: Floats) -> Floats:
    """(G, n, 40) what an atom is and how far from it the others are, by element.

    The first 5 columns say which of `ELEMENTS` it is. Then come, for each of `CENTRES`, 5 columns
    with the sum of exp(-(d - centre)² / width²) over the other atoms of each element. None of it
    depends on how the molecule is turned, or on the numbering of other atoms.
    """
    element = (charge[:, :, None] == np.array(ELEMENTS)).astype(np.float64)
    parts = [element]
    others = ~np.eye(charge.shape[1], dtype=bool)
    for centre in CENTRES:
        near = np.exp(-(((distance - centre) / WIDTH) ** 2)) * others
        parts.append(near @ element)
    return np.concatenate(parts, axis=-1)


def _load(path: Path) -> tuple[Ints, Floats, Floats]:
    """Charges (G, n), coordinates (G, n, 3) and energies (G,)."""
    from scipy.io import loadmat

    try:
        found: dict[str, Any] = loadmat(path, variable_names=["R", "Z", "T"])
        charge, place, energy = (np.asarray(found[key], np.float64) for key in ("Z", "R", "T"))
        if charge.ndim != 2 or place.shape != (*charge.shape, 3) or energy.size != len(charge):
            raise ValueError(f"Z {charge.shape}, R {place.shape}, T {energy.shape}")
    except Exception as error:  # a damaged file makes loadmat raise almost anything
        raise HaarPoolError(
            "qm7.mat with the arrays R, Z and T",
            f"{path} ({type(error).__name__}: {' '.join(str(error).split())[:80]})",
            "the file is damaged; fetch it again",
        ) from error
    whole: NDArray[np.int64] = charge.astype(np.int64)
    unknown = ~np.isin(whole, (0, *ELEMENTS))
    if unknown.any() or not (np.isfinite(place).all() and np.isfinite(energy).all()):
        got = f"a nuclear charge of {charge[unknown][0]:g}" if unknown.any() else "NaN or infinity"
        raise HaarPoolError(f"molecules of H, C, N, O and S in {path}", got, "fetch it again")
    return whole, place, energy.reshape(-1)
