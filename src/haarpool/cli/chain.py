"""`haarpool chain`: compute the chains of a dataset."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from haarpool._numbers import fixed
from haarpool.cli.chain_arguments import cluster_features, recipes
from haarpool.cli.loading import load_for
from haarpool.cli.parser import add_full_recipe, add_output, add_root, new_command
from haarpool.cli.terminal import progress_option, terminal_width, wrap
from haarpool.datasets.readers.registry import sources
from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool.chains.dataset_chains import Chains


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    command = new_command(
        commands,
        "chain",
        "compute the chains of a dataset and store them in the cache",
        "chain NCI1 --method spectral --levels 3 --jobs 2 --stats",
    )
    command.set_defaults(
        run=run, loads=("haarpool.chains.dataset_chains", "haarpool.datasets.reading")
    )
    command.add_argument("dataset", metavar="DATASET", help=sources())
    add_root(command)
    add_full_recipe(command)
    work = command.add_argument_group("work")
    work.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes, -1 for all cores (default: 1)"
    )
    work.add_argument("--backend", choices=["dask", "ray"], help="use a running cluster")
    work.add_argument("--address", metavar="URL", help="address of the cluster: tcp://host:8786")
    cache = work.add_mutually_exclusive_group()
    cache.add_argument("--cache", metavar="DIR", help="cache folder (default: HAARPOOL_CACHE)")
    cache.add_argument("--no-cache", action="store_true", help="neither read nor write a cache")
    output = add_output(command)
    output.add_argument(
        "--stats", action="store_true", help="print sizes, edge cut, balance and time per level"
    )


def run(arguments: Namespace) -> None:
    """Compute the chains and print how many there are."""
    from haarpool.chains.dataset_chains import precompute
    from haarpool.chains.workers import connected
    from haarpool.datasets import read_graphs

    if arguments.address and not arguments.backend:
        raise HaarPoolError(
            "together with {address}",
            "none",
            "add {backend}",
            parameter="backend",
            backend="dask",
            address=...,
        )
    methods = recipes(arguments)  # checks all of them before the first one is computed
    load_for(arguments.dataset, arguments.root, arguments)
    graphs = read_graphs(arguments.dataset, arguments.root)
    features = cluster_features(arguments, graphs)
    results = {}
    with connected(arguments.backend, arguments.address):
        for recipe in methods:
            results[recipe.clustering.name] = precompute(
                graphs.batch,
                recipe,
                features=features,
                n_jobs=None if arguments.backend else arguments.jobs,
                cache=False if arguments.no_cache else arguments.cache or True,
                progress=progress_option(arguments),
            )
    if arguments.json:
        data = [
            {"dataset": graphs.name, "method": method} | _as_data(chains, arguments.stats)
            for method, chains in results.items()
        ]
        print(json.dumps(data))
        return
    for method, chains in results.items():
        _print_summary(f"{graphs.name}, {method}: {_summary(chains)}")
        if arguments.stats:
            _print_statistics(chains)
    for path in {chains.cache for chains in results.values()} - {None}:
        print(f"cache: {path}")


def _summary(chains: Chains) -> str:
    different = chains.computed + chains.cached
    shared = f", {different} different (equal graphs share a chain)"
    return (
        f"{len(chains)} graphs{shared if different < len(chains) else ''}; "
        f"{chains.computed} chains computed in {fixed(chains.seconds)} s, "
        f"{chains.cached} from the cache"
    )


def _print_summary(text: str) -> None:
    """Print a line, or two or more where the terminal is narrow."""
    if len(text) > terminal_width():
        parts = text.replace("; ", ";\n").splitlines()
        text = "\n  ".join(line for part in parts for line in wrap(part, indent=2))
    print(text)


def _print_statistics(chains: Chains) -> None:
    rows = [["level", "nodes", "clusters", "edge cut", "balance", "singletons", "ms"]]
    for step in chains.quality():
        sizes = [fixed(step.level, 0), fixed(step.nodes), fixed(step.clusters)]
        cut, singletons = (f"{fixed(100 * share)}%" for share in (step.cut, step.singletons))
        time = fixed(1000 * step.seconds, 2)
        rows.append([*sizes, cut, fixed(step.balance, 2), singletons, time])
    for row in rows:
        print(*map(str.rjust, row, (7, 9, 10, 10, 9, 12, 9)), sep="")


def _as_data(chains: Chains, stats: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "graphs": len(chains),
        "computed": chains.computed,
        "cached": chains.cached,
        "seconds": chains.seconds,
    }
    if stats:
        data["levels"] = [step._asdict() for step in chains.quality()]
    return data
