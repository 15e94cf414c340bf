"""The list of layers with a token, and of networks with a name.

Strings are checked without torch. So what `@layer(...)` says about a layer of `haarpool.nn.layers`
is read from the source of its file; the file is imported when the layer is made. A file whose
source does not say it, because a value is no literal or the constructor is that of a class of
another file, is imported at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

from haarpool._modules import load_entry_points, warning_instead
from haarpool._validate import Option, choice, make_options
from haarpool.errors import HaarPoolError
from haarpool.nn.strings.sources import find_decorated, sources_with

Kind = Literal["convolution", "join", "pooling", "readout", "linear"]
TOKEN = "[A-Z]+(?:[0-9]+[A-Z]+)*"
LAYERS, NETWORKS = "haarpool.nn.layers", "haarpool.nn.networks"
ENTRY_POINTS = "haarpool.layers"
# Parameters of `build_model`, which no option of a layer can have as a name.
RESERVED = (
    "arch", "in_channels", "out_channels", "edge_channels", "task", "tied", "dropout", "width",
    "standardize", "standardize_edges", "cluster_ratio",
)  # fmt: skip
# Share of the clusters that the next layer with the option `num_clusters` has.
CLUSTER_RATIO = Option(0.5, (0, 1))

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Layer:
    """A layer with its token, as `layer` describes it.

    Attributes:
        token: Its name in architecture strings.
        home: "module:class".
        summary: The first line of its docstring, without the period.
        options: What a user may set.
        kind, chain, static, compiles, exports: See `layer`.
        loaded: Its class, if it is imported.
    """

    token: str
    home: str
    summary: str
    options: Mapping[str, Option]
    kind: Kind
    chain: bool
    static: bool
    compiles: bool
    exports: bool
    loaded: type | None = field(compare=False)

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.home.rpartition(":")[2].rpartition(".")[2]

    @property
    def takes_width(self) -> bool:
        """Whether a width and a repeat may stand beside its token."""
        return self.kind in ("convolution", "linear")

    @property
    def user_options(self) -> dict[str, Option]:
        """The options that users set: `domain` is that of the network."""
        shrinks = {"cluster_ratio": CLUSTER_RATIO} if "num_clusters" in self.options else {}
        return {name: one for name, one in self.options.items() if name != "domain"} | shrinks

    def options_of_next(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of the layers after it: a number of clusters shrinks."""
        if "num_clusters" not in self.options:
            return options
        before = options.get("num_clusters", self.options["num_clusters"].default)
        share = options.get("cluster_ratio", CLUSTER_RATIO.default)
        return (
            options if before is None else options | {"num_clusters": max(1, int(before * share))}
        )

    def load(self) -> Any:
        """Return its class."""
        module, _, name = self.home.partition(":")
        return self.loaded or getattr(import_module(module), name)


_LAYERS: dict[str, Layer] = {}
_NETWORKS: dict[str, Any] = {}


def layer(
    token: str,
    *,
    kind: Kind,
    chain: bool = False,
    static: bool = False,
    compiles: bool | None = None,
    exports: bool | None = None,
    options: Sequence[str] | None = None,
    limits: Mapping[str, tuple[Any, ...]] | None = None,
) -> Callable[[Class], Class]:
    """Return a class decorator that registers a layer for architecture strings.

    The first line of the docstring says what the layer is, and parameters of the constructor with a
    default are its options: `build_model(..., ratio=0.8)`. An option
    `domain` is that of the network, and `num_clusters` shrinks from layer to layer, see
    `build_model`. By kind, the class is made and called as

        convolution  Class(in_channels, out_channels, **options);  x = layer(x, edges), see `Edges`;
                     a ReLU follows, or its attribute `activation`
        pooling      Class(in_channels, **options);  layer(x, edge_index, edge_weight, batch)
                     returns a `PoolingOutput`, or a tuple that starts with these four, of the
                     coarse graphs; further losses are its `details`
        the same with chain=True: Class(level, **options), with the attribute level; layer(x, data)
        readout      Class(in_channels, **options), with the attribute out_channels;
                     rows (B, out_channels) = layer(state, data), see `LayerState`

    A pooling whose output has other columns than its input has an attribute `out_channels`, or a
    method `out_channels(in_channels)`. If the result for a graph may depend on its minibatch, it
    has an attribute `depends_on_batch = True`. One that needs more than a chain has a method
    `transform`, see `EigenPooling`.

    Args:
        token: Capital letters, with digits only between them.
        kind: "convolution", "join", "pooling", "readout" or "linear".
        chain: Whether it is a pooling that uses a level of the chain.
        static: Whether its shapes follow from those of its input and its sums have a fixed order,
            so that a CUDA graph can capture it.
        compiles: Whether it compiles into one graph; `None` is `static`.
        exports: Whether `torch.export` takes it; `None` is `static`.
        options: Names of its options; `None` for all parameters with a default.
        limits: Smallest and largest values of options, `None` for no largest one; those of a real
            number are excluded, unless one is the default. For a text its choices. An option whose
            default is `None` can be `None`, or has the type of its limits.

    Example:
        >>> @layer("NONE", kind="pooling")
        ... class NoPooling:
        ...     '''No pooling.'''
        >>> find_layer("NONE").summary
        'No pooling'
        >>> del _LAYERS["NONE"]
    """
    said: dict[str, Any] = {
        "token": token, "kind": kind, "chain": chain, "static": static, "compiles": compiles,
        "exports": exports, "options": options, "limits": limits,
    }  # fmt: skip

    def add(cls: Class) -> Class:
        parameters = inspect.signature(cls).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        home = f"{cls.__module__}:{cls.__qualname__}"
        _add(home, inspect.getdoc(cls), defaults, cls, **said)
        return cls

    return add


