"""Layers of your own: how their files may look, what is wrong in them, their options."""

import inspect

import pytest
import torch

from haarpool import HaarPoolError
from haarpool.errors import HaarPoolWarning
from haarpool.nn import build_model, layer, parse_architecture
from haarpool.nn.strings import registry
from haarpool.nn.strings.registry import find_layer, registered_layers
from haarpool.training.config import RunConfig
from helpers.commands import run_main
from helpers.networks import FEATURES
from helpers.own_layers import TOY


def variant(*pairs):
    text = TOY
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


REGISTRY = "haarpool.nn.strings.registry"
DECORATOR = '@layer("TOY", kind="pooling", limits={"share": (0, 1)})'
CLASS = "class ToyPool(torch.nn.Module):"
SUMMARY = '"""Keep a share of the nodes of each graph."""'
SPELLINGS = {
    "limits by a name": (
        (DECORATOR, f"LIMIT = (0, 1)\n\n\n    {DECORATOR.replace('(0, 1)', 'LIMIT')}"),
    ),
    "a default by a name": (
        (DECORATOR, f"SHARE = 0.5\n\n\n    {DECORATOR}"), ("float = 0.5", "float = SHARE"),
    ),
    "another import": (
        (f"from {REGISTRY} import layer", "from haarpool.nn.strings import registry"),
        ("@layer(", "@registry.layer("),
    ),
    "another name": (("import layer", "import layer as register"), ("@layer(", "@register(")),
    "a public import": (
        ("haarpool.nn.layers.pooling_output", "haarpool.nn"), (REGISTRY, "haarpool.nn"),
    ),
    "a keyword": (('"TOY", kind', 'token="TOY", kind'),),
    "a constructor of a class of the file": (
        (DECORATOR, ""),
        (CLASS, "class Base(torch.nn.Module):"),
        (
            "        def forward",
            f"    {DECORATOR}\n    class ToyPool(Base):\n        {SUMMARY}\n\n        def forward",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SPELLINGS)
def test_ways_to_write_a_layer(case, new_layer):
    new_layer(variant(*SPELLINGS[case]))
    assert find_layer("TOY").summary == "Keep a share of the nodes of each graph"
    assert parse_architecture("TOY-SUM").options() == {"share": (0.5, (0, 1))}
    assert build_model("TOY-SUM", FEATURES, 2, share=0.3).stages[0].pool.share == 0.3


def test_a_constructor_of_a_class_of_another_file(new_layer):
    new_layer(TOY.replace("@layer", "# @layer"), "base")
    new_layer(
        """
        from haarpool.nn.layers.base import ToyPool
        from haarpool.nn.strings.registry import layer


        @layer("CHILD", kind="pooling", limits={"share": (0, 1)})
        class Child(ToyPool):
            \"\"\"Keep a share of the nodes.\"\"\"
        """
    )
    assert parse_architecture("CHILD-SUM").options() == {"share": (0.5, (0, 1))}


BROKEN = {
    "no Python": (("    import torch\n", "    import torch torch\n"), "SyntaxError"),
    "no such name": (("(0, 1)", "LIMIT"), "NameError"),
    "no such kind": (('"pooling"', '"pool"'), "kind \"convolution\", .* got 'pool'"),
    "no such argument": (('"pooling"', '"pooling", exprots=True'), "exprots"),
    "limits of nothing": (('{"share"', '{"nope"'), "limits of options of TOY: share, got 'nope'"),
    "options that are no parameters": (
        ('"pooling"', '"pooling", options=("size", "share")'), "options of TOY .* got 'size'",
    ),
    "a default outside of its limits": (
        ("float = 0.5", "float = 5.0"), r"with the default share=5.0 inside, got \(0, 1\)",
    ),
    "limits of another type": (("(0, 1)", '("low", "high")'), r"inside, got \('low', 'high'\)"),
    "three limits": (("(0, 1)", "(0, 1, 2)"), r"inside, got \(0, 1, 2\)"),
    "a parameter of build_model": (
        ("share", "dropout"), "names that build_model does not have, got 'dropout'; rename it",
    ),
    "a token that is taken": (
        ("TOY", "SP"), r"token 'SP' for one class, got .*:SAGPool and .*:ToyPool",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_breaks_no_other_layer(case, new_layer):
    pair, words = BROKEN[case]
    new_layer(variant(pair))
    message = rf"haarpool\.nn\.layers\.toy.* was not loaded: .*{words}"
    with pytest.warns(HaarPoolWarning, match=message):
        assert find_layer("SP").name == "SAGPool"
    assert find_layer("TOY") is None
    assert len(registered_layers()) > 20


# ---------------------------------------------------------------------- options


def test_names_of_parameters_of_build_model_are_no_options():
    parameters = {*inspect.signature(build_model).parameters} - {"options", "domain"}
    assert parameters | {"cluster_ratio"} == {*registry.RESERVED}


def own_pooling(token, limits=None, **defaults):
    """Register a pooling with these options, which keeps the graphs."""

    class Own(torch.nn.Module):
        """A pooling."""

        def __init__(self, in_channels, **options):
            super().__init__()
            self.options = options

        def forward(self, x, edge_index, edge_weight, batch):
            return x, edge_index, edge_weight, batch

    Own.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in defaults.items()
        ]
    )
    Own.__qualname__ = token
    layer(token, kind="pooling", limits=limits)(Own)


@pytest.mark.usefixtures("own_layers")
@pytest.mark.parametrize(
    ("default", "limits", "good", "bad", "words"),
    [
        ("max", None, "min", 3, 'a as text, got 3; pass for example a="max"'),
        ("max", ("max", "min"), "min", "sum", 'a "max" or "min", got \'sum\''),
        (None, (0, 9), 4, 10, r"a in 0\.\.9, got 10; pass for example a=None"),
        (None, (0, 9), None, 0.5, r"a in 0\.\.9, got 0\.5"),
        (None, (0.0, 1.0), 0.5, 2, r"a in \(0, 1\), got 2"),
        (3, (1, None), 1, 0, "a >= 1, got 0"),
        (0, None, -1, 0.5, "a as a whole number, got 0.5"),
        (0.0, (0, 1), 0.0, 1.0, r"a in \[0, 1\), got 1.0"),
        (2.0, (0, None), 1e9, 0, r"a in \(0, inf\), got 0"),
        (None, ("max", "min"), "min", 3, 'a "max" or "min", got 3'),
        (True, None, False, 2, "a True, False, 0 or 1, got 2"),
    ],
)
def test_values_of_options(default, limits, good, bad, words):
    own_pooling("OWN", limits and {"a": limits}, a=default)
    assert build_model("OWN-SUM", FEATURES, 2, a=good).stages[0].pool.options == {"a": good}
    assert build_model("OWN-SUM", FEATURES, 2).stages[0].pool.options == {}
    with pytest.raises(HaarPoolError, match=words):
        build_model("OWN-SUM", FEATURES, 2, a=bad)
    with pytest.raises(HaarPoolError, match="a of pooling"):
        RunConfig(arch="OWN-SUM", pooling={"a": bad})


@pytest.mark.usefixtures("own_layers")
@pytest.mark.parametrize("name", ["dropout", "width", "task", "tied", "cluster_ratio"])
def test_an_option_with_the_name_of_a_setting(name):
    with pytest.raises(HaarPoolError, match=f"names that build_model does not have, got '{name}'"):
        own_pooling("OWN", **{name: 0.2})


@pytest.mark.usefixtures("own_layers")
def test_each_layer_checks_an_option_by_its_own_limits():
    own_pooling("ONE", {"size": (1, 9)}, size=3)
    own_pooling("TWO", {"size": (5, 99)}, size=7)
    own_pooling("REAL", {"size": (0, 9)}, size=2.0)
    for arch in ("ONE-TWO-SUM", "TWO-ONE-SUM"):
        pools = [stage.pool for stage in build_model(arch, FEATURES, 2, size=6).stages[:2]]
        assert [pool.options["size"] for pool in pools] == [6, 6]
        for size, limits in ((3, r"5\.\.99"), (30, r"1\.\.9")):
            with pytest.raises(HaarPoolError, match=f"size of pooling in {limits}, got {size}"):
                RunConfig(arch=arch, pooling={"size": size})
    pools = [stage.pool for stage in build_model("ONE-REAL-SUM", FEATURES, 2, size=6).stages[:2]]
    assert [type(pool.options["size"]) for pool in pools] == [int, float]


@pytest.mark.usefixtures("own_layers")
def test_a_number_of_clusters_may_be_none():
    own_pooling("OWN", num_clusters=None)
    assert build_model("OWN-OWN-SUM", FEATURES, 2).stages[1].pool.options == {}


def test_errors_of_strings_name_their_parameter():
    for arch in ("XP-SUM", "GC64-HP3", "GC8-MP-HP-FC8", "haarnet:size=3", None):
        with pytest.raises(HaarPoolError) as caught:
            RunConfig(arch=arch)
        assert caught.value.parameter == "arch"
        assert str(caught.value).startswith("expected arch ")
    for settings in ({"tied": (0,)}, {"tied": (0, 0)}):
        with pytest.raises(HaarPoolError, match="expected tied "):
            build_model("GC8-GC4-SUM", FEATURES, 2, **settings)


@pytest.mark.usefixtures("workplace")
def test_errors_of_strings_name_their_flag():
    err = run_main("train", "rings", "--arch", "SP-GCN8-SUM", code=2).err
    assert err.startswith("haarpool: expected --arch with parts [repeat]TOKEN[width], TOKEN out")
    assert "got SP-»GCN8«-SUM; write for example 2GC128-HP-FC128" in err
