"""The names of the networks: they are registered when the study asks, not by an import."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from haarpool import register
from haarpool._modules import module_names
from haarpool.nn.strings.registry import network

Class = TypeVar("Class", bound=type)

PEERS: dict[str, Any] = {}  # architectures by name


def peer(name: str) -> Callable[[Class], Class]:
    """Return a decorator of an architecture that `register_peers` registers.

    Args:
        name: Lower-case letters.
    """

    def add(cls: Class) -> Class:
        PEERS[name] = cls
        return cls

    return add


def variant(name: str, **changes: Any) -> Callable[[Class], Class]:
    """Return a decorator of a network: its architecture is that of its base under another name.

    Args:
        name: Lower-case letters.
        **changes: Other attributes of the architecture.
    """

    def add(cls: Any) -> Any:
        said = {
            "__doc__": f"The sizes of a `{cls.__name__}`.", "__module__": cls.__module__,
            "__qualname__": f"{cls.__qualname__}.architecture",  # where pickle finds it
            "network": cls.__name__, "home": cls.__module__,
        }  # fmt: skip
        made = type(f"{cls.__name__}Architecture", (cls.architecture,), said | changes)
        cls.architecture = peer(name)(made)
        return cls

    return add


@cache
def register_peers() -> None:
    """Register the networks and the clustering `kmis`, for the rest of the process."""
    from importlib import import_module

    for module in module_names("paper.pooling.peers"):
        import_module(f"paper.pooling.peers.{module}")
    for name, architecture in PEERS.items():
        network(name)(architecture)
    from paper.pooling.peers.kmis import kmis

    register("kmis", version="tgp 1.0.2", limits={"hops": (1, 8)})(kmis)
