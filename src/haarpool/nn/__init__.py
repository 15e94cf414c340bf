"""Layers and models for PyTorch Geometric, over data that `AddHaarChain` made."""

from haarpool.nn.architecture import Architecture
from haarpool.nn.conv import HaarConv
from haarpool.nn.diffpool import DiffPool
from haarpool.nn.eigenpool import AddEigenModes, EigenPooling
from haarpool.nn.lapool import LaPool
from haarpool.nn.model import Network, build_model
from haarpool.nn.output import PoolingOutput
from haarpool.nn.pooling import HaarPooling, HaarUnpooling
from haarpool.nn.readout import HaarReadout
from haarpool.nn.structpool import StructPool

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
