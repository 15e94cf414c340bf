"""Presets: the scores of the paper's settings do not change with our defaults."""

from dataclasses import fields

import numpy as np
import pytest

from haarpool.chains.clustering import find_method
from haarpool.chains.recipe import PARAMETERS
from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.training.config import RunConfig
from haarpool.training.presets import PAPER, preset
from helpers.files import REAL, needs_data

PINNED = {
    "features": "labels",
    "domain": "haar",
    "dropout": 0.5,
    "width": 64,
    "tied": None,
    "pooling": None,
    "chain": {
        "sizes": "paper",
        "ratio": 0.5,
        "method": "spectral",
        "by_size": False,
        "order": "degree",
        "measure": "children",
        "symmetrize": False,
    },
    "weight_decay": 0.0005,
    "schedule": "constant",
    "optimizer": "adam",
    "label_smoothing": 0.0,
    "class_weights": False,
    "monitor": "loss",
    "ensemble": 1,
    "split": "random",
    "precision": "float32",
}
BY_DATASET = {"arch", "epochs", "patience", "batch_size", "lr"}
# Of the machine, or of how often the paper's settings are tried.
FREE = {"seed", "repeats", "compile", "threads"}
OTHERS = {
    "nci109": {"weight_decay": 0.0001, "dropout": 0.6},
    "triangles": {"features": "degree", "split": "given", "dropout": 0.0, "weight_decay": 0.0},
    "qm7": {"features": "constant", "dropout": 0.0, "weight_decay": 0.0},
}


@pytest.mark.parametrize("name", PAPER)
def test_settings_of_the_paper(name):
    found = RunConfig(**preset("paper", name)).to_json()
    expected = PINNED | OTHERS.get(name, {})
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("name", PAPER)
def test_every_setting_that_decides_on_the_scores_is_pinned(name):
    """A new field of `RunConfig` or `Recipe` fails here until it is pinned."""
    settings = preset("paper", name)
    assert settings.keys() == {one.name for one in fields(RunConfig)} - FREE
    assert settings.keys() == PINNED.keys() | BY_DATASET
    chain = {*PARAMETERS, *find_method("spectral", {}).options} - {"options"}
    assert settings["chain"].keys() == chain - {"num_levels", "top", "seed"}


@needs_data
@pytest.mark.parametrize(("name", "width"), [("MUTAG", 7), ("PROTEINS", 3), ("NCI1", 37)])
def test_features_of_the_paper(name, width):
    graphs = read_graphs(name, REAL)
    encoding = Encoding.fit(graphs, preset("paper", name)["features"])
    assert encoding.real_nodes == ()
    labels = graphs.columns["labels"]
    expected = (labels == np.unique(labels)).astype(np.float32)
    assert expected.shape[1] == width
    assert np.array_equal(encoding.encode(graphs), expected)


def test_the_default_leaves_the_domain_to_the_architecture():
    best = preset("best", "MUTAG")
    assert RunConfig(**best).domain == "vertex"
    assert RunConfig(**{**best, "arch": "GC8-HP-FC8"}).domain == "haar"
