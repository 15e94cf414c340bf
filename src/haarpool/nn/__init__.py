"""Layers and models for PyTorch Geometric, over data that `AddHaarChain` made."""

from haarpool.nn.architecture import Architecture
from haarpool.nn.haar_conv import HaarConv
from haarpool.nn.network import Network, build_model
from haarpool.nn.output import PoolingOutput
from haarpool.nn.peers.diffpool import DiffPool
from haarpool.nn.peers.eigenpool import AddEigenModes, EigenPooling
from haarpool.nn.peers.lapool import LaPool
from haarpool.nn.peers.structpool import StructPool
from haarpool.nn.pooling import HaarPooling, HaarUnpooling
from haarpool.nn.readout import HaarReadout

__all__ = [
    "AddEigenModes",
    "Architecture",
    "DiffPool",
    "EigenPooling",
    "HaarConv",
    "HaarPooling",
    "HaarReadout",
    "HaarUnpooling",
    "LaPool",
    "Network",
    "PoolingOutput",
    "StructPool",
    "build_model",
]
