"""Architectures of networks as values and strings: `3GC256-HP-FC256` as in the paper, `haarnet`."""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self, get_args

from haarpool._types import Domain
from haarpool._validate import Option, choice, whole_number
from haarpool.errors import HaarPoolError
from haarpool.nn.strings.registry import (
    TOKEN,
    Layer,
    find_layer,
    find_network,
    registered_layers,
)

DEFAULT_WIDTH = 64  # of layers that name none
MAX_WIDTH = 2**16
NO_CHAIN: Mapping[str, Any] = MappingProxyType({})  # all parameters by default


class UnknownTokenError(HaarPoolError):
    """No layer is registered for a token."""


class AnyArchitecture(ABC):
    """What all architectures share: a network as a value, with a string.

    Attributes:
        default_domain: Domain of its poolings by default.
        of_nodes: Whether the network has an output per node, not per graph.
        chain_defaults: Parameters of its chains that a user may change.
    """

    default_domain: ClassVar[Domain]
    of_nodes: ClassVar[bool] = False
    chain_defaults: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Return the architecture of a string; an error marks the wrong part as »part«."""

    @property
    @abstractmethod
    def num_levels(self) -> int:
        """Number of levels of the chain."""

    @property
    def top(self) -> int | None:
        """1 if the chain must end in one node per graph, `None` if it need not."""
        return None

    @property
    @abstractmethod
    def max_width(self) -> int:
        """The largest width that it names, 0 if none."""

    @abstractmethod
    def with_width(self, width: int) -> Self:
        """Return the architecture with a width for the layers that name none."""

    def levels_of(self, largest: int, chain: Mapping[str, Any] = NO_CHAIN) -> int | None:
        """Return the number of levels for graphs of at most `largest` nodes; None if it is given.

        Args:
            largest: Number of nodes of the largest graph.
            chain: Parameters of the chain: a list of `ratio` or `sizes` has an entry per level.
        """
        return None

    def with_levels(self, largest: int, chain: Mapping[str, Any] = NO_CHAIN) -> Self:
        """Return the architecture for graphs of this size, if its weights depend on the levels."""
        return self

    @abstractmethod
    def parts(self) -> list[tuple[str, str]]:
        """Return each part and what it is."""

    @abstractmethod
    def build(self, in_channels: int, out_channels: int, **settings: Any) -> Any:
        """Make the network; `settings` are those of `build_model` except `arch` and `width`."""

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of the chains, `num_levels` and `top`; {} if no chain is needed."""
        return {"num_levels": self.num_levels, "top": self.top} if self.num_levels else {}

    def options(self) -> dict[str, Option]:
        """Return the options that its layers take; of those with the same name the last one."""
        return dict(self._all_options())

    def _all_options(self) -> list[tuple[str, Option]]:
        """Return the options of all layers, each with its own limits."""
        return []

    def check_options(self, options: Any, setting: str = "") -> None:
        """Check the options of its layers: that a layer takes each, and their values.

        Args:
            options: Values by name.
            setting: The setting that they are, for messages; "" if they are arguments.
        """
        prefix = f"{setting}." if setting else ""
        known, is_mapping = self.options(), isinstance(options, Mapping)
        unknown = [name for name in options if name not in known] if is_mapping else [options]
        if unknown:
            expected = f"options of {self}, which has none"
            shown: dict[str, Any] = {"remedy": "leave them out"}
            if known:
                expected = f"options among {', '.join(known)}"
                name = next(iter(known))
                shown = known[name].example(prefix + name)
            got = ", ".join(map(repr, unknown))
            raise HaarPoolError(expected, got, parameter=setting, **shown)
        for name, option in self._all_options():
            if name in options:
                option.check(prefix + name, options[name])


