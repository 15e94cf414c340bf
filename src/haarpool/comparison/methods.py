"""The methods that a comparison takes: a network by its architecture, a preset, or a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from haarpool.comparison.checkpoints import Checkpoints
from haarpool.comparison.learners import Learner, Line
from haarpool.comparison.table import Cell, Row
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split, num_folds
from haarpool.errors import HaarPoolError
from haarpool.nn.strings.registry import network_names, registered_layers
from haarpool.training.config import RunConfig
from haarpool.training.presets import BEST, PAPER, PRESETS, preset

PLAIN = "plain"  # name of the plain network; "plain-TP" has the pooling TP
COMMON: dict[str, Any] = {**BEST, "threads": 1}


class WithoutPreset(Learner):
    """Fails, since the preset of the cell has no settings for the dataset."""

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Raise the reason."""
        expected = f"a dataset of the paper: {', '.join(PAPER)}"
        raise HaarPoolError(expected, self.graphs.name, "choose another method for it")


class Method(NamedTuple):
    """A method.

    Attributes:
        row: Its row.
        preset: The preset that it is; "" for other methods.
        settings: Settings of `RunConfig` of all others.
        max_clusters: The most clusters that its pooling takes; 0 if it has no fixed number of them.
    """

    row: Row
    preset: str = ""
    settings: Mapping[str, Any] = {}
    max_clusters: int = 0

    def cell(self, graphs: Graphs, dataset: str, rule: str, common: Mapping[str, Any]) -> Cell:
        """Return its cell for a dataset; wrong settings are an error.

        Args:
            graphs: The dataset.
            dataset: Name of the dataset.
            rule: Split rule.
            common: Settings of all methods.
        """
        folds, settings = num_folds(rule, graphs) or 1, dict(self.settings)
        if self.max_clusters:
            half = int(graphs.sizes.mean() / 2)
            settings["pooling"] = {"num_clusters": min(max(half, 2), self.max_clusters)}
        if self.preset:
            try:
                settings = {**preset(self.preset, graphs.name), "threads": 1}
            except HaarPoolError:  # it fails in its lines
                settings = {"preset": self.preset, "seed": common.get("seed", 0)}
                return Cell(dataset, self.row.name, rule, settings, WithoutPreset, folds)
        settings = {name: one for name, one in settings.items() if name != "split"} | dict(common)
        RunConfig(**settings)
        return Cell(dataset, self.row.name, rule, settings, folds=folds)


def default_methods() -> list[Method]:
    """Return what is compared by default.

    The default network, the same without pooling, and each pooling in the plain network.
    """
    poolings = [token for token, one in registered_layers().items() if one.kind == "pooling"]
    default = [
        Method(Row("haarnet", "HaarNet", "The default network of haarpool."), settings=COMMON),
        Method(
            Row(
                "haarnet:levels=0",
                "HaarNet, no pooling",
                "The same with 0 levels.",
                reference="haarnet",
            ),
            settings=COMMON | {"arch": "haarnet:levels=0"},
        ),
    ]
    return [*default, plain_method(), *map(plain_method, poolings)]


def node_methods() -> list[Method]:
    """Return what is compared by default on datasets with labels at nodes.

    The default network, and its controls: random clusters, no pooling at several depths, and no
    pooling with a node that all others are connected to.
    """
    rows = [
        Row("haarunet", "HaarUNet", "The default network of haarpool for nodes."),
        Row("haarunet-random", "HaarUNet, random clusters", "The same on random clusters."),
        *(
            Row(f"haarunet:depth={n},levels=0", f"flat, {n} layers", "The same convolutions alone.")
            for n in (4, 8, 16)
        ),
        Row(
            "haarunet:depth=8,levels=0,virtual_node=true",
            "flat, 8 layers, virtual node",
            "Each layer exchanges with the mean of all nodes.",
        ),
    ]
    random = {"arch": "haarunet", "chain": {"method": "random"}}
    own = [random if row.name == "haarunet-random" else {"arch": row.name} for row in rows]
    return [Method(row, settings=COMMON | one) for row, one in zip(rows, own, strict=True)]


