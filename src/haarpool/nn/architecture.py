"""Network architectures as strings: `3GC256-HP-FC256` as in the paper, `haarnet`, `haarsum`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, ClassVar, Self, get_args

from haarpool._types import Domain
from haarpool._validate import choice, whole_number
from haarpool.errors import HaarPoolError

CONVOLUTIONS = {
    "GC": "graph convolution (GCN)",
    "GIN": "graph isomorphism network",
    "SAGE": "GraphSAGE",
    "GAT": "graph attention",
    "CHEB": "Chebyshev polynomials",
}
JOINS = {"JK": "jumping knowledge"}
CHAIN_POOLINGS = {"HP": "HaarPooling", "EIG": "EigenPool"}  # the poolings that need a chain
OTHER_POOLINGS = {
    "SP": "SAGPool",
    "TP": "TopK pooling (gPool)",
    "EP": "edge contraction",
    "DP": "DiffPool",
    "STRUCT": "StructPool",
    "LAP": "LaPool",
}
POOLINGS = CHAIN_POOLINGS | OTHER_POOLINGS
READOUTS = {
    "MP": "global maximum",
    "AP": "global mean",
    "SUM": "global sum",
    "S2S": "Set2Set",
    "SORT": "SortPooling",
    "DGCNN": "SortPooling with convolutions",
}
LINEAR = {"FC": "linear layer, named by its input width"}
TOKENS = CONVOLUTIONS | JOINS | POOLINGS | READOUTS | LINEAR
HAARNET, HAARSUM = "haarnet", "haarsum"
DEFAULT_WIDTH = 64  # of layers that name none
MAX_WIDTH = 2**16
MAX_WEIGHTS = 2**30  # with gradients and the state of Adam they take 16 GB


@dataclass(frozen=True)
class Block:
    """One part of an architecture: `2GC128` is `Block("GC", 128, 2)`.

    Attributes:
        token: One of `TOKENS`.
        width: Width of a convolution or linear layer; `None` for the default of `build_model`.
        repeat: Number of equal layers in a row.
    """

    token: str
    width: int | None = None
    repeat: int = 1

    def __post_init__(self) -> None:
        """Check the attributes."""
        choice("token", self.token, tuple(TOKENS))
        object.__setattr__(self, "repeat", whole_number("repeat", self.repeat, 1, MAX_WIDTH))
        if self.width is not None:
            object.__setattr__(self, "width", whole_number("width", self.width, 1, MAX_WIDTH))
        has_sizes = self.width is not None or self.repeat != 1
        if has_sizes and self.token not in CONVOLUTIONS | LINEAR:
            raise HaarPoolError(
                f"{self.token} without a width and without a repeat",
                f"Block({self.token!r}, {self.width!r}, {self.repeat!r})",
                f"use Block({self.token!r})",
            )

    def __str__(self) -> str:
        repeat = "" if self.repeat == 1 else str(self.repeat)
        return f"{repeat}{self.token}{'' if self.width is None else self.width}"


@dataclass(frozen=True)
class Architecture:
    """A network as a value; `build_model` makes a network from it.

    A part is `[repeat]TOKEN[width]`, and parts are joined by hyphens. Convolutions and poolings
    come first, in any order, then a global readout, then linear layers:

        GC, GIN, SAGE, GAT, CHEB      convolutions of that width
        JK                            the outputs of all convolutions directly before it, joined
        HP, EIG                       HaarPooling and EigenPool, one level of the chain each
        SP, TP, EP, DP, STRUCT, LAP   other poolings
        MP, AP, SUM, S2S, SORT, DGCNN global readouts
        FC                            a linear layer; its width is that of its *input*

    Without a global readout the last HP or EIG must leave one node per graph. Further readouts may
    stand anywhere before the linear layers, which read the rows of all readouts.

    Attributes:
        blocks: The parts.

    Example:
        >>> arch = Architecture.parse("3GC256-HP-2FC256-FC128")
        >>> arch.blocks[0], arch.chain_parameters
        (Block(token='GC', width=256, repeat=3), {'num_levels': 1, 'top': 1})
        >>> str(arch), Architecture.parse(str(arch)) == arch
        ('3GC256-HP-2FC256-FC128', True)
    """

    blocks: tuple[Block, ...]
    default_domain: ClassVar[Domain] = "haar"  # as in the paper

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """Return the architecture of a string; an error marks the wrong part as »part«."""
        if not isinstance(text, str):
            raise HaarPoolError(
                "an architecture as a string", type(text).__name__, "pass 'GC64-HP-FC64'"
            )
        blocks, start = [], 0
        for part in text.split("-"):
            marked_text = f"{text[:start]}»{part}«{text[start + len(part) :]}"
            blocks.append(_parse_block(part, marked_text))
            start += len(part) + 1
        return cls(tuple(blocks))

    def __post_init__(self) -> None:
        """Check the blocks and their order."""
        blocks = tuple(self.blocks) if isinstance(self.blocks, Iterable) else (self.blocks,)
        if not all(isinstance(block, Block) for block in blocks):
            raise HaarPoolError(
                "an architecture as blocks", f"{self.blocks!r}", "use Architecture.parse(text)"
            )
        object.__setattr__(self, "blocks", blocks)
        for i, block in enumerate(blocks):
            self._check_order(block, blocks[:i], blocks[i + 1 :], self._mark(i))
        tokens = {block.token for block in blocks}
        if not tokens & {*READOUTS} and (tokens & {*OTHER_POOLINGS} or not self.num_levels):
            raise HaarPoolError(
                "one row per graph before the linear layers",
                f"{str(self)!r} without a global readout",
                "add one, for example MP, AP or SUM, or an HP as the last pooling",
            )
        _check_weights(self)

    @staticmethod
    def _check_order(
        block: Block, previous: tuple[Block, ...], following: tuple[Block, ...], marked_text: str
    ) -> None:
        """Raise an error if a block cannot come between these ones."""

        def last(tokens: Iterable[str]) -> str | None:
            return next((str(b) for b in reversed(previous) if b.token in tokens), None)

        if block.token not in LINEAR and (linear := last(LINEAR)):
            raise HaarPoolError(
                f"only FC after {linear}", marked_text, "move it before the linear layers"
            )
        is_read = any(other.token in READOUTS for other in following)
        if block.token not in LINEAR | READOUTS and not is_read and (readout := last(READOUTS)):
            raise HaarPoolError(
                f"only FC after {readout}, the last readout",
                marked_text,
                f"move it before {readout}, or add a readout after it",
            )
        if block.token in JOINS and not (previous and previous[-1].token in CONVOLUTIONS):
            raise HaarPoolError(
                f"{block.token} directly after convolutions",
                marked_text,
                f"write for example 3GC64-{block.token}",
            )
        if block.token in CHAIN_POOLINGS and (pooling := last(OTHER_POOLINGS)):
            raise HaarPoolError(
                f"{block.token} on the clusters of the chain",
                f"{marked_text} after {pooling}, which makes other clusters",
                f"put all {block.token} before {pooling}",
            )

    @property
    def num_levels(self) -> int:
        """Number of levels of the chain, which is the number of HP and EIG."""
        return sum(block.token in CHAIN_POOLINGS for block in self.blocks)

    @property
    def top(self) -> int | None:
        """1 if the chain must end in one node per graph, `None` if there is a global readout."""
        has_readout = any(block.token in READOUTS for block in self.blocks)
        return None if has_readout else 1

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of the chains, `num_levels` and `top`; {} if no chain is needed."""
        return {"num_levels": self.num_levels, "top": self.top} if self.num_levels else {}

    @property
    def max_width(self) -> int:
        """The largest width that it names, 0 if none."""
        return max((block.width or 0 for block in self.blocks), default=0)

    @property
    def num_weights(self) -> int:
        """Number of weights between layers that name their widths, about."""
        total, before, joined, rows, is_linear = 0, 1, 0, 0, False
        for block in self.blocks:
            width = block.width or 1
            if block.token in READOUTS:
                rows += before
            elif block.token in JOINS:
                before = joined
            elif block.token in CONVOLUTIONS | LINEAR:
                if block.token in LINEAR and not is_linear:
                    before, is_linear = rows or before, True
                    # The first linear layer is named by the width that it reads.
                    total -= before * width if before == width else 0
                total += before * width + (block.repeat - 1) * width**2
                before = width
            is_convolution = block.token in CONVOLUTIONS
            joined = joined + block.repeat * width if is_convolution else 0
        return total

    def with_width(self, width: int) -> Architecture:
        """Return the architecture with a width for the layers that name none."""
        return Architecture(
            tuple(
                replace(block, width=block.width or width)
                if block.token in CONVOLUTIONS | LINEAR
                else block
                for block in self.blocks
            )
        )

    def layers(self) -> Iterator[Block]:
        """Yield the blocks, each as often as it is repeated."""
        for block in self.blocks:
            for _ in range(block.repeat):
                yield Block(block.token, block.width)

    def parts(self) -> list[tuple[str, str]]:
        """Return each part and what it is."""
        return [(str(block), TOKENS[block.token].partition(",")[0]) for block in self.blocks]

    def _mark(self, i: int) -> str:
        return "-".join(f"»{b}«" if k == i else str(b) for k, b in enumerate(self.blocks))

    def __str__(self) -> str:
        return "-".join(map(str, self.blocks))