@dataclass(frozen=True)
class Block:
    """One part of an architecture: `2GC128` is `Block("GC", 128, 2)`.

    Attributes:
        token: Token of a registered layer.
        width: Width of a convolution or linear layer; `None` for the default of `build_model`.
        repeat: Number of equal layers in a row.
    """

    token: str
    width: int | None = None
    repeat: int = 1

    def __post_init__(self) -> None:
        """Check the attributes."""
        if find_layer(self.token) is None:
            choice("token", self.token, tuple(registered_layers()))
        object.__setattr__(self, "repeat", whole_number("repeat", self.repeat, 1, MAX_WIDTH))
        if self.width is not None:
            object.__setattr__(self, "width", whole_number("width", self.width, 1, MAX_WIDTH))
        if (self.width is not None or self.repeat != 1) and not self.layer.takes_width:
            raise HaarPoolError(
                f"{self.token} without a width and without a repeat",
                f"Block({self.token!r}, {self.width!r}, {self.repeat!r})",
                f"use Block({self.token!r})",
            )

    @property
    def layer(self) -> Layer:
        """The layer of its token."""
        layer = find_layer(self.token)
        assert layer is not None
        return layer

    def __str__(self) -> str:
        repeat = "" if self.repeat == 1 else str(self.repeat)
        return f"{repeat}{self.token}{'' if self.width is None else self.width}"


