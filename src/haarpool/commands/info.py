"""`haarpool info`: this installation, or a dataset; `haarpool completion`."""

from __future__ import annotations

import json
import os
import platform
from argparse import Namespace
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from haarpool.cache import cache_folder
from haarpool.datasets import known_datasets, read_graphs, summary

_PACKAGES = (
    "haarpool", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "rdkit", "grakel",
)  # fmt: skip


def info(arguments: Namespace) -> None:
    """`haarpool info`."""
    about = _installation(arguments) if arguments.source is None else _dataset(arguments)
    if arguments.json:
        print(json.dumps(about))
        return
    width = max(map(len, about))
    for name, value in about.items():
        lines = _lines(value)
        print(f"{name:{width}}  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':{width}}  {line}")


def _dataset(arguments: Namespace) -> dict[str, Any]:
    names = ("source", "root", "task", "smiles", "strict")
    read = {name: getattr(arguments, name) for name in names}
    targets = [one for one in (arguments.targets or "").split(",") if one]
    graphs = read_graphs(**read, targets=targets)
    return {"dataset": graphs.name} | summary(graphs)


def _installation(arguments: Namespace) -> dict[str, Any]:
    import torch

    devices = [f"cpu, {torch.get_num_threads()} threads"]
    devices += [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "devices": devices,
        "cache": str(cache_folder()),
        "data": os.environ.get("HAARPOOL_DATA") or "HAARPOOL_DATA is not set",
        "datasets": dict(known_datasets(arguments.root)),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}: {one}" for name, one in value.items()] or ["none"]
    if isinstance(value, list | tuple):
        return [str(one) for one in value] or ["none"]
    return [f"{value:.6g}" if isinstance(value, float) else str(value)]


def completion(arguments: Namespace) -> None:
    """`haarpool completion`: a script for the shell."""
    import shtab

    from haarpool.arguments import parser

    print(shtab.complete(parser(), shell=arguments.shell))
