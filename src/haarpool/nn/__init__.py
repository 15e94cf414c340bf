"""Layers and networks for PyTorch Geometric; `haarpool.data.AddHaarChain` makes their data."""

from haarpool.nn.architecture import Architecture
from haarpool.nn.build import build_model
from haarpool.nn.haar_conv import HaarConv
from haarpool.nn.network import Network
from haarpool.nn.peers.diffpool import DiffPool
from haarpool.nn.peers.eigenpool import AddEigenModes, EigenPooling
from haarpool.nn.peers.lapool import LaPool
from haarpool.nn.peers.structpool import StructPool
from haarpool.nn.pooling import HaarPooling, HaarUnpooling
from haarpool.nn.pooling_output import PoolingOutput
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
