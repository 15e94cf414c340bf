"""Layers and networks for PyTorch Geometric; `haarpool.data.AddHaarChain` makes their data.

Names are imported on first use (PEP 562), so that an architecture is checked without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haarpool.nn.architecture import Architecture
    from haarpool.nn.build import build_model
    from haarpool.nn.haar_architecture import (
        AnyArchitecture,
        HaarNetArchitecture,
        HaarSumArchitecture,
        parse_architecture,
    )
    from haarpool.nn.haar_conv import HaarConv
    from haarpool.nn.haar_net import HaarNet
    from haarpool.nn.haar_sum_net import HaarSumNet
    from haarpool.nn.network import Network
    from haarpool.nn.peers.diffpool import DiffPool
    from haarpool.nn.peers.eigenpool import AddEigenModes, EigenPooling
    from haarpool.nn.peers.lapool import LaPool
    from haarpool.nn.peers.structpool import StructPool
    from haarpool.nn.pooling import HaarPooling, HaarUnpooling
    from haarpool.nn.pooling_output import PoolingOutput
    from haarpool.nn.readout import HaarReadout
    from haarpool.nn.sequential import SequentialNetwork

_MODULES = {
    "architecture": ["Architecture"],
    "build": ["build_model"],
    "haar_architecture": [
        "AnyArchitecture",
        "HaarNetArchitecture",
        "HaarSumArchitecture",
        "parse_architecture",
    ],
    "haar_conv": ["HaarConv"],
    "haar_net": ["HaarNet"],
    "haar_sum_net": ["HaarSumNet"],
    "network": ["Network"],
    "peers.diffpool": ["DiffPool"],
    "peers.eigenpool": ["AddEigenModes", "EigenPooling"],
    "peers.lapool": ["LaPool"],
    "peers.structpool": ["StructPool"],
    "pooling": ["HaarPooling", "HaarUnpooling"],
    "pooling_output": ["PoolingOutput"],
    "readout": ["HaarReadout"],
    "sequential": ["SequentialNetwork"],
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
