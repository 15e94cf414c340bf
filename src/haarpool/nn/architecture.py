"""Network architectures as strings of parts: `3GC256-HP-FC256` as in the paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar

from haarpool._types import Domain
from haarpool._validate import choice, whole_number
from haarpool.errors import HaarPoolError

CONVOLUTIONS = {
    "GC": "graph convolution (GCN)",
    "DGC": "graph convolution of DGCNN, with tanh",
    "GIN": "graph isomorphism network",
    "GINB": "graph isomorphism network, with batch norm of its output",
    "SAGE": "GraphSAGE",
    "GAT": "graph attention",
    "CHEB": "Chebyshev polynomials",
}
JOINS = {"JK": "jumping knowledge"}
CHAIN_POOLINGS = {"HP": "HaarPooling", "EIG": "EigenPool"}  # the poolings that need a chain
OTHER_POOLINGS = {
    "SP": "SAGPool",
    "GP": "gPool of Graph U-Nets",
    "TP": "TopK pooling of PyG",
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

        GC, DGC, GIN, GINB, SAGE, GAT, CHEB  convolutions of that width
        JK                                   outputs of the convolutions directly before it, joined
        HP, EIG                              HaarPooling and EigenPool, one level of the chain each
        SP, GP, TP, EP, DP, STRUCT, LAP      other poolings
        MP, AP, SUM, S2S, SORT, DGCNN        global readouts
        FC                                   a linear layer; its width is that of its *input*

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
        check_num_weights(self)

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


def check_num_weights(arch: Any) -> None:
    """Raise an error if an architecture has too many weights."""
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
