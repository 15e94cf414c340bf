"""The registry: a layer is one file that strings, options, training and the shell find."""

import inspect
import sys
import textwrap
from importlib.metadata import EntryPoint, EntryPoints

import pytest
import torch

from haarpool import HaarPoolError
from haarpool.errors import HaarPoolWarning
from haarpool.nn import build_model, layer, layers, parse_architecture
from haarpool.nn.strings import registry
from haarpool.nn.strings.registry import asks_packages, find_layer, registered_layers
from haarpool.training.config import RunConfig
from helpers.commands import run_main, run_python
from helpers.networks import FEATURES, batch_for
from helpers.own_layers import TOY


@pytest.fixture
def toy(new_layer):
    """A file that was dropped into the folder of layers."""
    new_layer(TOY)


def test_what_is_read_from_the_sources_is_what_the_classes_say():
    code = """
import pkgutil
from importlib import import_module
from haarpool.nn import layers
from haarpool.nn.strings import registry
for module in pkgutil.iter_modules(layers.__path__):
    import_module(f"haarpool.nn.layers.{module.name}")
said = dict(registry._LAYERS)
assert all(layer.loaded for layer in said.values())
registry._LAYERS.clear()
registry._read_folder()
assert not any(layer.loaded for layer in registry._LAYERS.values())
print(len(said), said == registry._LAYERS)
"""
    assert run_python(code).out == f"{len(registered_layers())} True\n"


@pytest.mark.parametrize("token", registered_layers())
def test_every_layer_says_what_it_is(token):
    one = find_layer(token)
    assert one.summary == inspect.getdoc(one.load()).partition("\n")[0].removesuffix(".")
    assert 5 < len(one.summary) <= 100
    assert one.load().__name__ == one.name


def test_a_file_in_the_folder_is_a_layer(toy):
    assert find_layer("TOY").summary == "Keep a share of the nodes of each graph"
    assert parse_architecture("GC8-TOY-SUM").options() == {"share": (0.5, (0, 1))}
    model = build_model("GC8-TOY-GC8-SUM-FC8", FEATURES, 2, share=0.25)
    batch = batch_for(model)
    assert model.stages[1].pool.share == 0.25
    output, auxiliary = model.output_and_auxiliary(batch)
    (model.loss(output, batch.y) + auxiliary).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    with pytest.raises(HaarPoolError, match=r"share in \(0, 1\), got 3"):
        build_model("GC8-TOY-SUM", FEATURES, 2, share=3)


@pytest.mark.usefixtures("workplace")
def test_the_shell_trains_it_and_predicts_with_it(toy):
    command = ("train", "rings", "--arch", "GC8-TOY-SUM-FC8", "--pooling", "share=0.8")
    run_main(*command, "--epochs", 1, "--out", "run", "--quiet")
    run_main("predict", "run", "rings", "--out", "predicted.csv")
    err = run_main(*command[:-1], "share=2", code=2).err
    assert "expected share of --pooling in (0, 1), got 2" in err
    del registry._LAYERS["TOY"]
    layers.__path__.pop()
    for again in (("predict", "run", "rings"), ("report", "run")):
        err = run_main(*again, code=2).err
        assert "all layers of GC8-»TOY«-SUM-FC8, which the run in run needs" in err
        assert "install the package, or import the module, that registers it" in err


@pytest.mark.usefixtures("own_layers")
def test_classes_of_your_own_are_registered_by_the_decorator():
    @layer("OWN", kind="readout")
    class First(torch.nn.Module):
        """The first node of each graph."""

        def __init__(self, in_channels: int) -> None:
            super().__init__()
            self.out_channels = in_channels

        def forward(self, state, data):
            return state.x[data["ptr"][:-1]]

    model = build_model("GC8-SUM-OWN-FC16", FEATURES, 2)
    batch = batch_for(model)
    assert model(batch).shape == (batch.num_graphs, 2)
    assert not model.has_static_shapes
    for token in ("own", "O1"):
        with pytest.raises(HaarPoolError, match=f"a token of capital letters, got '{token}'"):
            layer(token, kind="readout")(First)
    both = r"token 'HP' for one class, got .*pooling:HaarPooling and .*<locals>\.First;"
    with pytest.raises(HaarPoolError, match=both):
        layer("HP", kind="readout")(First)


class _Broken(EntryPoint):
    def load(self):
        raise ImportError("no module of that name")


def _found(*points):
    return lambda group: EntryPoints(points).select(group=group)


@pytest.mark.usefixtures("own_layers")
def test_packages_register_layers_by_entry_points(monkeypatch, tmp_path):
    group = {"group": "haarpool.layers"}
    (tmp_path / "package_of_layers.py").write_text(textwrap.dedent(TOY).replace("TOY", "PACKED"))
    monkeypatch.syspath_prepend(tmp_path)
    good = EntryPoint(name="good", value="package_of_layers", **group)
    broken = _Broken(name="bad", value="no_module", **group)
    monkeypatch.setattr("importlib.metadata.entry_points", _found(broken, good))
    registry.load_entry_points.cache_clear()
    assert not asks_packages("2GC8-S2S")
    assert not asks_packages("haarnet:width=8")
    assert asks_packages("GC8-PACKED-SUM")
    assert build_model("GC8-S2S", FEATURES, 2)
    with pytest.warns(HaarPoolWarning, match=r"entry point bad = no_module .*: no module of that"):
        RunConfig(arch="GC8-PACKED-SUM", pooling={"share": 0.3})
    assert type(build_model("PACKED-SUM", FEATURES, 2).stages[0].pool).__name__ == "ToyPool"
    sys.modules.pop("package_of_layers")


def test_strings_are_checked_without_torch():
    code = (
        "import sys\n"
        "from haarpool.training.config import RunConfig\n"
        "for arch in ('haarsum', 'GC8-DP-GC8-LAP-S2S-FC8', 'GIN8-EIG-SUM'):\n"
        "    RunConfig(arch=arch)\n"
        "print('torch' in sys.modules)"
    )
    assert run_python(code).out == "False\n"
