"""Network architectures as strings, as the paper writes them: `3GC256-HP-2FC256-FC128`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from haarpool.errors import HaarPoolError

CONVOLUTIONS = {
    "GC": "graph convolution (GCN)",
    "GIN": "graph isomorphism network",
    "SAGE": "GraphSAGE",
    "GAT": "graph attention",
    "CHEB": "Chebyshev polynomials",
}
CHAIN_POOLINGS = {"HP": "HaarPooling", "EIG": "EigenPool"}  # they need a chain
POOLINGS = CHAIN_POOLINGS | {
    "SP": "SAGPool",
    "TP": "TopK pooling (gPool)",
    "EP": "edge contraction",
    "DP": "DiffPool",
    "STRUCT": "StructPool",
    "LAP": "LaPool",
}
READOUTS = {
    "MP": "global maximum",
    "AP": "global mean",
    "SUM": "global sum",
    "S2S": "Set2Set",
    "SORT": "SortPooling",
}
LINEAR = {"FC": "linear layer, named by its input width"}
MAX_WIDTH = 2**16  # beyond, a layer has billions of weights
TOKENS = CONVOLUTIONS | POOLINGS | READOUTS | LINEAR


@dataclass(frozen=True)
class Block:
    """One part of an architecture: `2GC128` is Block("GC", 128, 2)."""

    token: str
    width: int | None = None
    repeat: int = 1

    def __post_init__(self) -> None:
        """Check it, whichever way it is made."""
        counts = (self.repeat, 1 if self.width is None else self.width)
        plain = self.token in POOLINGS | READOUTS
        if (
            self.token not in TOKENS
            or not all(type(count) is int and count >= 1 for count in counts)
            or (plain and (self.width is not None or self.repeat != 1))
        ):
            raise HaarPoolError(
                "a known token, width and repeat >= 1, for convolutions and FC only",
                f"Block({self.token!r}, {self.width!r}, {self.repeat!r})",
                "use Architecture.parse(text)",
            )

    def __str__(self) -> str:
        repeat = "" if self.repeat == 1 else str(self.repeat)
        return f"{repeat}{self.token}{'' if self.width is None else self.width}"


@dataclass(frozen=True)
class Architecture:
    """A network as a value: parse it, print it, compare it; `build_model` makes a network of it.

    A part is `[repeat]TOKEN[width]`, and parts are joined by hyphens. First come convolutions and
    poolings in any order, then at most one global readout, then linear layers:

        GC, GIN, SAGE, GAT, CHEB      convolutions of that width
        HP, EIG                       HaarPooling and EigenPool, one level of the chain each
        SP, TP, EP, DP, STRUCT, LAP   other poolings
        MP, AP, SUM, S2S, SORT        global readouts
        FC                            a linear layer; its width is that of its *input*

    Without a global readout the last HP or EIG has to leave one node per graph.

    >>> arch = Architecture.parse("3GC256-HP-2FC256-FC128")
    >>> arch.blocks[0], arch.num_levels, arch.top
    (Block(token='GC', width=256, repeat=3), 1, 1)
    >>> str(arch), Architecture.parse(str(arch)) == arch
    ('3GC256-HP-2FC256-FC128', True)
    """

    blocks: tuple[Block, ...]

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """The architecture that a string describes, or an error that points at the place."""
        if not isinstance(text, str):
            raise HaarPoolError(
                "an architecture as a string", type(text).__name__, "pass 'GC64-HP-FC64'"
            )
        blocks, start = [], 0
        for part in text.split("-"):
            marked = f"{text[:start]}»{part}«{text[start + len(part) :]}"
            blocks.append(_parse_block(part, marked))
            start += len(part) + 1
        return cls(tuple(blocks))

    def __post_init__(self) -> None:
        """Check the parts and their order."""
        blocks = tuple(self.blocks) if isinstance(self.blocks, Iterable) else (self.blocks,)
        if not all(isinstance(block, Block) for block in blocks):
            raise HaarPoolError(
                "an architecture as blocks", f"{self.blocks!r}", "use Architecture.parse(text)"
            )
        object.__setattr__(self, "blocks", blocks)
        readout = linear = other = None
        for i, block in enumerate(self.blocks):
            place = self._marked(i)
            if linear is not None and block.token not in LINEAR:
                raise HaarPoolError(
                    f"nothing but FC behind {linear}", place, "move it before the linear layers"
                )
            if readout is not None and block.token not in LINEAR:
                raise HaarPoolError(
                    f"nothing but FC behind {readout}, which leaves one row per graph",
                    place,
                    f"move it before {readout}, or leave {readout} out",
                )
            if other is not None and block.token in CHAIN_POOLINGS:
                raise HaarPoolError(
                    f"{block.token} on the clusters of the chain",
                    f"{place} behind {other}, which makes clusters of its own",
                    f"put all {block.token} before {other}",
                )
            if block.token in READOUTS:
                readout = str(block)
            elif block.token in LINEAR:
                linear = str(block)
            elif block.token in POOLINGS and block.token not in CHAIN_POOLINGS:
                other = str(block)
        if readout is None and (other is not None or not self.num_levels):
            raise HaarPoolError(
                "one row per graph before the linear layers",
                f"{str(self)!r} without a global readout",
                "add one, for example MP, AP or SUM, or an HP as the last pooling",
            )

    @property
    def num_levels(self) -> int:
        """How many levels of a chain it goes up."""
        return sum(block.token in CHAIN_POOLINGS for block in self.blocks)

    @property
    def top(self) -> int | None:
        """1 if its chain must end in one node per graph, None if a readout takes what is left."""
        readout = any(block.token in READOUTS for block in self.blocks)
        return None if readout else 1

    def layers(self) -> Iterator[Block]:
        """The blocks with repetitions written out."""
        for block in self.blocks:
            for _ in range(block.repeat):
                yield Block(block.token, block.width)

    def _marked(self, i: int) -> str:
        return "-".join(f"»{b}«" if k == i else str(b) for k, b in enumerate(self.blocks))

    def __str__(self) -> str:
        return "-".join(map(str, self.blocks))


def _parse_block(part: str, marked: str) -> Block:
    found = re.fullmatch(r"([0-9]*)([A-Z](?:[A-Z]|2(?=S))*)([0-9]*)", part)
    repeat, token, width = found.groups() if found else ("", part, "")
    if token not in TOKENS:
        close = get_close_matches(token.upper(), TOKENS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise HaarPoolError(
            f"a part [repeat]TOKEN[width] with a token out of {', '.join(TOKENS)}",
            marked,
            f"{hint}Write for example 2GC128-HP-FC128",
        )
    if repeat.startswith("0"):
        raise HaarPoolError("a repeat of 1 or more", marked, f"write {token} or 2{token}")
    if width.startswith("0"):
        raise HaarPoolError("a width of 1 or more", marked, f"write for example {token}64")
    if int(width or 1) > MAX_WIDTH or int(repeat or 1) > MAX_WIDTH:
        raise HaarPoolError(f"numbers up to {MAX_WIDTH:,}", marked, f"write for example 2{token}64")
    if token in POOLINGS | READOUTS and (width or repeat):
        raise HaarPoolError(
            f"{token} without a width and without a repeat", marked, f"write {token}"
        )
    return Block(token, int(width) if width else None, int(repeat or 1))
