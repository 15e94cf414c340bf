"""Layers and models for PyTorch Geometric, over data that `AddHaarChain` made."""

from haarpool.nn.conv import HaarConv
from haarpool.nn.output import PoolingOutput
from haarpool.nn.pooling import HaarPooling, HaarUnpooling
from haarpool.nn.readout import HaarReadout

__all__ = ["HaarConv", "HaarPooling", "HaarReadout", "HaarUnpooling", "PoolingOutput"]
