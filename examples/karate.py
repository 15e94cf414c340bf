"""Zachary's karate club as a chain: a report in the terminal and an overview figure.

The chain takes `measure="mass"`: every member counts alike on every level, so the first Haar vector
is constant and the top level holds the mean over the club.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import networkx as nx
import numpy as np

import haarpool as hp
from haarpool.plot import plot_overview


def signals(graph: nx.Graph) -> dict[str, np.ndarray]:
    """The faction of each member as ±1, the same dealt out at random, and the number of friends."""
    faction = np.array([1.0 if club == "Mr. Hi" else -1.0 for _, club in graph.nodes(data="club")])
    shuffled = np.random.default_rng(0).permutation(faction)
    degree = np.array([float(degree) for _, degree in graph.degree])
    return {"faction": faction, "shuffled": shuffled, "degree": degree}


def report(chain: hp.Chain, named: dict[str, np.ndarray]) -> Iterable[str]:
    """What the Haar basis makes of some signals on the graph, line by line."""

    def line(title: str, *values: object, form: str = ".1%") -> str:
        return f"{title:<34}" + "".join(f"{value:>11{form}}" for value in values)

    x = np.stack(list(named.values()), axis=1)
    U, c = hp.haar_basis(chain).toarray(), hp.adjoint(chain, x)
    energy, gram_error = (x**2).sum(axis=0), np.abs(U.T @ U - np.eye(len(U))).max()
    yield f"nodes per level   {' -> '.join(map(str, chain.sizes))}"
    yield f"digest            {chain.digest[:12]}"
    yield f"max |UᵀU - I|     {gram_error:.1e}\n"

    yield line("share of energy kept by", *named, form="")
    kept = np.cumsum([(part**2).sum(axis=0) for part in hp.split(chain, c)], axis=0) / energy
    for level, shares in zip(reversed(range(len(kept))), kept, strict=True):
        yield line(f"  level {level}: the first {chain.sizes[level]} of {len(x)}", *shares)
    largest = hp.threshold(chain, c, keep=0.2)
    number = np.count_nonzero(largest[:, 0])
    yield line(f"  the largest 20%: {number} of {len(x)}", *(largest**2).sum(axis=0) / energy)
    error = np.abs(hp.forward_transform(chain, c) - x).max(axis=0)
    yield line("reconstruction error from all", *error, form=".1e") + "\n"

    right = np.sign(hp.forward_transform(chain, largest)[:, 0]) == x[:, 0]
    yield f"{number} coefficients tell the faction of {right.sum()} of {len(x)} members."


def main(argv: Sequence[str] | None = None) -> None:
    """Print the report and write the figure."""
    example = "example: python examples/karate.py --out karate.pdf"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example)
    parser.add_argument("--out", default="build/karate.png", help="figure, by default %(default)s")
    out = Path(parser.parse_args(argv).out)
    graph = nx.karate_club_graph()
    chain = hp.build_chain(graph, num_levels=3, measure="mass")
    print(*report(chain, signals(graph)), sep="\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    plot_overview(chain).savefig(out, dpi=150)
    print(f"figure: {out}")


if __name__ == "__main__":
    main()
