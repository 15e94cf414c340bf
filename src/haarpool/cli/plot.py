"""`haarpool plot chain`: draw the chain of one graph."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from haarpool.cli.chain_arguments import cluster_features, recipes
from haarpool.cli.parser import add_full_recipe, add_root, new_command
from haarpool.datasets.readers.registry import sources
from haarpool.errors import HaarPoolError


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    example = "plot chain MUTAG --graph 7 --method spectral,metis --out chains.png"
    plot = new_command(commands, "plot", "draw figures", example)
    figures = plot.add_subparsers(title="figures", metavar="FIGURE", required=True)
    summary = "draw the levels of a chain side by side, clusters in colour"
    command = new_command(figures, "chain", summary, example)
    command.set_defaults(run=run, loads=("haarpool.plot", "haarpool.datasets.reading"))
    command.add_argument("dataset", metavar="DATASET", help=sources())
    add_root(command)
    command.add_argument(
        "--graph", type=int, default=0, metavar="N", help="number of the graph (default: 0)"
    )
    command.add_argument(
        "--out", default="chain.png", metavar="FILE", help="png, pdf or svg (default: chain.png)"
    )
    add_full_recipe(command)


def run(arguments: Namespace) -> None:
    """Draw the chain of one graph, a row per method."""
    from haarpool.chains.coarsening import build_chain
    from haarpool.datasets import read_graphs
    from haarpool.plot import plot_chains

    dataset = read_graphs(arguments.dataset, arguments.root)
    number, graphs = arguments.graph, dataset.batch
    if not 0 <= number < len(graphs):
        raise HaarPoolError(
            f"--graph in 0..{len(graphs) - 1} for {dataset.name}", f"{number}", "count from 0"
        )
    features = cluster_features(arguments, dataset)
    columns = None if features is None else features[number]
    chains = {
        recipe.clustering.name: build_chain(graphs[number], recipe, features=columns)
        for recipe in recipes(arguments)
    }
    figure = plot_chains(chains, title=f"{dataset.name}, graph {number}")
    try:
        figure.savefig(arguments.out, dpi=150)
    except (OSError, ValueError) as error:
        raise HaarPoolError(
            "a file to write the figure to",
            f"{arguments.out} ({error})",
            "name a .png, .pdf or .svg file",
        ) from error
    print(arguments.out)
