"""The architecture `haarunet`; without torch, so that the shell checks it early."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from haarpool.nn.networks.sized_architecture import SizedArchitecture
from haarpool.nn.strings.architecture import NO_CHAIN
from haarpool.nn.strings.registry import network

LAST_NODES = 10  # about as many are left on the last level of automatic levels


@network("haarunet")
@dataclass(frozen=True)
class HaarUNetArchitecture(SizedArchitecture):
    """The sizes of a `HaarUNet`; its string is `haarunet`, with sizes that differ behind a colon.

    Attributes:
        width: Width of all layers; `None` for the default of `build_model`.
        depth: Number of convolutions on each level on the way down, and as many on the way up.
        levels: Number of poolings; 0 is the flat network of `depth` convolutions, `None` ("auto")
            takes as many as leave about ten nodes of the largest graph.
        shared: Whether all coarse levels have the same weights: then one network serves graphs of
            any size.
        virtual_node: Whether each convolution is followed by an exchange with the mean of all
            nodes, as a control: it reaches everywhere, without levels.
        coarse_edges: Whether convolutions on coarse graphs read features of coarse edges, where
            those on the input graph read features of edges.

    Example:
        >>> arch = HaarUNetArchitecture.parse("haarunet:levels=3,shared=true")
        >>> arch.chain_parameters, str(arch)
        ({'num_levels': 3, 'top': None}, 'haarunet:levels=3,shared=true')
        >>> str(HaarUNetArchitecture().with_levels(3000))
        'haarunet:levels=9'
    """

    depth: int = 1
    levels: int | None = None
    shared: bool = False
    virtual_node: bool = False
    coarse_edges: bool = True
    network: ClassVar[str] = "HaarUNet"
    limits: ClassVar[dict[str, tuple[int, int]]] = {"depth": (1, 64), "levels": (0, 64)}
    example: ClassVar[str] = "width=128,levels=8"
    of_nodes: ClassVar[bool] = True
    chain_defaults: ClassVar[dict[str, Any]] = {"method": "matching", "measure": "mass"}

    @property
    def num_levels(self) -> int:
        """Number of levels of the chain, at least."""
        return 1 if self.levels is None else self.levels

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of the chains; without `num_levels` if the graphs decide it."""
        return {"top": None} if self.levels is None else super().chain_parameters

    def levels_of(self, largest: int, chain: Mapping[str, Any] = NO_CHAIN) -> int | None:
        """Return the number of levels for graphs of at most `largest` nodes; None if it is given.

        Args:
            largest: Number of nodes of the largest connected graph.
            chain: Parameters of the chain: a list of `ratio` or `sizes` has an entry per level.
        """
        if self.levels is not None:
            return None
        for values in (chain.get("sizes"), chain.get("ratio")):
            if isinstance(values, Iterable) and not isinstance(values, str):
                return len(tuple(values))
        ratio = chain.get("ratio", 0.5)
        levels = math.ceil(math.log(LAST_NODES / largest) / math.log(ratio))
        # Of two weights of coarse levels, which are shared, both are used.
        return max(2 if self.shared else 1, levels)

    def with_levels(self, largest: int, chain: Mapping[str, Any] = NO_CHAIN) -> Self:
        """Return the architecture for graphs of this size, if its weights depend on the levels."""
        levels = None if self.shared else self.levels_of(largest, chain)
        return self if levels is None else replace(self, levels=levels)

    def parts(self) -> list[tuple[str, str]]:
        """Return each part and what it is."""
        width = f" of width {self.width}" if self.width else ""
        convolutions = f"{self.depth} MEAN", f"convolutions{width}"
        if self.levels == 0:
            return [convolutions, ("FC", "an output per node")]
        number = "each level" if self.levels is None else f"{self.levels} levels"
        return [
            convolutions,
            ("HP", f"HaarPooling, and convolutions, {number} down"),
            ("HU", f"HaarUnpooling, and convolutions, {number} up"),
            ("FC", "an output per node"),
        ]