@dataclass(frozen=True)
class HaarNetArchitecture:
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
    name: ClassVar[str] = HAARNET
    convolution: ClassVar[tuple[str, str]] = ("RES", "residual convolutions")  # for `parts`
    ending: ClassVar[tuple[tuple[str, str], ...]] = (
        ("statistics", "of every layer and level"),
        ("2 FC", "linear layers"),
    )
    default_domain: ClassVar[Domain] = "vertex"

    def __post_init__(self) -> None:
        """Check the sizes."""
        limits = {"depth": (1, 64), "levels": (0, 64), "coarse_depth": (0, 64)}
        if self.width is not None:
            limits["width"] = (1, MAX_WIDTH)
        for name, (low, high) in limits.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), low, high))
        _check_weights(self)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the architecture of a string."""
        names = [one.name for one in fields(cls)]
        sizes: dict[str, int] = {}
        for part in filter(None, text.partition(":")[2].split(",")):
            name, _, number = part.partition("=")
            if name not in names or not re.fullmatch("[0-9]{1,6}", number) or name in sizes:
                raise HaarPoolError(
                    f"{cls.name}:NAME=NUMBER,... with names out of {', '.join(names)}",
                    text.replace(part, f"»{part}«"),
                    f"write for example {cls.name}:width=128,levels=3",
                )
            sizes[name] = int(number)
        return cls(**sizes)

    @property
    def num_levels(self) -> int:
        """Number of levels of the chain."""
        return self.levels

    @property
    def top(self) -> int | None:
        """`None`: the top level may have several nodes."""
        return None

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of the chains, `num_levels` and `top`; {} if no chain is needed."""
        return {"num_levels": self.levels, "top": None} if self.levels else {}

    @property
    def max_width(self) -> int:
        """The width, 0 if it names none."""
        return self.width or 0

    @property
    def num_statistics(self) -> int:
        """Number of rows of that width in the readout."""
        # Three statistics of each layer, the input of a level included, and the energies.
        return 3 * (self.depth + 1) + self.levels * (3 * (self.coarse_depth + 1) + 1)

    @property
    def num_weights(self) -> int:
        """Number of weights of the layers between the first and the last, about."""
        num_convolutions = self.depth + self.levels * self.coarse_depth
        return (2 * num_convolutions + self.num_statistics) * (self.width or 1) ** 2

    def with_width(self, width: int) -> Self:
        """Return the architecture with a width, if it names none."""
        return replace(self, width=self.width or width)

    def parts(self) -> list[tuple[str, str]]:
        """Return each part and what it is."""
        token, meaning = self.convolution
        meaning += f" of width {self.width}" if self.width else ""
        parts = [(f"{self.depth} {token}", meaning)]
        for _ in range(self.levels):
            parts.append(("HP", CHAIN_POOLINGS["HP"]))
            if self.coarse_depth:
                parts.append((f"{self.coarse_depth} {token}", meaning))
        return [*parts, *self.ending]

    def __str__(self) -> str:
        changed = [
            f"{one.name}={value}"
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default
        ]
        return self.name + (":" + ",".join(changed) if changed else "")


