"""Options of poolings as a setting of a run."""

import pytest

from haarpool.errors import HaarPoolError
from haarpool.nn.peers.lapool import LaPool
from haarpool.training.config import RunConfig
from helpers.commands import run_main
from helpers.runs import train

ARCH = "GC8-DP-GC8-LAP-SORT-FC8"
OPTIONS = "num_clusters=3,relaxed=True,sorted_nodes=4"


def test_options_reach_the_network_and_its_predictions(workplace):
    small = ("--arch", ARCH, "--epochs", 1, "--pooling", OPTIONS, "--quiet")
    train("rings", *small, "--out", "run")
    run_main("predict", "run", "rings", "--out", "predicted.csv")  # loads the same network

    from haarpool.training.devices import CPU
    from haarpool.training.run_folder import RunFolder
    from haarpool.training.trained_model import load_model

    network = load_model(RunFolder.open("run"), CPU).networks[0]
    diffpool, lapool = (stage.pool for stage in network.stages if hasattr(stage, "pool"))
    assert diffpool.num_clusters == 3
    assert isinstance(lapool, LaPool)
    assert lapool.relaxed
    assert network.adapter.in_features == 4 * 8


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"arch": ARCH, "pooling": {"clusters": 3}}, "among ratio, num_clusters"),
        ({"arch": ARCH, "pooling": ["ratio"]}, "among ratio, num_clusters"),
        ({"arch": "haarnet", "pooling": {"ratio": 0.5}}, "no options of poolings for haarnet"),
    ],
)
def test_wrong_options(settings, words):
    with pytest.raises(HaarPoolError, match=words):
        RunConfig(**settings)


@pytest.mark.parametrize("text", ["ratio", "clusters=3", "ratio=2"])
def test_wrong_options_in_the_shell(text, workplace):
    err = run_main("train", "rings", "--arch", ARCH, "--pooling", text, code=2).err
    assert err.count("\n") == 1
