"""`haarpool info`."""

import json

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


@pytest.mark.parametrize("columns", [60, 80, 130])
def test_lines_fit_the_terminal(columns, root):
    for arguments in ((), ("RANDOM",), ("rings",)):
        out = run_main("info", *arguments, "--root", root, COLUMNS=columns, HAARPOOL_CACHE="c").out
        lines = [line for line in out.splitlines() if "/" not in line]  # paths are not broken
        assert max(map(len, lines)) <= columns
    assert "TWITTER-Real-Graph-Partial" in run_main("info", COLUMNS=columns).out


def test_info_of_a_dataset(root):
    out = run_main("info", "RANDOM", "--root", root).out
    graphs = read_graphs("RANDOM", root)
    assert f"nodes                       mean: {graphs.sizes.mean():.2f}, min: " in out
    found = json.loads(run_main("info", "RANDOM", "--root", root, "--json").out)
    assert found["graphs"] == 30
    assert found["features"] == Encoding.fit(graphs).describe()
