"""Build a chain of Zachary's karate club, print statistics of signals on it and draw the chain.

With `measure="mass"` every member has the same weight on every level, so the first Haar vector is
constant and the top level holds the mean over the club.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import networkx as nx
import numpy as np

import haarpool as hp
from haarpool.plot import plot_overview


def club_signals(graph: nx.Graph) -> dict[str, np.ndarray]:
    """Return the faction of each member as ±1, a random permutation of it, and the degrees."""
    faction = np.array([1.0 if club == "Mr. Hi" else -1.0 for _, club in graph.nodes(data="club")])
    shuffled = np.random.default_rng(0).permutation(faction)
    degree = np.array([float(degree) for _, degree in graph.degree])
    return {"faction": faction, "shuffled": shuffled, "degree": degree}


def report(chain: hp.Chain, signals: dict[str, np.ndarray]) -> Iterable[str]:
    """Yield lines about the Haar coefficients of signals on the graph.

    Args:
        chain: A chain of the graph.
        signals: Signals of shape (N_0,) by name.
    """

    def line(title: str, *values: object, form: str = ".1%") -> str:
        return f"{title:<34}" + "".join(f"{value:>11{form}}" for value in values)

    x = np.stack(list(signals.values()), axis=1)
    U, c = hp.haar_basis(chain).toarray(), hp.adjoint(chain, x)
    energy, gram_error = (x**2).sum(axis=0), np.abs(U.T @ U - np.eye(len(U))).max()
    yield f"nodes per level   {' -> '.join(map(str, chain.sizes))}"
    yield f"digest            {chain.digest[:12]}"
    yield f"max |UᵀU - I|     {gram_error:.1e}\n"

    yield line("share of energy kept by", *signals, form="")
    kept = np.cumsum([(part**2).sum(axis=0) for part in hp.split(chain, c)], axis=0) / energy
    for level, shares in zip(reversed(range(len(kept))), kept, strict=True):
        yield line(f"  level {level}: the first {chain.sizes[level]} of {len(x)}", *shares)
    largest = hp.threshold(chain, c, keep=0.2)
    number = np.count_nonzero(largest[:, 0])
    yield line(f"  the largest 20%: {number} of {len(x)}", *(largest**2).sum(axis=0) / energy)
    error = np.abs(hp.forward_transform(chain, c) - x).max(axis=0)
    yield line("reconstruction error from all", *error, form=".1e") + "\n"

    correct = np.sign(hp.forward_transform(chain, largest)[:, 0]) == x[:, 0]
    yield f"{number} coefficients give the faction of {correct.sum()} of {len(x)} members."


def main(argv: Sequence[str] | None = None) -> None:
    """Print the statistics and write the picture."""
    example = "example: python examples/karate.py --out karate.pdf"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example)
    picture = "file of the picture (default: %(default)s)"
    parser.add_argument("--out", default="build/karate.png", help=picture)
    out = Path(parser.parse_args(argv).out)
    graph = nx.karate_club_graph()
    chain = hp.build_chain(graph, num_levels=3, measure="mass")
    print(*report(chain, club_signals(graph)), sep="\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    plot_overview(chain).savefig(out, dpi=150)
    print(f"picture: {out}")


if __name__ == "__main__":
    main()
