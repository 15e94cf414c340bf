"""`haarpool info`."""

import json

import numpy as np
import pytest

import haarpool as hp
from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from helpers.commands import run_main


def test_info_of_the_installation(root, cache):
    out = run_main("info", HAARPOOL_DATA=root, HAARPOOL_CACHE=cache).out
    for part in (f"haarpool         {hp.__version__}", "cpu, ", str(cache), f"RANDOM: {root}"):
        assert part in out
    assert max(map(len, out.splitlines())) <= 100 + len(str(root))
    found = json.loads(run_main("info", "--json", HAARPOOL_DATA=root).out)
    assert found["datasets"]["RANDOM"] == str(root / "RANDOM")
    assert "COLLAB" in found["to download"]


def test_many_columns(tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    columns = [f"c{i}" for i in range(20_000)]
    path = tmp_path / "wide.csv"
    path.write_text(f"smiles,{','.join(columns)}\nC,{','.join(['1'] * 20_000)}\n")
    out = run_main("info", path).out
    assert "columns to predict          c0, c1, c2, " in out
    assert "c28, c29, and 19,970 more features " in " ".join(out.split())
    assert len(out) < 2000
    assert json.loads(run_main("info", path, "--json").out)["columns to predict"] == columns
    err = run_main("train", path, code=2).err
    assert "20,000 besides SMILES: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 19,990 more;" in err
    err = run_main("train", path, "--target", "kind", code=2).err
    assert "its columns are smiles, c0, " in err
    assert len(err) < 400


def test_many_targets_have_a_line_each(tmp_path):
    ring = np.stack([np.arange(5), (np.arange(5) + 1) % 5])
    both = np.concatenate([ring, ring[::-1]], 1)
    y = np.random.default_rng(0).normal(size=(5, 40))
    np.savez(tmp_path / "many.npz", edge_index=both, x=np.ones((5, 1)), y=y)
    out = run_main("info", tmp_path / "many.npz", COLUMNS=200).out
    assert f" y29: mean: {y[:, 29].mean():.2f}, min: {y[:, 29].min():.2f}, " in out
    assert "10 more" in out
    assert "{" not in out
    assert "y30" not in out


@pytest.mark.parametrize("columns", [60, 80, 130])
def test_lines_fit_the_terminal(columns, root):
    for arguments in ((), ("RANDOM",), ("rings",)):
        out = run_main("info", *arguments, "--root", root, COLUMNS=columns, HAARPOOL_CACHE="c").out
        lines = [line for line in out.splitlines() if "/" not in line]  # paths are not broken
        assert max(map(len, lines)) <= columns
    assert "TWITTER-Real-Graph-Partial" in run_main("info", COLUMNS=columns).out


@pytest.mark.parametrize("columns", [60, 80])
def test_lines_about_targets_fit_the_terminal(columns, tmp_path):
    pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")
    names = ["energy [kcal/mol]", "solubility in water/log"]
    rows = [f"{'C' * n},{n}.5,-{n}.25" for n in range(1, 9)]
    (tmp_path / "two.csv").write_text("\n".join([f"smiles,{','.join(names)}", *rows]) + "\n")
    for targets in ((), ("--target", ",".join(names))):
        out = run_main("info", tmp_path / "two.csv", *targets, COLUMNS=columns).out
        assert max(map(len, out.splitlines())) <= columns
    assert "energy [kcal/mol]: mean: 5.00, min: 1.50, max: 8.50, std: 2.29, missing: 0" in " ".join(
        out.split()
    )


def test_info_of_a_dataset(root):
    out = run_main("info", "RANDOM", "--root", root).out
    graphs = read_graphs("RANDOM", root)
    assert f"nodes                       mean: {graphs.sizes.mean():.2f}, min: " in out
    found = json.loads(run_main("info", "RANDOM", "--root", root, "--json").out)
    assert found["graphs"] == 30
    assert found["features"] == Encoding.fit(graphs).describe()
