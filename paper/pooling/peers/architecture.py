"""Architectures without chains: a number of layers, or of levels that the network makes itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from haarpool.nn import HaarUNetArchitecture
from haarpool.nn.networks.sized_architecture import SizedArchitecture
from haarpool.nn.strings.architecture import NO_CHAIN


@dataclass(frozen=True)
class PeerArchitecture(SizedArchitecture):
    """A network for nodes that needs no chain."""

    of_nodes: ClassVar[bool] = True

    @property
    def num_levels(self) -> int:
        """Number of levels of the chain: 0, there is none."""
        return 0

    def parts(self) -> list[tuple[str, str]]:
        """Return each part and what it is."""
        return [(self.name, f"a {self.network}"), ("FC", "an output")]


@dataclass(frozen=True)
class LevelsArchitecture(PeerArchitecture):
    """A network with levels.

    Attributes:
        levels: Number of poolings; `None` ("auto") as many as a `HaarUNet` has on these graphs.
    """

    levels: int | None = None
    limits: ClassVar[dict[str, tuple[int, int]]] = {"levels": (1, 64)}
    example: ClassVar[str] = "width=128,levels=8"

    def with_levels(self, largest: int, chain: Mapping[str, Any] = NO_CHAIN) -> Self:
        """Return the architecture for graphs of this size."""
        if self.levels is not None:
            return self
        return replace(self, levels=HaarUNetArchitecture().levels_of(largest, chain))
