"""Options of poolings as a setting of a run."""

import pytest

from haarpool.errors import HaarPoolError
from haarpool.nn import build_model, parse_architecture
from haarpool.nn.layers.lapool import LaPool
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
        ({"arch": ARCH, "pooling": {"clusters": 3}}, "among num_clusters, cluster_ratio, relaxed"),
        ({"arch": ARCH, "pooling": ["ratio"]}, "among num_clusters, cluster_ratio, relaxed"),
        ({"arch": ARCH, "pooling": {"ratio": 0.5}}, "got 'ratio'; pass for example"),
        (
            {"arch": "GC8-HP-FC8", "pooling": {"ratio": 0.5}},
            "pooling options of GC8-HP-FC8, which has none",
        ),
        (
            {"arch": "haarnet", "pooling": {"ratio": 0.5}},
            "pooling options of haarnet",
        ),
    ],
)
def test_wrong_options(settings, words):
    with pytest.raises(HaarPoolError, match=words):
        RunConfig(**settings)


ALL = "GC8-EIG-GC8-SP-DP-LAP-SORT-FC8"
NAMES = "num_modes, ratio, num_clusters, cluster_ratio, relaxed, distance, sorted_nodes"
AMONG = f"expected --pooling options among {NAMES}"
EXAMPLE = "pass for example --pooling ratio=0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ratio",
            "expected --pooling NAME=VALUE, got 'ratio'; pass for example --pooling ratio=0.8",
        ),
        ("ratio=0.8,foo=1", f"{AMONG}, got 'foo'; pass for example --pooling num_modes=2"),
        ("ratio=7", f"expected ratio of --pooling in (0, 1), got 7; {EXAMPLE}"),
        ("ratio=half", f"expected ratio of --pooling in (0, 1), got 'half'; {EXAMPLE}"),
        (
            "num_clusters=100000",
            "expected num_clusters of --pooling in 1..1024, got 100000; pass for example --pooling "
            "num_clusters=16",
        ),
        (
            "cluster_ratio=2",
            "expected cluster_ratio of --pooling in (0, 1), got 2; pass for example --pooling "
            "cluster_ratio=0.5",
        ),
        (
            "num_modes=0",
            "expected num_modes of --pooling in 1..64, got 0; pass for example --pooling "
            "num_modes=2",
        ),
        (
            "sorted_nodes=100000000",
            "expected sorted_nodes of --pooling in 1..10000, got 100000000; pass for example "
            "--pooling sorted_nodes=30",
        ),
        (
            "relaxed=2",
            "expected relaxed of --pooling True, False, 0 or 1, got 2; choose one of these",
        ),
    ],
)
def test_wrong_options_in_the_shell(text, message, workplace):
    err = run_main("train", "rings", "--arch", ALL, "--pooling", text, code=2).err
    assert err == f"haarpool: {message}\n"


def test_the_largest_options_make_a_network():
    arch = "GC8-EIG-GC8-DP-GC8-SORT-FC8"
    limits = {name: limits for name, (_, limits) in parse_architecture(arch).options().items()}
    largest = {name: limits[name][1] for name in ("num_clusters", "num_modes", "sorted_nodes")}
    config = RunConfig(arch=arch, pooling=largest)
    network = build_model(config.arch, 3, 2, **config.pooling)
    assert network.adapter.in_features == 8 * largest["sorted_nodes"] == 80_000
