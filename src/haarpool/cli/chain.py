"""`haarpool chain`, `methods`, `plot` and `cache`: without torch."""

from __future__ import annotations

import ast
import json
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np

from haarpool.chains.cache import ChainCache
from haarpool.chains.clustering import clusterings, find_method
from haarpool.chains.coarsening import build_chain
from haarpool.chains.dataset_chains import Chains, precompute
from haarpool.chains.workers import connected
from haarpool.datasets import Graphs, read_graphs
from haarpool.datasets.encoding import AUTO, Encoding
from haarpool.errors import HaarPoolError


def chain(arguments: Namespace) -> None:
    """`haarpool chain`: chains of a dataset into the cache."""
    if arguments.address and not arguments.backend:
        raise HaarPoolError("--backend together with --address", "none", "add --backend dask")
    dataset = read_graphs(arguments.dataset, arguments.root)
    cache: Any = False if arguments.no_cache else arguments.cache or True
    results = []
    with connected(arguments.backend, arguments.address):
        for method, recipe in _recipes(arguments):
            chains = precompute(
                dataset.batch,
                method=method,
                features=_features(arguments, dataset),
                n_jobs=None if arguments.backend else arguments.jobs,
                cache=cache,
                progress=False if arguments.quiet else None,
                **recipe,
            )
            results.append((method, chains))
    if arguments.json:
        print(json.dumps([_as_data(dataset, *result, arguments.stats) for result in results]))
        return
    for method, chains in results:
        print(
            f"{dataset.name}, {method}: {len(chains)} graphs; {chains.computed} chains computed "
            f"in {chains.seconds:.1f} s, {chains.cached} from the cache"
        )
        if arguments.stats:
            _print_stats(chains)
    if not arguments.no_cache:
        print(f"cache: {ChainCache(arguments.cache).path}")


def methods(arguments: Namespace) -> None:
    """`haarpool methods`: what there is to choose from."""
    known = {name: find_method(name, {}) for name in clusterings()}
    if arguments.json:
        data = {n: {"summary": m.summary, "options": m.options} for n, m in known.items()}
        print(json.dumps(data))
        return
    width = max(map(len, known))
    for name, method in known.items():
        print(f"{name:{width}}  {method.summary}")
        options = [f"{option}={value}" for option, value in method.options.items()]
        if method.takes_features:
            options.insert(0, "--features")
        if options:
            print(f"{'':{width}}  options: {', '.join(options)}")


def plot_chain(arguments: Namespace) -> None:
    """`haarpool plot chain`: the chain of one graph as a figure, a row per method."""
    dataset = read_graphs(arguments.dataset, arguments.root)
    number, graphs = arguments.graph, dataset.batch
    if not 0 <= number < len(graphs):
        raise HaarPoolError(
            f"a graph in 0..{len(graphs) - 1} of {dataset.name}", f"{number}", "count from 0"
        )
    features = _features(arguments, dataset)
    chains = {
        method: build_chain(
            graphs[number],
            method=method,
            features=None if features is None else features[number],
            **recipe,
        )
        for method, recipe in _recipes(arguments)
    }
    from haarpool.plot import plot_chains

    figure = plot_chains(chains, title=f"{dataset.name}, graph {number}")
    try:
        figure.savefig(arguments.out, dpi=150)
    except (OSError, ValueError) as error:
        raise HaarPoolError(
            "a file to write the figure to",
            f"{arguments.out} ({error})",
            "name a .png, .pdf or .svg",
        ) from error
    print(arguments.out)


def cache(arguments: Namespace) -> None:
    """`haarpool cache`: what lies there, or nothing any more."""
    store = ChainCache(arguments.cache)
    info = store.info()
    try:
        if arguments.clear:
            store.clear()
    except OSError as error:
        raise HaarPoolError(
            "a cache that can be removed", f"{error}", "check the rights of the folder"
        ) from error
    finally:
        store.close()
    if arguments.json:
        print(json.dumps({"path": str(info.path), "chains": info.chains, "bytes": info.bytes}))
    else:
        removed = "removed " if arguments.clear else ""
        print(f"{removed}{info.chains:,} chains, {info.bytes / 1e6:.1f} MB in {info.path}")


# ---------------------------------------------------------------------- arguments


def _recipes(arguments: Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parameters of `build_chain`, once for each method."""
    methods = [name.strip() for name in (arguments.method or "spectral").split(",")]
    recipe = chain_settings(arguments) | {
        "num_levels": arguments.levels,
        "top": None if arguments.open else 1,
        "seed": arguments.seed,
    }
    recipe.pop("method", None)
    for method in methods:  # all of them, before the first one starts to work
        find_method(method, _options(arguments))
    for method in methods:
        yield method, recipe


def chain_settings(arguments: Namespace) -> dict[str, Any]:
    """What the arguments that all commands with chains share say, if they say something."""
    sizes, ratio = arguments.sizes, arguments.ratio
    settings = {
        "method": arguments.method,
        "ratio": None if ratio is None else _numbers(ratio, "--ratio"),
        "sizes": sizes if sizes in (None, "paper") else _numbers(sizes, "--sizes", many=True),
    }
    settings["symmetrize"] = arguments.symmetrize or None
    return {k: v for k, v in settings.items() if v is not None} | _options(arguments)


def _options(arguments: Namespace) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for option in arguments.option:
        name, equals, value = option.partition("=")
        if not equals:
            raise HaarPoolError("--option NAME=VALUE", f"{option!r}", "for example xi=0.1")
        chosen[name] = _value(value)
    return chosen


def _numbers(text: str, name: str, *, many: bool = False) -> Any:
    values = [_value(part) for part in text.split(",")]
    if not all(isinstance(value, int | float) for value in values):
        raise HaarPoolError(f"numbers for {name}", f"{text!r}", "separate them by commas")
    return values if many or len(values) > 1 else values[0]


def _value(text: str) -> Any:
    """A number, True, None and so on as Python or JSON writes them; else the text itself."""
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text


def _features(arguments: Namespace, dataset: Graphs) -> list[Any] | None:
    if not arguments.features:
        return None
    kinds = [kind for kind in AUTO if kind in dataset.columns]
    if not kinds:
        raise HaarPoolError(
            f"node labels or attributes in {dataset.name}", "none", "leave --features out"
        )
    features = Encoding.fit(dataset, "+".join(kinds)).encode(dataset)
    return np.split(features, dataset.batch.start[1:-1])


# ---------------------------------------------------------------------- output


def _print_stats(chains: Chains) -> None:
    print(f"{'level':>7}{'nodes':>9}{'clusters':>10}{'edge cut':>10}", end="")
    print(f"{'balance':>9}{'singletons':>12}{'ms':>9}")
    for step in chains.quality():
        print(
            f"{step.level:>7.0f}{step.nodes:>9.1f}{step.clusters:>10.1f}{step.cut:>10.1%}", end=""
        )
        print(f"{step.balance:>9.2f}{step.singletons:>12.1%}{1000 * step.seconds:>9.2f}")


def _as_data(dataset: Graphs, method: str, chains: Chains, stats: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "dataset": dataset.name,
        "method": method,
        "graphs": len(chains),
        "computed": chains.computed,
        "cached": chains.cached,
        "seconds": chains.seconds,
    }
    if stats:
        data["levels"] = [step._asdict() for step in chains.quality()]
    return data