@dataclass(frozen=True)
class Architecture(AnyArchitecture):
    """The parts of a network; `build_model` makes the network.

    A part is `[repeat]TOKEN[width]`, and parts are joined by hyphens. The table of tokens is in
    docs/pyg.md; `layer` adds one. Convolutions and poolings come first, in any order, then a global
    readout, then linear layers, whose width is that of their *input*. JK joins the outputs of the
    convolutions directly before it.

    Without a global readout the last pooling on a chain must leave one node per graph. Further
    readouts may stand anywhere before the linear layers, which read the rows of all readouts.

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
    def parse(cls, text: str) -> Self:
        """Return the architecture of a string; an error marks the wrong part as »part«."""
        if not isinstance(text, str):
            raise HaarPoolError(
                "as a string", type(text).__name__, "pass for example {arch}",
                parameter="arch", arch="GC64-HP-FC64",
            )  # fmt: skip
        parts = text.split("-")
        return cls(tuple(_parse_block(part, _mark(parts, i)) for i, part in enumerate(parts)))

    def __post_init__(self) -> None:
        """Check the blocks and their order."""
        blocks = tuple(self.blocks) if isinstance(self.blocks, Iterable) else (self.blocks,)
        if not all(isinstance(block, Block) for block in blocks):
            raise HaarPoolError(
                "an architecture as blocks", f"{self.blocks!r}", "use Architecture.parse(text)"
            )
        object.__setattr__(self, "blocks", blocks)
        for i in range(len(blocks)):
            self._check_order(i)
        layers = [block.layer for block in blocks]
        ends_in_one_node = self.num_levels and all(
            layer.chain for layer in layers if layer.kind == "pooling"
        )
        if self.top and not ends_in_one_node:
            raise _arch_error(
                "with one row per graph before the linear layers",
                f"{str(self)!r} without a global readout",
                "add one, for example MP, AP or SUM, or an HP as the last pooling",
            )

    def _check_order(self, i: int) -> None:
        """Raise an error if a block cannot come between the others."""
        block, layer, marked = self.blocks[i], self.blocks[i].layer, _mark(self.blocks, i)
        previous, following = self.blocks[:i], self.blocks[i + 1 :]
        last = {(b.layer.kind, b.layer.chain): str(b) for b in previous}
        linear, readout = last.get(("linear", False)), last.get(("readout", False))
        pooling = last.get(("pooling", False))
        if layer.kind != "linear" and linear:
            raise _arch_error(
                f"with only FC after {linear}", marked, "move it before the linear layers"
            )
        is_read = any(b.layer.kind == "readout" for b in following)
        if layer.kind not in ("linear", "readout") and readout and not is_read:
            raise _arch_error(
                f"with only FC after {readout}, the last readout",
                marked,
                f"move it before {readout}, or add a readout after it",
            )
        if layer.kind == "join" and not (previous and previous[-1].layer.kind == "convolution"):
            raise _arch_error(
                f"with {block.token} directly after convolutions",
                marked,
                f"write for example 3GC64-{block.token}",
            )
        if layer.chain and pooling:
            raise _arch_error(
                f"with {block.token} on the clusters of the chain",
                f"{marked} after {pooling}, which makes other clusters",
                f"put all {block.token} before {pooling}",
            )

    # Cached, because networks ask in every call.
    @cached_property
    def num_levels(self) -> int:
        """Number of levels of the chain, which is the number of poolings on it."""
        return sum(block.layer.chain for block in self.blocks)

    @cached_property
    def top(self) -> int | None:
        """1 if the chain must end in one node per graph, `None` if there is a global readout."""
        return None if any(block.layer.kind == "readout" for block in self.blocks) else 1

    @property
    def max_width(self) -> int:
        """The largest width that it names, 0 if none."""
        return max((block.width or 0 for block in self.blocks), default=0)

    def with_width(self, width: int) -> Self:
        """Return the architecture with a width for the layers that name none."""
        return replace(
            self,
            blocks=tuple(
                replace(block, width=block.width or width) if block.layer.takes_width else block
                for block in self.blocks
            ),
        )

    def layers(self) -> Iterator[Block]:
        """Yield the blocks, each as often as it is repeated."""
        for block in self.blocks:
            yield from itertools.repeat(Block(block.token, block.width), block.repeat)

    def parts(self) -> list[tuple[str, str]]:
        """Return each part and the class of its layer."""
        return [(str(block), block.layer.name) for block in self.blocks]

    def build(self, in_channels: int, out_channels: int, **settings: Any) -> Any:
        """Make the network, which reads no features of edges."""
        from haarpool.nn.networks.sequential import SequentialNetwork

        settings |= {"edge_channels": 0, "standardize_edges": ()}
        return SequentialNetwork(self, in_channels, out_channels, **settings)

    def _all_options(self) -> list[tuple[str, Option]]:
        return [pair for block in self.blocks for pair in block.layer.user_options.items()]

    def __str__(self) -> str:
        return "-".join(map(str, self.blocks))


def _arch_error(expected: str, got: str, remedy: str) -> HaarPoolError:
    return HaarPoolError(expected, got, remedy, parameter="arch")


def _mark(parts: Iterable[object], i: int) -> str:
    return "-".join(f"»{part}«" if k == i else str(part) for k, part in enumerate(parts))


def _parse_block(part: str, marked: str) -> Block:
    match = re.fullmatch(f"([0-9]{{,9}})({TOKEN})([0-9]{{,9}})", part)
    repeat, token, width = match.groups() if match else ("", part, "")
    layer = find_layer(token)
    if layer is None:
        tokens = registered_layers()
        similar = get_close_matches(token.upper(), tokens, n=1, cutoff=0.5)
        own = f", or import the module, or install the package, that registers {token}"
        mean = f"; did you mean {similar[0]}?" if similar else ""
        raise UnknownTokenError(
            f"with parts [repeat]TOKEN[width], TOKEN out of {', '.join(tokens)}",
            marked,
            f"write for example 2GC128-HP-FC128{own if match else ''}{mean}",
            parameter="arch",
        )
    try:
        return Block(token, _number(width) if width else None, _number(repeat or "1"))
    except HaarPoolError as error:
        remedy = f"write for example 2{token}64" if layer.takes_width else f"write {token}"
        raise _arch_error(f"with {error.expected}", marked, remedy) from None


def _number(digits: str) -> int:
    return 0 if digits.startswith("0") else int(digits)  # 0, which is an error, for 064


def parse_architecture(text: str) -> AnyArchitecture:
    """Return the architecture of a string."""
    named = find_network(text) if isinstance(text, str) else None
    return Architecture.parse(text) if named is None else named.parse(text.lower())


def choose_domain(arch: AnyArchitecture, domain: Domain | None) -> Domain:
    """Return the domain of the poolings; `None` is the default of the architecture."""
    return arch.default_domain if domain is None else choice("domain", domain, get_args(Domain))
