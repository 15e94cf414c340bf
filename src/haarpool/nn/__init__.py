"""Layers and networks for PyTorch Geometric; `haarpool.data.AddHaarChain` makes their data."""

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
