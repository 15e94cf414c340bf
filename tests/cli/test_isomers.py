"""The default settings tell isomers and isotopes apart, from the table to the predictions."""

import csv
from pathlib import Path

import pytest

from helpers.commands import run_main

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")

PAIRS = {
    "R and S": ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"),
    "E and Z": ("C/C=C/C(=O)O", "C/C=C\\C(=O)O"),
    "isotopes": ("CCO", "[13CH3]CO"),
}


def test_predictions_for_isomers_differ():
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    molecules = [smiles for pair in PAIRS.values() for smiles in pair]
    tails = ("", "C", "CC", "N", "O", "Cl")
    rows = [f"{s}{tail},{len(tail) + 0.5 * i}" for i, s in enumerate(molecules) for tail in tails]
    Path("train.csv").write_text("\n".join(["smiles,y", *rows]))
    Path("isomers.csv").write_text("\n".join(["smiles", *molecules]))
    run_main("train", "train.csv", "--target", "y", "--epochs", 3, "--quiet", "--out", "run")
    lines = run_main("predict", "run", "isomers.csv", "--quiet").out.splitlines()
    predicted = {row["smiles"]: float(row["y"]) for row in csv.DictReader(lines)}
    assert len(predicted) == len(molecules)
    for name, (one, other) in PAIRS.items():
        assert abs(predicted[one] - predicted[other]) > 1e-4, name
