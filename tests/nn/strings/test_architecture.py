"""Architecture strings: the paper's, the grammar, the errors that point at a place."""

from dataclasses import FrozenInstanceError
from inspect import signature
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from haarpool import HaarPoolError
from haarpool._types import Domain
from haarpool.nn import (
    Architecture,
    HaarNet,
    HaarNetArchitecture,
    build_model,
    parse_architecture,
)
from haarpool.nn.strings.architecture import Block, UnknownTokenError
from haarpool.nn.strings.registry import find_layer
from haarpool.training.config import RunConfig
from helpers.networks import tokens

PAPER = {
    # string: (levels, top, input widths of the linear layers)
    "GC60-HP-FC60-FC180-FC60": (1, 1, [60, 180, 60]),
    "2GC128-HP-2GC128-HP-2GC128-HP-GC128-2FC128-FC64": (3, 1, [128, 128, 64]),
    "2GC256-HP-FC256-FC1024-FC2048": (1, 1, [256, 1024, 2048]),
    "3GC256-HP-2FC256-FC128": (1, 1, [256, 256, 128]),
    "GIN-SP-GIN-SP-GIN-MP": (0, None, []),
    "GIN-HP-GIN-HP-GIN-MP": (2, None, []),
    "GIN-HP-GIN-GIN-MP": (1, None, []),
}


@pytest.mark.parametrize("text", PAPER)
def test_strings_of_the_paper(text):
    arch = Architecture.parse(text)
    widths = [block.width for block in arch.layers() if block.token == "FC"]
    assert (arch.num_levels, arch.top, widths) == PAPER[text]
    chain = {"num_levels": arch.num_levels, "top": arch.top}
    assert arch.chain_parameters == (chain if arch.num_levels else {})
    assert str(arch) == text
    assert Architecture.parse(str(arch)) == arch
    assert hash(Architecture.parse(text)) == hash(arch)


def test_it_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Architecture.parse("GC-HP").blocks = ()


def test_repetitions_are_written_out():
    layers = list(Architecture.parse("3GC256-HP-2FC256-FC128").layers())
    assert layers == [
        *[Block("GC", 256)] * 3, Block("HP"), *[Block("FC", 256)] * 2, Block("FC", 128)
    ]  # fmt: skip


ON_CHAINS = [token for token in tokens("pooling") if find_layer(token).chain]


@st.composite
def strings(draw):
    number = st.one_of(st.just(""), st.integers(1, 2048).map(str))
    repeat = st.sampled_from(["", "2", "3", "12"])
    conv = st.builds(
        lambda r, t, w: r + t + w, repeat, st.sampled_from(tokens("convolution")), number
    )
    chain = st.lists(st.one_of(conv, st.sampled_from(ON_CHAINS)), max_size=4)
    rest = st.lists(
        st.one_of(conv, st.sampled_from(sorted({*tokens("pooling")} - {*ON_CHAINS}))), max_size=3
    )
    linear = st.lists(st.builds(lambda r, w: f"{r}FC{w}", repeat, number), max_size=3)
    readouts = st.lists(st.sampled_from(tokens("readout")), max_size=2)
    join = draw(st.sampled_from([[], ["2GC8", "JK"]]))
    layers = [*draw(chain), *draw(readouts), *draw(rest), *join]
    return "-".join([*layers, draw(st.sampled_from(tokens("readout"))), *draw(linear)])


@given(strings())
def test_every_string_of_the_grammar_comes_back(text):
    assert str(Architecture.parse(text)) == text


