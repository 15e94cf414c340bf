"""The list of layers with a token, and of networks with a name.

Strings are checked without torch. So what `@layer(...)` says about a layer of `haarpool.nn.layers`
is read from the source of its file; the file is imported when the layer is made.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from haarpool._validate import choice, real_number, whole_number
from haarpool.errors import HaarPoolError, HaarPoolWarning

Kind = Literal["convolution", "join", "pooling", "readout", "linear"]
TOKEN = "[A-Z]+(?:[0-9]+[A-Z]+)*"
LAYERS, NETWORKS = "haarpool.nn.layers", "haarpool.nn.networks"
ENTRY_POINTS = "haarpool.layers"

Class = TypeVar("Class", bound=type)


class Option(NamedTuple):
    """An option of a layer: its default, whose type its values have, and their limits.

    Attributes:
        default: Value by default.
        limits: Smallest and largest value; those of a float are excluded.
    """

    default: Any
    limits: tuple[()] | tuple[float, float] = ()

    def check(self, name: str, value: Any, setting: str = "") -> Any:
        """Check a value; it is an argument, or part of a setting, which the message names."""
        shown = f"{setting}.{name}" if setting else name
        if isinstance(self.default, bool):
            return choice(shown, value, (True, False))
        if isinstance(self.default, int):
            return whole_number(shown, value, *map(int, self.limits))
        if isinstance(self.default, float):
            example = self.example(name, setting)
            return real_number(shown, value, *self.limits, includes_minimum=False, **example)
        return value

    def example(self, name: str, setting: str = "") -> dict[str, Any]:
        """Return the remedy of an error, and the value that it mentions."""
        value = 0.8 if isinstance(self.default, float) else self.default
        shown, value = (setting, {name: value}) if setting else (name, value)
        return {"remedy": f"pass for example {{{shown}}}", shown: value}


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
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Callable[[Class], Class]:
    """Return a class decorator that registers a layer for architecture strings.

    The first line of the docstring says what the layer is, and parameters of the constructor with a
    default are its options: `build_model(..., ratio=0.8)`, `--pooling ratio=0.8`. By kind, the
    class is made and called as

        convolution  Class(in_channels, out_channels, **options);  x = layer(x, edges)
        pooling      Class(in_channels, **options);  layer(x, edge_index, edge_weight, batch)
                     returns a `PoolingOutput`, or a tuple that starts with these four, of the
                     coarse graphs; further losses are its `details`
        the same with chain=True: Class(level, **options), with the attribute level; layer(x, data)
        readout      Class(in_channels, **options), with the attribute out_channels;
                     rows (B, out_channels) = layer(state, data), see `LayerState`

    A pooling whose output has other columns than its input has an attribute `out_channels`, or a
    method `out_channels(in_channels)`. One that needs more than a chain has a method `transform`,
    see `EigenPooling`.

    Args:
        token: Capital letters, with digits only between them.
        kind: "convolution", "join", "pooling", "readout" or "linear".
        chain: Whether it is a pooling that uses a level of the chain.
        static: Whether its shapes follow from those of its input and its sums have a fixed order,
            so that a CUDA graph can capture it.
        compiles: Whether it compiles into one graph; `None` is `static`.
        exports: Whether `torch.export` takes it; `None` is `static`.
        options: Names of its options; `None` for all parameters with a default.
        limits: Smallest and largest values of options; those of a float are excluded.

    Example:
        >>> @layer("NONE", kind="pooling")
        ... class NoPooling:
        ...     '''No pooling.'''
        >>> find_layer("NONE").summary
        'No pooling'
        >>> del _LAYERS["NONE"]
    """
    said = {
        "kind": kind, "chain": chain, "static": static, "compiles": compiles, "exports": exports,
        "options": options, "limits": limits,
    }  # fmt: skip

    def add(cls: Class) -> Class:
        parameters = inspect.signature(cls).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        home = f"{cls.__module__}:{cls.__qualname__}"
        _add(token, home, inspect.getdoc(cls), defaults, said, cls)
        return cls

    return add


def _add(
    token: str,
    home: str,
    doc: str | None,
    defaults: Mapping[str, Any],
    said: Mapping[str, Any],
    loaded: type | None = None,
) -> None:
    """Register a layer by what its class and its decorator say."""
    if not home.startswith(f"{LAYERS}."):
        _read_folder()
    known = _LAYERS.get(token)
    if not re.fullmatch(TOKEN, token) or (known and known.home != home):
        raise HaarPoolError(
            "an unused token of capital letters",
            f"{token!r}" + (f" of {known.name}" if known else ""),
            "choose another token",
        )
    names, limits = said.get("options"), said.get("limits") or {}
    static = said.get("static", False)
    compiles, exports = (said.get(key) for key in ("compiles", "exports"))
    _LAYERS[token] = Layer(
        token=token,
        home=home,
        summary=(doc or "").partition("\n")[0].removesuffix("."),
        options={
            name: Option(defaults[name], tuple(limits.get(name, ())))
            for name in (defaults if names is None else names)
        },
        kind=said["kind"],
        chain=said.get("chain", False),
        static=static,
        compiles=static if compiles is None else compiles,
        exports=static if exports is None else exports,
        loaded=loaded,
    )


def _declared(package: str, decorator: str) -> Iterator[tuple[str, ast.ClassDef, ast.Call]]:
    """Yield module, class and decorator of the decorated classes of a folder, from the sources."""
    for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        spec = module.module_finder.find_spec(module.name, None)
        source = spec.loader.get_source(module.name)  # type: ignore[union-attr]
        if source is None:  # an installation without sources
            import_module(module.name)
        if f"@{decorator}(" not in (source or ""):
            continue
        for node in ast.parse(source).body:
            for call in getattr(node, "decorator_list", ()):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator:
                    assert isinstance(node, ast.ClassDef)
                    yield module.name, node, call


@cache
def _read_folder() -> None:
    """Register the layers of the folder, without importing them."""
    for module, node, call in _declared(LAYERS, "layer"):
        token, home = ast.literal_eval(call.args[0]), f"{module}:{node.name}"
        if token in _LAYERS and _LAYERS[token].home == home:  # its module is imported
            continue
        defaults: dict[str, Any] = {}
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                first = len(one.args.args) - len(one.args.defaults)
                parameters = [*one.args.args[first:], *one.args.kwonlyargs]
                values = [*one.args.defaults, *one.args.kw_defaults]
                pairs = zip(parameters, values, strict=True)
                defaults = {p.arg: ast.literal_eval(v) for p, v in pairs if v is not None}
        said = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        _add(token, home, ast.get_docstring(node), defaults, said)


@cache
def _load_entry_points() -> None:
    """Import the modules that installed packages name in the group `haarpool.layers`."""
    from importlib.metadata import entry_points  # it takes time, and few strings need it

    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # whatever a package raises, others work
            text = f"layers of entry point {entry.name} = {entry.value} were not loaded: {error}"
            warnings.warn(text, HaarPoolWarning, stacklevel=2)


def registered_layers() -> Mapping[str, Layer]:
    """Return all layers by their tokens, also those of installed packages, sorted by kind."""
    _read_folder()
    _load_entry_points()
    kinds = get_args(Kind)
    order = sorted(_LAYERS.values(), key=lambda one: (kinds.index(one.kind), one.token))
    return {one.token: one for one in order}


def find_layer(token: str) -> Layer | None:
    """Return the layer of a token, or `None`."""
    _read_folder()
    # Packages are asked only for tokens that are not known: they import torch.
    return _LAYERS.get(token) or registered_layers().get(token)


def network(name: str) -> Callable[[Class], Class]:
    """Return a class decorator that registers an architecture: `--arch name:size=number,...`.

    Args:
        name: Lower-case letters.
    """

    def add(cls: Class) -> Class:
        cls.name = name  # type: ignore[attr-defined]
        _NETWORKS[name] = cls
        return cls

    return add


@cache
def _network_homes() -> dict[str, str]:
    """Return the module of each network of the folder."""
    found = _declared(NETWORKS, "network")
    return {ast.literal_eval(call.args[0]): module for module, _, call in found}


def find_network(text: str) -> Any:
    """Return the architecture class of `name` or `name:size=number,...`, or `None`."""
    match = re.match(r"[a-z]+\b", text.lower())
    name = match[0] if match else ""
    if name not in _NETWORKS:
        if home := _network_homes().get(name):
            import_module(home)
        elif text.islower():  # no tokens, which are capitals
            _load_entry_points()
    return _NETWORKS.get(name)


def asks_packages(text: str) -> bool:
    """Return whether a string may need layers of installed packages, which import torch."""
    from importlib.metadata import entry_points

    _read_folder()
    named = text.lower().partition(":")[0] in _network_homes()
    known = named or _LAYERS.keys() >= {*re.findall(TOKEN, text)}
    return not known and bool(entry_points(group=ENTRY_POINTS))
