"""The architectures `haarnet` and `haarsum`; without torch, so that the shell checks them early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from haarpool.nn.networks.sized_architecture import SizedArchitecture
from haarpool.nn.strings.registry import network


@network("haarnet")
@dataclass(frozen=True)
class HaarNetArchitecture(SizedArchitecture):
    """The sizes of a `HaarNet`; its string is `haarnet`, with sizes that differ behind a colon.

    Attributes:
        width: Width of all layers; `None` for the default of `build_model`.
        depth: Number of convolutions on the input graph.
        levels: Number of poolings; 0 is the same network without pooling.
        coarse_depth: Number of convolutions on each coarse graph.

    Example:
        >>> arch = HaarNetArchitecture.parse("haarnet:width=128,levels=3")
        >>> arch.chain_parameters, str(arch)
        ({'num_levels': 3, 'top': None}, 'haarnet:width=128,levels=3')
    """

    depth: int = 5
    levels: int = 2
    coarse_depth: int = 2
    network: ClassVar[str] = "HaarNet"
    limits: ClassVar[dict[str, tuple[int, int]]] = {
        "depth": (1, 64),
        "levels": (0, 64),
        "coarse_depth": (0, 64),
    }
    convolution: ClassVar[tuple[str, str]] = ("RES", "residual convolutions")  # for `parts`
    ending: ClassVar[tuple[tuple[str, str], ...]] = (
        ("statistics", "of every layer and level"),
        ("2 FC", "linear layers"),
    )

    @property
    def num_levels(self) -> int:
        """Number of levels of the chain."""
        return self.levels

    @property
    def num_statistics(self) -> int:
        """Number of rows of that width in the readout."""
        # Three statistics of each layer, the input of a level included, and the energies.
        return 3 * (self.depth + 1) + self.levels * (3 * (self.coarse_depth + 1) + 1)

    def parts(self) -> list[tuple[str, str]]:
        """Return each part and what it is."""
        token, meaning = self.convolution
        meaning += f" of width {self.width}" if self.width else ""
        parts = [(f"{self.depth} {token}", meaning)]
        for _ in range(self.levels):
            parts.append(("HP", "HaarPooling"))
            if self.coarse_depth:
                parts.append((f"{self.coarse_depth} {token}", meaning))
        return [*parts, *self.ending]


@network("haarsum")
@dataclass(frozen=True)
class HaarSumArchitecture(HaarNetArchitecture):
    """The sizes of a `HaarSumNet`; its string is `haarsum`, as for a `HaarNet`.

    Example:
        >>> from haarpool.nn import parse_architecture
        >>> str(parse_architecture("haarsum:levels=0"))
        'haarsum:levels=0'
    """

    depth: int = 3
    coarse_depth: int = 1
    network: ClassVar[str] = "HaarSumNet"
    convolution: ClassVar[tuple[str, str]] = ("FILTER", "filter convolutions")
    ending: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sum", "over the nodes of every level"),
        ("linear", "fit on sums of x"),
    )

    def build(
        self, in_channels: int, out_channels: int, *, dropout: float = 0.0, **settings: Any
    ) -> Any:
        """Make the network, which has no dropout."""
        return super().build(in_channels, out_channels, **settings)
