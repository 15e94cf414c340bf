"""From arguments of the shell to parameters of `Recipe`."""

from __future__ import annotations

import ast
import json
from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool.chains.recipe import Recipe
    from haarpool.datasets.graphs import Graphs

_NAMES = ("method", "ratio", "sizes", "order", "measure", "symmetrize", "num_levels")


def chain_parameters(arguments: Namespace) -> dict[str, Any]:
    """Return the parameters of `Recipe` that the arguments name."""
    named = {name: getattr(arguments, name, None) for name in _NAMES}
    parameters = {name: value for name, value in named.items() if value is not None}
    if "ratio" in parameters:
        ratios = _numbers("ratio", parameters["ratio"])
        parameters["ratio"] = ratios if len(ratios) > 1 else ratios[0]
    if parameters.get("sizes", "paper") != "paper":
        parameters["sizes"] = _numbers("sizes", parameters["sizes"])
    return parameters | _options(arguments)


def recipes(arguments: Namespace) -> list[Recipe]:
    """Return one recipe for each method that the arguments name."""
    from haarpool.chains.recipe import Recipe, with_options

    parameters = with_options(chain_parameters(arguments))
    methods = [name.strip() for name in parameters.pop("method", "spectral").split(",")]
    parameters |= {"seed": arguments.seed or 0, "top": None if arguments.open else 1}
    return [Recipe(method=method, **parameters) for method in methods]


def cluster_features(arguments: Namespace, graphs: Graphs) -> list[Any] | None:
    """Return the node features of each graph for methods that read them, if asked for."""
    import numpy as np

    from haarpool.datasets.encoding import AUTO, Encoding

    if not arguments.features:
        return None
    kinds = [kind for kind in AUTO if kind in graphs.columns]
    if not kinds:
        raise HaarPoolError(
            f"node labels or attributes in {graphs.name}", "none", "leave --features out"
        )
    features = Encoding.fit(graphs, "+".join(kinds)).encode(graphs)
    return np.split(features, graphs.batch.start[1:-1])


def _options(arguments: Namespace) -> dict[str, Any]:
    from haarpool.chains.recipe import PARAMETERS

    options = named_values(arguments.option, "options", xi=0.1)
    for name in options:
        if name in PARAMETERS:
            raise HaarPoolError(
                "an option of the clustering method",
                f"{name!r}, a parameter of the chain",
                "see the help text for its flag",
            )
    return options


def named_values(texts: Iterable[str], parameter: str, **example: Any) -> dict[str, Any]:
    """Read texts NAME=VALUE of a parameter; its error message has the example."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            remedy, value_of = f"pass for example {{{parameter}}}", {parameter: example}
            got = f"{text!r}"
            raise HaarPoolError("NAME=VALUE", got, remedy, parameter=parameter, **value_of)
        values[name] = _value(value)
    return values


def _numbers(parameter: str, text: str) -> list[int | float]:
    values = [_value(part) for part in text.split(",")]
    if not all(isinstance(value, int | float) for value in values):
        remedy = "separate them by commas"
        raise HaarPoolError("as numbers", f"{text!r}", remedy, parameter=parameter)
    return values


def _value(text: str) -> Any:
    """Read a number, True, None, ... as Python or JSON writes them; other text stays text."""
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text