# text: (part of expected, the place, part of the remedy)
WRONG = {
    "3GC256-XP-FC128": ("TOKEN", "3GC256-»XP«-FC128", "for example"),
    "gc64-HP": ("TOKEN", "»gc64«-HP", "mean GC?"),
    "GC64--HP": ("TOKEN", "GC64-»«-HP", "for example"),
    "": ("TOKEN", "»«", "for example"),
    "GC64 -HP": ("TOKEN", "»GC64 «-HP", "for example"),
    "GC64-HP3": ("without a width", "GC64-»HP3«", "write HP"),
    "GC64-2HP": ("without a repeat", "GC64-»2HP«", "write HP"),
    "GC64-MP8": ("without a width", "GC64-»MP8«", "write MP"),
    "0GC64-HP": ("repeat", "»0GC64«-HP", "2GC"),
    "GC0-HP": ("width", "»GC0«-HP", "GC64"),
    "GC99999999-HP": ("width in 1..65536", "»GC99999999«-HP", "2GC64"),
    "99999999GC8-HP": ("repeat in 1..65536", "»99999999GC8«-HP", "2GC64"),
    "GC064-HP": ("width", "»GC064«-HP", "GC64"),
    "GC64-MP-HP-FC64": ("after MP", "GC64-MP-»HP«-FC64", "before MP"),
    "GC64-MP-GC64-AP-GC64": ("after AP, the last readout", "AP-»GC64«", "before AP"),
    "HP-JK-FC64": ("directly after convolutions", "HP-»JK«-FC64", "3GC64-JK"),
    "JK-SUM": ("directly after convolutions", "»JK«-SUM", "3GC64-JK"),
    "GC64-OWN-SUM": ("TOKEN", "GC64-»OWN«-SUM", "that registers OWN"),
    "GC64-JK8-SUM": ("without a width", "GC64-»JK8«-SUM", "write JK"),
    "GC64-SUM-GC64": ("after SUM", "»GC64«", "before SUM"),
    "GC64-HP-FC64-GC64": ("after FC64", "»GC64«", "before the linear"),
    "GC64-HP-FC64-MP": ("after FC64", "»MP«", "before the linear"),
    "GC64-TP-HP-MP": ("chain", "»HP«-MP after TP", "all HP before TP"),
    "GC64-FC64": ("one row per graph", "without a global readout", "MP, AP or SUM"),
    "GC64-HP-SP-FC64": ("one row per graph", "without a global readout", "MP, AP or SUM"),
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_point_at_the_place(text):
    with pytest.raises(HaarPoolError) as caught:
        Architecture.parse(text)
    expected, got, remedy = WRONG[text]
    assert expected in caught.value.expected
    assert got in caught.value.got
    assert remedy in caught.value.remedy


def test_unknown_tokens_have_an_error_of_their_own():
    with pytest.raises(UnknownTokenError):
        Architecture.parse("GC64-OWN-SUM")


@pytest.mark.parametrize("text", [None, 3, ["GC64", "HP"]])
def test_architecture_of_another_type(text):
    with pytest.raises(HaarPoolError, match="as a string"):
        Architecture.parse(text)


TOO_LARGE = {
    "haarnet:width=65536,depth=64": 351 * 65536**2,
    "haarnet:width=8192": 56 * 8192**2,
    "2GC65536-HP-FC64": 65536**2,
    "9999GC4096-HP-FC4096": 2**30,  # it is not counted to its end
    "GC8-HP-2FC65536": 65536**2,
    "999GC64-JK-MP-AP-FC65536": 2 * 999 * 64 * 65536,
}


@pytest.mark.parametrize("text", TOO_LARGE)
def test_networks_with_too_many_weights(text):
    with pytest.raises(HaarPoolError, match="arch with up to 1,073,741,824 weights") as caught:
        build_model(text, 1, 2)
    assert f" or more in '{text}'" in caught.value.got
    count = int(caught.value.got.split(" ")[0].replace(",", ""))
    assert count == pytest.approx(TOO_LARGE[text], rel=0.06)


@pytest.mark.parametrize("text", ["haarnet", "3GC-HP-FC"])
def test_too_many_weights_by_the_default_width(text):
    arch = parse_architecture(text)
    assert arch.with_width(300).max_width == 300
    with pytest.raises(HaarPoolError, match="weights"):
        build_model(text, 3, 2, width=65536)
    for make in (arch.with_width, lambda width: build_model(text, 3, 2, width=width)):
        with pytest.raises(HaarPoolError, match=r"width in 1\.\.65536"):
            make(10**9)


@pytest.mark.parametrize(
    "text", ["haarnet", "2GC8-HP-DP-STRUCT-SUM-FC8", "LAP-GIN8-S2S", "haarsum"]
)
def test_counting_weights_takes_no_random_numbers(text):
    torch.manual_seed(3)
    once = build_model(text, 3, 2)
    torch.manual_seed(3)
    arch = parse_architecture(text).with_width(64)
    for one, other in zip(once.parameters(), arch.build(3, 2).parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_network_knows_its_widths():
    model = build_model("2GC-HP-GC8-HP-FC", 3, 2, width=16)
    assert str(model.arch) == "2GC16-HP-GC8-HP-FC16"
    assert build_model("haarnet:levels=1", 3, 2, width=16).arch.max_width == 16


def test_the_default_domain_is_that_of_the_architecture():
    assert build_model("GC8-HP-FC8", 3, 2).domain == "haar"
    assert HaarNet(3, 2).domain == build_model("haarnet", 3, 2).domain == "vertex"
    assert [RunConfig(arch=arch).domain for arch in ("GC8-HP-FC8", "haarnet")] == ["haar", "vertex"]
    for arch in ("GC8-HP-FC8", "haarnet"):
        assert {build_model(arch, 3, 2, domain=one).domain for one in get_args(Domain)} == {
            "haar", "vertex",
        }  # fmt: skip
        with pytest.raises(HaarPoolError, match='domain "haar" or "vertex"'):
            build_model(arch, 3, 2, domain="fourier")


def test_sizes_of_haarnet_have_one_home():
    defaults = {p.name: p.default for p in signature(HaarNet).parameters.values()}
    arch = HaarNetArchitecture()
    assert [defaults[n] for n in ("depth", "levels", "coarse_depth")] == [
        arch.depth, arch.levels, arch.coarse_depth,
    ]  # fmt: skip
    assert defaults["width"] == RunConfig.width
