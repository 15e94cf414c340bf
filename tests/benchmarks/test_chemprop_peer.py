"""The benchmark of chemprop, with a program in its place that predicts target + number."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import chemprop_peer
from haarpool.datasets.splits import make_splits

pytest.importorskip("rdkit")

PROGRAM = f"""#!{sys.executable}
import csv, sys
from pathlib import Path
argument = lambda name: sys.argv[sys.argv.index(name) + 1]
if Path("broken").exists():
    sys.exit("out of order")
table, target = argument("--data-path"), argument("--target-columns")
rows = [row for row in csv.DictReader(open(table)) if row[argument("--splits-column")] == "test"]
for i in range(int(argument("--ensemble-size"))):
    folder = Path(argument("--output-dir"), f"model_{{i}}")
    folder.mkdir(parents=True)
    with open(folder / "test_predictions.csv", "w") as file:
        print("smiles", target, sep=",", file=file)
        for row in rows:
            print(row["smiles"], float(row[target]) + i, sep=",", file=file)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the benchmark on 30 molecules; return its results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAARPOOL_DATA", str(tmp_path))
    monkeypatch.setattr(chemprop_peer, "versions", lambda chemprop: {})
    (name,) = chemprop_peer.TARGETS["ESOL"]
    lines = ["smiles," + name, *(f"{'C' * n},{n / 7}" for n in range(1, 30)), "not a molecule,1"]
    Path("molecules").mkdir()
    Path("molecules/ESOL.csv").write_text("\n".join(lines))
    program = tmp_path / "chemprop"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    arguments = ["--chemprop", str(program), "--out", "out.jsonl", "--only", "ESOL-random"]

    def main():
        monkeypatch.setattr(sys, "argv", ["chemprop_peer", *arguments])
        chemprop_peer.main()
        return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]

    return main


def test_results_of_one_network_and_of_the_mean(run, capsys):
    results = run()
    assert [(row["seed"], row["members"]) for row in results] == [
        (seed, members) for seed in range(5) for members in (1, 5)
    ]
    assert [row["value"] for row in results] == pytest.approx([0, 2] * 5)  # 2 = mean of 0 .. 4
    splits = make_splits("random", chemprop_peer.read_molecules("ESOL"), seed=0, repeats=5)
    assert [row["split_hash"] for row in results[::2]] == [split.digest() for split in splits]
    assert all(row["cpu_seconds"] >= 0 for row in results)
    assert "ESOL   random    5 member(s)  rmse 2.000 ± 0.000  (5 runs" in capsys.readouterr().out


def test_finished_runs_are_skipped_and_failed_ones_repeated(run):
    Path("broken").touch()
    results = run()
    assert [row["status"] for row in results] == ["failed"] * 5
    assert results[0]["error"] == "chemprop ended with an error: out of order"
    Path("broken").unlink()
    assert len(run()) == 10
    before = Path("out.jsonl").read_text()
    Path("broken").touch()
    run()
    assert Path("out.jsonl").read_text() == before


def test_scores_of_several_targets_leave_out_missing_labels():
    target = np.tile([[0.0], [1.0], [np.nan], [1.0]], 12)
    prediction = np.tile([[0.2], [0.9], [0.5], [0.1]], 12)
    scores = chemprop_peer.score("Tox21", prediction, target)
    assert scores["roc_auc"] == 0.5
    assert scores["roc_auc_of"] == dict.fromkeys(chemprop_peer.TARGETS["Tox21"], 0.5)
