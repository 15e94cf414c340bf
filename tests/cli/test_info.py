"""`haarpool info`."""

import json

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


def test_info_of_a_dataset(root):
    out = run_main("info", "RANDOM", "--root", root).out
    graphs = read_graphs("RANDOM", root)
    assert f"nodes                       mean: {graphs.sizes.mean():.2f}, min: " in out
    found = json.loads(run_main("info", "RANDOM", "--root", root, "--json").out)
    assert found["graphs"] == 30
    assert found["features"] == Encoding.fit(graphs).describe()
