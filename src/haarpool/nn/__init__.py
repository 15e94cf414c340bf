"""Layers and networks for PyTorch Geometric; `haarpool.data.AddHaarChain` makes their data.

Names are imported on first use (PEP 562), so that an architecture is checked without torch.
"""

from typing import TYPE_CHECKING

from haarpool._lazy import lazy_names

if TYPE_CHECKING:
    from haarpool.nn.layers.conv import HaarConv as HaarConv
    from haarpool.nn.layers.diffpool import DiffPool as DiffPool
    from haarpool.nn.layers.eigenpool import AddEigenModes as AddEigenModes
    from haarpool.nn.layers.eigenpool import EigenPooling as EigenPooling
    from haarpool.nn.layers.lapool import LaPool as LaPool
    from haarpool.nn.layers.pooling import HaarPooling as HaarPooling
    from haarpool.nn.layers.pooling_output import PoolingOutput as PoolingOutput
    from haarpool.nn.layers.readout import HaarReadout as HaarReadout
    from haarpool.nn.layers.structpool import StructPool as StructPool
    from haarpool.nn.layers.unpooling import HaarUnpooling as HaarUnpooling
    from haarpool.nn.networks.haar_architecture import HaarNetArchitecture as HaarNetArchitecture
    from haarpool.nn.networks.haar_architecture import HaarSumArchitecture as HaarSumArchitecture
    from haarpool.nn.networks.haar_net import HaarNet as HaarNet
    from haarpool.nn.networks.haar_sum_net import HaarSumNet as HaarSumNet
    from haarpool.nn.networks.haar_unet import HaarUNet as HaarUNet
    from haarpool.nn.networks.network import Network as Network
    from haarpool.nn.networks.sequential import SequentialNetwork as SequentialNetwork
    from haarpool.nn.networks.unet_architecture import HaarUNetArchitecture as HaarUNetArchitecture
    from haarpool.nn.strings.architecture import AnyArchitecture as AnyArchitecture
    from haarpool.nn.strings.architecture import Architecture as Architecture
    from haarpool.nn.strings.architecture import parse_architecture as parse_architecture
    from haarpool.nn.strings.build import build_model as build_model
    from haarpool.nn.strings.registry import layer as layer

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
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
            "networks.haar_unet": ["HaarUNet"],
            "networks.network": ["Network"],
            "networks.sequential": ["SequentialNetwork"],
            "networks.unet_architecture": ["HaarUNetArchitecture"],
            "strings.architecture": ["AnyArchitecture", "Architecture", "parse_architecture"],
            "strings.build": ["build_model"],
            "strings.registry": ["layer"],
        },
    )
