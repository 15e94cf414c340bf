"""Layers and networks for PyTorch Geometric; `haarpool.data.AddHaarChain` makes their data.

Names are imported on first use (PEP 562), so that an architecture is checked without torch.
"""

from typing import TYPE_CHECKING

from haarpool._lazy import lazy_names

if TYPE_CHECKING:
    from haarpool.nn.architecture import Architecture as Architecture
    from haarpool.nn.build import build_model as build_model
    from haarpool.nn.haar_architecture import AnyArchitecture as AnyArchitecture
    from haarpool.nn.haar_architecture import HaarNetArchitecture as HaarNetArchitecture
    from haarpool.nn.haar_architecture import HaarSumArchitecture as HaarSumArchitecture
    from haarpool.nn.haar_architecture import parse_architecture as parse_architecture
    from haarpool.nn.haar_conv import HaarConv as HaarConv
    from haarpool.nn.haar_net import HaarNet as HaarNet
    from haarpool.nn.haar_sum_net import HaarSumNet as HaarSumNet
    from haarpool.nn.network import Network as Network
    from haarpool.nn.peers.diffpool import DiffPool as DiffPool
    from haarpool.nn.peers.eigenpool import AddEigenModes as AddEigenModes
    from haarpool.nn.peers.eigenpool import EigenPooling as EigenPooling
    from haarpool.nn.peers.lapool import LaPool as LaPool
    from haarpool.nn.peers.structpool import StructPool as StructPool
    from haarpool.nn.pooling import HaarPooling as HaarPooling
    from haarpool.nn.pooling import HaarUnpooling as HaarUnpooling
    from haarpool.nn.pooling_output import PoolingOutput as PoolingOutput
    from haarpool.nn.readout import HaarReadout as HaarReadout
    from haarpool.nn.sequential import SequentialNetwork as SequentialNetwork

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
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
        },
    )