def _add(
    home: str,
    doc: str | None,
    defaults: Mapping[str, Any],
    loaded: type | None,
    *,
    token: str,
    options: Sequence[str] | None,
    limits: Mapping[str, tuple[Any, ...]] | None,
    compiles: bool | None,
    exports: bool | None,
    **said: Any,
) -> None:
    """Register a layer by what its class and its decorator say."""
    if not home.startswith(f"{LAYERS}."):
        _read_folder()
    if not re.fullmatch(TOKEN, token):
        raise HaarPoolError("a token of capital letters", f"{token!r}", "choose another token")
    known = _LAYERS.get(token)
    if known and known.home != home:
        expected = f"token {token!r} for one class"
        raise HaarPoolError(expected, f"{known.home} and {home}", "choose another token")
    choice("kind", said["kind"], get_args(Kind))
    names = tuple(defaults if options is None else options)
    _LAYERS[token] = Layer(
        token=token,
        home=home,
        summary=(doc or "").partition("\n")[0].removesuffix("."),
        options=_options(token, names, defaults, limits or {}),
        compiles=said["static"] if compiles is None else compiles,
        exports=said["static"] if exports is None else exports,
        loaded=loaded,
        **said,
    )


def _options(
    token: str,
    names: Sequence[str],
    defaults: Mapping[str, Any],
    limits: Mapping[str, tuple[Any, ...]],
) -> dict[str, Option]:
    """Return the options of a layer; raise an error if their names or limits are wrong."""
    for unknown in [name for name in names if name not in defaults]:
        expected = f"options of {token} that its constructor has, with a default"
        raise HaarPoolError(expected, f"{unknown!r}", "add the parameter, or leave the option out")
    for reserved in [name for name in names if name in RESERVED]:
        expected = f"options of {token} with names that build_model does not have"
        raise HaarPoolError(expected, f"{reserved!r}", "rename it, or leave it out of options=")
    return make_options(token, {name: defaults[name] for name in names}, limits)


@cache
def _read_folder() -> None:
    """Register the layers of the folder; files that say all in literals are not imported."""
    for module, source in sources_with("layer", LAYERS):
        with warning_instead(module):
            try:
                found = list(find_decorated(source, layer))
            except (TypeError, ValueError):  # no literals
                import_module(module)
                continue
            for cls in found:
                known, home = _LAYERS.get(cls.said["token"]), f"{module}:{cls.name}"
                if not (known and known.home == home):  # else its module is imported
                    with warning_instead(home):
                        _add(home, cls.doc, cls.defaults, None, **cls.said)


def registered_layers() -> Mapping[str, Layer]:
    """Return all layers by their tokens, also those of installed packages, sorted by kind."""
    _read_folder()
    load_entry_points(ENTRY_POINTS)
    kinds = get_args(Kind)
    order = sorted(_LAYERS.values(), key=lambda one: (kinds.index(one.kind), one.token))
    return {one.token: one for one in order}


def find_layer(token: str) -> Layer | None:
    """Return the layer of a token, or `None`."""
    _read_folder()
    # Packages are asked only for tokens that are not known: they import torch.
    return _LAYERS.get(token) or registered_layers().get(token)


def network(name: str) -> Callable[[Class], Class]:
    """Return a class decorator that registers an architecture: `name:size=number,...`.

    Args:
        name: Lower-case letters.
    """
    if not re.fullmatch("[a-z]+", name):
        raise HaarPoolError("a name of lower-case letters", f"{name!r}", "choose another name")

    def add(cls: Class) -> Class:
        cls.name = name  # type: ignore[attr-defined]
        _NETWORKS[name] = cls
        return cls

    return add


@cache
def _network_homes() -> dict[str, str]:
    """Return the module of each network of the folder."""
    homes: dict[str, str] = {}
    for module, source in sources_with("network", NETWORKS):
        with warning_instead(module):
            try:
                homes |= {cls.said["name"]: module for cls in find_decorated(source, network)}
            except (TypeError, ValueError):
                import_module(module)
    return homes


def network_names() -> list[str]:
    """Return the names of the architectures that have one."""
    return sorted({*_network_homes(), *_NETWORKS})


def find_network(text: str) -> Any:
    """Return the architecture class of `name` or `name:size=number,...`, or `None`."""
    match = re.match(r"[a-z]+\b", text.lower())
    name = match[0] if match else ""
    if name not in _NETWORKS:
        if home := _network_homes().get(name):
            import_module(home)
        elif text.islower():  # no tokens, which are capitals
            load_entry_points(ENTRY_POINTS)
    return _NETWORKS.get(name)


def asks_packages(text: str) -> bool:
    """Return whether a string may need layers of installed packages, which import torch."""
    from importlib.metadata import entry_points

    _read_folder()
    named = text.lower().partition(":")[0] in network_names()
    known = named or _LAYERS.keys() >= {*re.findall(TOKEN, text)}
    return not known and bool(entry_points(group=ENTRY_POINTS))