@dataclass(frozen=True)
class HaarSumArchitecture(HaarNetArchitecture):
    """The sizes of a `HaarSumNet`; its string is `haarsum`, as for a `HaarNet`.

    Example:
        >>> str(parse_architecture("haarsum:levels=0"))
        'haarsum:levels=0'
    """

    depth: int = 3
    coarse_depth: int = 1
    name: ClassVar[str] = HAARSUM
    convolution: ClassVar[tuple[str, str]] = ("FILTER", "filter convolutions")
    ending: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sum", "over the nodes of every level"),
        ("linear", "fit on sums of x"),
    )

    @property
    def num_weights(self) -> int:
        """Number of weights of the layers between the first and the last, about."""
        num_layers = self.depth + self.levels * self.coarse_depth
        return (5 * num_layers + self.levels + 1) * (self.width or 1) ** 2


AnyArchitecture = Architecture | HaarNetArchitecture


def parse_architecture(text: str) -> AnyArchitecture:
    """Return the architecture of a string."""
    name = text.partition(":")[0].lower() if isinstance(text, str) else None
    for kind in (HaarNetArchitecture, HaarSumArchitecture):
        if name == kind.name:
            return kind.parse(text.lower())
    return Architecture.parse(text)


def choose_domain(arch: AnyArchitecture, domain: Domain | None) -> Domain:
    """Return the domain of the poolings; `None` is the default of the architecture."""
    return arch.default_domain if domain is None else choice("domain", domain, get_args(Domain))


