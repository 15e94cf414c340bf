"""torch-geometric-pool (tgp), whose selections the study compares with."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch_geometric.nn  # before the stand-in: PyG must not take it for torch_scatter  # noqa: F401

from haarpool.errors import MissingExtraError
from paper.pooling.peers import torch_scatter_stand_in

SCATTER = "torch_scatter"
REMEDY = "run pip install --no-deps torch-geometric-pool==1.0.2"


@cache
def import_tgp(module: str) -> Any:
    """Import a module of tgp, with our stand-in for torch_scatter if that is not installed.

    Args:
        module: "select" or "connect".

    Raises:
        MissingExtraError: tgp is not installed.
    """
    stands_in = find_spec(SCATTER) is None
    if stands_in:
        sys.modules[SCATTER] = torch_scatter_stand_in
    try:
        return import_module(f"tgp.{module}")
    except ImportError as error:
        expected = "the optional package 'torch-geometric-pool'"
        raise MissingExtraError(expected, f"{error}", REMEDY) from error
    finally:
        if stands_in:
            del sys.modules[SCATTER]