def plain_method(token: str = "") -> Method:
    """Return the plain network, with a pooling between its convolutions or without.

    Args:
        token: Token of the pooling; "" for none.
    """
    if not token:
        arch = "3GIN64-SUM-FC64"
        note = f"`{arch}` with the settings of the default network."
        row = Row(PLAIN, "plain network, no pooling", note)
        return Method(row, settings=COMMON | {"arch": arch})
    layers = registered_layers()
    if token not in layers or layers[token].kind != "pooling":
        known = ", ".join(name for name, one in layers.items() if one.kind == "pooling")
        raise HaarPoolError(f"a pooling: {known}", token, f"write for example {PLAIN}-HP")
    layer, arch = layers[token], f"2GIN64-{token}-GIN64-SUM-FC64"
    note = f"`{arch}` with the same settings. {layer.summary}."
    settings = COMMON | {"arch": arch}
    if "domain" in layer.options:  # coarse edges connect clusters, not coefficients
        settings |= {"domain": "vertex"}
        note += " Vertex domain."
    most = 0
    if "num_clusters" in layer.options:
        note += " As many clusters as half of the mean number of nodes."
        most = int(max(layer.options["num_clusters"].limits, default=2))
    row = Row(f"{PLAIN}-{token}", layer.name, note, reference=PLAIN)
    return Method(row, "", settings, most)


def find_method(name: str) -> Method:
    """Return a method by its name.

    Args:
        name: An architecture, "plain" or "plain-TOKEN", the name of a preset, or a JSON file with
            settings of `RunConfig`, for example `config.json` of a run. An architecture has the
            settings of the default network.

    Example:
        >>> find_method("3GIN64-SUM-FC64").settings["optimizer"], find_method("plain-TP").row.title
        ('adamw', 'TopK')
    """
    plain, _, token = name.partition("-")
    if plain == PLAIN:
        return plain_method(token.upper())
    for method in [*default_methods(), *node_methods()]:
        if method.row.name == name:
            return method
    if name in PRESETS:
        return Method(Row(name, name, f"The preset {name}."), name)
    if name.lower().endswith(".json"):
        path = Path(name)
        stem = path.parent.resolve().name if path.name == "config.json" else path.stem
        return Method(Row(stem, stem, f"The settings of {path.name}."), settings=_read(path))
    settings = COMMON | {"arch": name}
    try:
        RunConfig(**settings)
    except HaarPoolError as error:
        expected, *others = error.args
        known = ", ".join([*network_names(), *PRESETS, PLAIN, f"{PLAIN}-TOKEN"])
        expected = f"a method: {known}, a JSON file, or an architecture {expected}"
        raise HaarPoolError(expected, *others, **error.values) from error
    note = "With the settings of the default network."
    return Method(Row(name, name, note), settings=settings)


def _read(path: Path) -> dict[str, Any]:
    """Read settings from a file; of a run, its training settings."""
    try:
        content = json.loads(path.read_text("utf-8"))
        settings = content.get("training", content)
        config = RunConfig.from_json(settings)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        if isinstance(error, HaarPoolError):
            raise
        expected = "a JSON file with settings of a run, such as its config.json"
        raise HaarPoolError(expected, f"{path} ({error})", "check the file") from error
    chosen_here = ("repeats", "split", "seed")
    return {name: one for name, one in config.to_json().items() if name not in chosen_here}


def unique(methods: Sequence[Method]) -> list[Method]:
    """Return methods without those of the same name; an error if these differ."""
    by_name: dict[str, Method] = {}
    for method in methods:
        known = by_name.setdefault(method.row.name, method)
        if known != method:
            expected = "methods with different names"
            raise HaarPoolError(expected, f"{method.row.name} twice", "rename one of the files")
    return list(by_name.values())
