"""QM7: against the published matrices, and by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import loadmat, savemat

from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.readers.qm7.molecules import EDGE_CENTRES, ELEMENTS, read_qm7
from haarpool.datasets.summary import summary
from haarpool.errors import HaarPoolError
from helpers.errors import error_with
from helpers.files import REAL, needs_data, write_qm7
from helpers.tolerances import LOOSER, TOLERANCE


def test_qm7_by_hand(tmp_path):
    write_qm7(tmp_path / "qm7.mat")
    graphs = read_graphs("qm7", tmp_path)
    assert graphs.sizes.tolist() == [3, 3]
    assert graphs.targets.tolist() == [[-230], [-310]]
    kinds = [part.kind for part in Encoding.fit(graphs).nodes]
    assert kinds == ["atoms", "degree"]  # "z" and "pos" only if asked for
    matrix = graphs.batch[1].toarray()
    np.testing.assert_allclose(np.diag(matrix), 0.5 * np.array([1, 6, 7]) ** 2.4)
    np.testing.assert_allclose(matrix[1, 2], 42 / 2.2)
    assert graphs.columns["z"][:, 0].tolist() == [8, 1, 1, 1, 6, 7]
    atoms = graphs.columns["atoms"]
    assert atoms[:, : len(ELEMENTS)].argmax(1).tolist() == [3, 0, 0, 0, 1, 2]
    # The hydrogen of HCN sees carbon at 2.0 and nitrogen at 4.2 Bohr, and no oxygen.
    first = len(ELEMENTS)
    assert atoms[3, first + 1] == pytest.approx(np.exp(-((0.5 / 1.5) ** 2)))
    assert atoms[3, first + 2] == pytest.approx(np.exp(-((2.7 / 1.5) ** 2)))
    assert atoms[3, first + 3] == atoms[3, first] == 0
    # Its edges: to itself, to carbon and to nitrogen.
    near = graphs.edge_columns["distances"][graphs.edge_start[1] :][:3]
    assert EDGE_CENTRES[near.argmax(1)].tolist() == [0.5, 2.0, 4.0]
    assert near[2, 7] == pytest.approx(np.exp(-((0.2 / 0.5) ** 2)))


def test_qm7_keeps_the_published_folds(tmp_path):
    write_qm7(tmp_path / "qm7.mat")
    assert read_graphs("qm7", tmp_path).folds is None
    arrays = {key: value for key, value in loadmat(tmp_path / "qm7.mat").items() if key in "RZT"}
    savemat(tmp_path / "qm7.mat", arrays | {"P": np.array([[1], [0]])})
    assert read_graphs("qm7", tmp_path).folds.tolist() == [1, 0]
    savemat(tmp_path / "qm7.mat", arrays | {"P": np.array([[1], [1]])})
    with pytest.raises(HaarPoolError, match="does not name each molecule once"):
        read_graphs("qm7", tmp_path)


def test_qm7_features_do_not_depend_on_rotations(tmp_path):
    write_qm7(tmp_path / "qm7.mat")
    found = loadmat(tmp_path / "qm7.mat")
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    order = [2, 0, 1, 3]  # padding stays behind
    moved = found["R"][:, order] @ turn + 3.0
    savemat(tmp_path / "moved.mat", {"R": moved, "Z": found["Z"][:, order], "T": found["T"]})
    one, other = read_qm7(tmp_path / "qm7.mat"), read_qm7(tmp_path / "moved.mat")
    nodes = np.array([2, 0, 1, 5, 3, 4])
    np.testing.assert_allclose(
        other.columns["atoms"], one.columns["atoms"][nodes], atol=TOLERANCE[torch.float64]
    )
    same = one.batch.adjacency.toarray()[nodes][:, nodes]
    np.testing.assert_allclose(other.batch.adjacency.toarray(), same, atol=TOLERANCE[torch.float64])


def test_qm7_errors(tmp_path):
    path = tmp_path / "qm7.mat"
    write_qm7(path)
    with error_with("regression for qm7"):
        read_graphs(path, task="classification")
    write_qm7(path, T=[[1.0]])
    with error_with("arrays R, Z and T", "check the file"):
        read_graphs(path)
    write_qm7(path, Z=[[9, 1, 1, 0], [1, 6, 7, 0]])
    with error_with("H, C, N, O and S", "charge of 9"):
        read_graphs(path)
    write_qm7(path, T=[[1.0, np.nan]])
    with error_with("H, C, N, O and S", "NaN"):
        read_graphs(path)
    path.write_bytes(b"nothing")
    with error_with("arrays R, Z and T", "qm7.mat"):
        read_graphs(path)


@pytest.mark.slow
@needs_data
def test_qm7_has_the_published_statistics():
    graphs = read_graphs("qm7", REAL)
    found = summary(graphs)
    assert found["graphs"] == 7165
    (energy,) = found["targets"].values()
    assert (round(energy["mean"], 2), round(energy["std"], 2)) == (-1538.04, 223.92)
    assert (energy["min"], round(energy["max"], 2)) == (-2192.0, -404.88)
    elements = np.bincount(graphs.columns["z"][:, 0])[list(ELEMENTS)]
    assert elements.tolist() == [61959, 35761, 6655, 5978, 297]
    assert np.bincount(graphs.folds).tolist() == [1433] * 5
    # Row order differs, eigenvalues do not; float32 rounds the entries of X by up to 2e-5.
    X = loadmat(Path(REAL) / "QM7" / "raw" / "qm7.mat")["X"].astype(np.float64)
    for g in range(0, 7165, 20):
        size, edges = graphs.sizes[g], slice(*graphs.edge_start[g : g + 2])
        own = graphs.edge_weight[edges].reshape(size, size)
        theirs = np.linalg.eigvalsh(X[g, :size, :size])
        np.testing.assert_allclose(
            np.linalg.eigvalsh(own), theirs, rtol=0, atol=LOOSER["published matrices"]
        )
