"""Layers and networks that a test adds, as files of the package or by the decorator."""

import sys
import textwrap

import pytest

from haarpool.nn import layers, networks
from haarpool.nn.strings import registry


@pytest.fixture
def own_layers(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_LAYERS", dict(registry.registered_layers()))
    monkeypatch.setattr(registry, "_NETWORKS", dict(registry._NETWORKS))
    yield
    registry._read_folder.cache_clear()
    registry._network_homes.cache_clear()
    registry.load_entry_points.cache_clear()


def _add_files(package, tmp_path, monkeypatch):
    """Yield a function that adds a file to a folder of the package."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    names = []

    def add(text, name="toy"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        names.append(f"{package.__name__}.{name}")
        registry._read_folder.cache_clear()
        registry._network_homes.cache_clear()

    yield add
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def new_layer(tmp_path_factory, monkeypatch, own_layers):
    """A function that adds a file to the folder of layers."""
    yield from _add_files(layers, tmp_path_factory.mktemp("layers"), monkeypatch)


@pytest.fixture
def new_network(tmp_path_factory, monkeypatch, own_layers):
    """A function that adds a file to the folder of networks."""
    yield from _add_files(networks, tmp_path_factory.mktemp("networks"), monkeypatch)
