"""Bad options, blocks and architectures."""

import numpy as np
import pytest
import torch

from haarpool import HaarPoolError
from haarpool.nn import Architecture, DiffPool, LaPool, StructPool, build_model
from haarpool.nn.strings.architecture import Block
from helpers.networks import (
    FEATURES,
    NETWORK,
    SIZES,
    batch_for,
)


@pytest.mark.parametrize("make", [DiffPool, StructPool, LaPool])
def test_an_unsorted_batch_is_an_error(make):
    x, none = torch.randn(4, FEATURES), torch.empty(2, 0, dtype=torch.long)
    with pytest.raises(HaarPoolError, match="sorted batch vector"):
        make(FEATURES)(x, none, None, torch.tensor([0, 1, 0, 1]))
    make(FEATURES)(x, none, None, torch.tensor([0, 0, 1, 1]))


BLOCKS = {
    "width 0": lambda: Block("GC", 0),
    "negative width": lambda: Block("GC", -3),
    "repeat 0": lambda: Block("GC", 4, 0),
    "two poolings in one": lambda: Block("HP", None, 2),
    "a pooling with a width": lambda: Block("HP", 3),
    "a fraction": lambda: Block("GC", 2.5),
    "no blocks": lambda: Architecture(5),
    "no architecture": lambda: build_model(None, FEATURES, 2),
}


@pytest.mark.parametrize("case", BLOCKS)
def test_blocks_are_checked_whichever_way_they_are_made(case):
    with pytest.raises(HaarPoolError):
        BLOCKS[case]()


ALL_OPTIONS = {"arch": "GC8-EIG-GC8-SP-DP-SORT"}


def test_options_that_no_layer_takes():
    with pytest.raises(HaarPoolError, match="expected options among num_modes, ratio") as error:
        build_model(**(NETWORK | ALL_OPTIONS | {"sigma": 0.5}))
    assert error.value.got == "'sigma'"
    for arch in ("GC8-HP-FC8", "haarnet"):
        with pytest.raises(HaarPoolError, match=f"expected options of {arch}.*, which has none"):
            build_model(**(NETWORK | {"arch": arch, "ratio": 0.5}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 0),
        ("width", 2.5),
        ("width", True),
        ("dropout", "a"),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("tied", 3),
        ("ratio", 0),
        ("ratio", -1),
        ("ratio", 1.5),
        ("ratio", "a"),
        ("num_modes", 0),
        ("num_clusters", 0),
        ("sorted_nodes", 0),
        ("in_channels", 0),
        ("in_channels", 2.0),
        ("in_channels", True),
        ("out_channels", -1),
    ],
)
def test_bad_options(name, value):
    with pytest.raises(HaarPoolError) as error:
        build_model(**(NETWORK | ALL_OPTIONS | {name: value}))
    assert name in error.value.expected
    assert repr(value) in error.value.got


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_integers_of_numpy_are_integers(kind):
    model = build_model(
        "GC-DP-SORT-FC", kind(FEATURES), kind(2), width=kind(8), dropout=np.float32(0)
    )
    assert type(model.in_channels) is type(model.out_channels) is int
    assert model(batch_for(model)).shape == (len(SIZES), 2)
    model = build_model(
        "GC8-SP-DP-SORT",
        FEATURES,
        2,
        num_clusters=kind(4),
        sorted_nodes=kind(3),
        ratio=np.float64(0.5),
    )
    assert model(batch_for(model)).shape == (len(SIZES), 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Architecture("GC64-HP"),
        lambda: Architecture((Block("XX"), Block("SUM"))),
        lambda: Architecture(("GC", "SUM")),
        lambda: Architecture.parse("GC٨-SUM"),
        lambda: Architecture.parse("٢GC8-SUM"),
        lambda: Architecture.parse("2GC８-SUM"),
        lambda: build_model("GC٨-SUM", FEATURES, 2),
        lambda: Architecture.parse(5),
    ],
)
def test_bad_architectures(make):
    with pytest.raises(HaarPoolError):
        make()


def test_blocks_as_a_list_are_an_architecture():
    arch = Architecture([Block("GC", 8), Block("SUM")])
    assert arch == Architecture.parse("GC8-SUM")
    assert hash(arch) == hash(Architecture.parse("GC8-SUM"))
