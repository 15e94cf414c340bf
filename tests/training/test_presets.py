"""Presets: the scores of the paper's settings do not change with our defaults."""

import numpy as np
import pytest

from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.training.config import RunConfig
from haarpool.training.presets import PAPER, preset
from helpers.files import REAL, needs_data

PINNED = {
    "features": "labels",
    "domain": "haar",
    "dropout": 0.5,
    "tied": None,
    "chain": {
        "sizes": "paper",
        "method": "spectral",
        "by_size": False,
        "order": "degree",
        "measure": "children",
    },
    "weight_decay": 0.0005,
    "schedule": "constant",
    "monitor": "loss",
    "class_weights": False,
    "seed": 0,
    "repeats": 1,
    "split": "random",
    "precision": "float32",
    "compile": False,
}
OTHERS = {
    "nci109": {"weight_decay": 0.0001, "dropout": 0.6},
    "triangles": {"features": "degree", "split": "given"},
    "qm7": {"features": "constant", "dropout": 0.0, "weight_decay": 0.0},
}


@pytest.mark.parametrize("name", PAPER)
def test_settings_of_the_paper(name):
    found = RunConfig(**preset("paper", name)).to_json()
    expected = PINNED | OTHERS.get(name, {})
    assert {key: found[key] for key in expected} == expected


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