def _check_weights(arch: AnyArchitecture) -> None:
    if arch.num_weights > MAX_WEIGHTS:
        raise HaarPoolError(
            f"a network of up to {MAX_WEIGHTS:,} weights",
            f"about {arch.num_weights:,} in {str(arch)!r}",
            "write smaller widths, or fewer layers",
        )


def _parse_block(part: str, marked_text: str) -> Block:
    match = re.fullmatch(r"([0-9]{,9})([A-Z](?:[A-Z]|2(?=S))*)([0-9]{,9})", part)
    repeat, token, width = match.groups() if match else ("", part, "")
    if token not in TOKENS:
        similar = get_close_matches(token.upper(), TOKENS, n=1, cutoff=0.5)
        hint = f"did you mean {similar[0]}? " if similar else ""
        raise HaarPoolError(
            f"a part [repeat]TOKEN[width] with a token out of {', '.join(TOKENS)}",
            marked_text,
            f"{hint}Write for example 2GC128-HP-FC128",
        )
    if repeat.startswith("0"):
        raise HaarPoolError("repeat >= 1", marked_text, f"write {token} or 2{token}")
    if width.startswith("0"):
        raise HaarPoolError("width >= 1", marked_text, f"write for example {token}64")
    if int(width or 1) > MAX_WIDTH or int(repeat or 1) > MAX_WIDTH:
        example = f"write for example 2{token}64"
        raise HaarPoolError(f"numbers up to {MAX_WIDTH:,}", marked_text, example)
    if token not in CONVOLUTIONS | LINEAR and (width or repeat):
        raise HaarPoolError(
            f"{token} without a width and without a repeat", marked_text, f"write {token}"
        )
    return Block(token, int(width) if width else None, int(repeat or 1))
