"""Layers and networks for PyTorch Geometric; `haarpool.data.AddHaarChain` makes their data.

Names are imported on first use (PEP 562), so that an architecture is checked without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haarpool.nn.layers.conv import HaarConv
    from haarpool.nn.layers.diffpool import DiffPool
    from haarpool.nn.layers.eigenpool import AddEigenModes, EigenPooling
    from haarpool.nn.layers.lapool import LaPool
    from haarpool.nn.layers.pooling import HaarPooling
    from haarpool.nn.layers.pooling_output import PoolingOutput
    from haarpool.nn.layers.readout import HaarReadout
    from haarpool.nn.layers.structpool import StructPool
    from haarpool.nn.layers.unpooling import HaarUnpooling
    from haarpool.nn.networks.haar_architecture import HaarNetArchitecture, HaarSumArchitecture
    from haarpool.nn.networks.haar_net import HaarNet
    from haarpool.nn.networks.haar_sum_net import HaarSumNet
    from haarpool.nn.networks.network import Network
    from haarpool.nn.networks.sequential import SequentialNetwork
    from haarpool.nn.strings.architecture import (
        AnyArchitecture,
        Architecture,
        parse_architecture,
    )
    from haarpool.nn.strings.build import build_model
    from haarpool.nn.strings.registry import layer

_MODULES = {
    "layers.conv": ["HaarConv"],
    "layers.diffpool": ["DiffPool"],
    "layers.eigenpool": ["AddEigenModes", "EigenPooling"],
    "layers.lapool": ["LaPool"],
    "layers.pooling": ["HaarPooling"],
    "layers.pooling_output": ["PoolingOutput"],
    "layers.readout": ["HaarReadout"],
    "layers.structpool": ["StructPool"],
    "layers.unpooling": ["HaarUnpooling"],
    "networks.haar_architecture": ["HaarNetArchitecture", "HaarSumArchitecture"],
    "networks.haar_net": ["HaarNet"],
    "networks.haar_sum_net": ["HaarSumNet"],
    "networks.network": ["Network"],
    "networks.sequential": ["SequentialNetwork"],
    "strings.architecture": ["AnyArchitecture", "Architecture", "parse_architecture"],
    "strings.build": ["build_model"],
    "strings.registry": ["layer"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AddEigenModes",
    "AnyArchitecture",
    "Architecture",
    "DiffPool",
    "EigenPooling",
    "HaarConv",
    "HaarNet",
    "HaarNetArchitecture",
    "HaarPooling",
    "HaarReadout",
    "HaarSumArchitecture",
    "HaarSumNet",
    "HaarUnpooling",
    "LaPool",
    "Network",
    "PoolingOutput",
    "SequentialNetwork",
    "StructPool",
    "build_model",
    "layer",
    "parse_architecture",
]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'haarpool.nn' has no attribute {name!r}")
        value = getattr(import_module(f"haarpool.nn.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
