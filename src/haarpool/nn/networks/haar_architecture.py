"""The architectures `haarnet` and `haarsum`; without torch, so that the shell checks them early."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from typing import Any, ClassVar, Self

from haarpool._types import Domain
from haarpool._validate import whole_number
from haarpool.errors import HaarPoolError
from haarpool.nn.strings.architecture import MAX_WIDTH, AnyArchitecture
from haarpool.nn.strings.registry import network

# Least and largest sizes.
LIMITS = {"width": (1, MAX_WIDTH), "depth": (1, 64), "levels": (0, 64), "coarse_depth": (0, 64)}


@network("haarnet")
@dataclass(frozen=True)
class HaarNetArchitecture(AnyArchitecture):
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

    width: int | None = None
    depth: int = 5
    levels: int = 2
    coarse_depth: int = 2
    name: ClassVar[str]
    network: ClassVar[str] = "HaarNet"
    convolution: ClassVar[tuple[str, str]] = ("RES", "residual convolutions")  # for `parts`
    ending: ClassVar[tuple[tuple[str, str], ...]] = (
        ("statistics", "of every layer and level"),
        ("2 FC", "linear layers"),
    )
    default_domain: ClassVar[Domain] = "vertex"

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name, limits in LIMITS.items():
            if name != "width" or self.width is not None:
                object.__setattr__(self, name, whole_number(name, getattr(self, name), *limits))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the architecture of a string."""
        sizes: dict[str, int] = {}
        rest = text.removeprefix(cls.name)
        colon, parts = (":", rest[1:].split(",")) if rest.startswith(":") else ("", [rest])
        for i, part in enumerate(parts if rest.strip(":") else []):
            name, _, number = part.partition("=")
            low, high = LIMITS.get(name, (0, 0))
            if name not in LIMITS or not re.fullmatch("[0-9]{1,99}", number):
                expected = f"{cls.name}:NAME=NUMBER,... with names out of {', '.join(LIMITS)}"
            elif name in sizes:
                expected = f"with {name} once"
            elif not low <= int(number) <= high:
                expected = f"with a number of {low} to {high} for {name}"
            else:
                sizes[name] = int(number)
                continue
            marked = ",".join(f"»{one}«" if i == k else one for k, one in enumerate(parts))
            example = f"write for example {cls.name}:width=128,levels=3"
            raise HaarPoolError(expected, cls.name + colon + marked, example, parameter="arch")
        return cls(**sizes)

    @property
    def num_levels(self) -> int:
        """Number of levels of the chain."""
        return self.levels

    @property
    def max_width(self) -> int:
        """The width, 0 if it names none."""
        return self.width or 0

    @property
    def num_statistics(self) -> int:
        """Number of rows of that width in the readout."""
        # Three statistics of each layer, the input of a level included, and the energies.
        return 3 * (self.depth + 1) + self.levels * (3 * (self.coarse_depth + 1) + 1)

    def with_width(self, width: int) -> Self:
        """Return the architecture with a width, if it names none."""
        return replace(self, width=self.width or width)

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

    def build(
        self,
        in_channels: int,
        out_channels: int,
        *,
        tied: object = None,
        options: object = None,
        **settings: Any,
    ) -> Any:
        """Make the network, which shares no weights; its layers have no options."""
        if tied is not None:
            expected, remedy = f"None for {self.name}", "leave it out"
            raise HaarPoolError(expected, f"{tied!r}", remedy, parameter="tied")
        network = getattr(import_module("haarpool.nn"), self.network)
        return network(in_channels, out_channels, **asdict(self), **settings)

    def __str__(self) -> str:
        changed = [
            f"{one.name}={value}"
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default
        ]
        return self.name + (":" + ",".join(changed) if changed else "")


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
