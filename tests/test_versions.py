"""Versions that results record."""

import platform

import numpy as np
import scipy
import torch
import torch_geometric

import haarpool
from haarpool._versions import RUN, find_versions


def test_versions_are_those_of_the_modules():
    modules = (haarpool, torch, torch_geometric, np, scipy)
    expected = {"python": platform.python_version()}
    expected |= {module.__name__: module.__version__ for module in modules}
    assert find_versions(*RUN) == expected
    assert find_versions("no-such-package")["no-such-package"] is None
