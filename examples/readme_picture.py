"""Draw the picture of the README: a chain of graphs, and some of its Haar wavelets below.

The graph is a flake of 16 hexagons, like a molecule of carbon rings. `measure="mass"` gives every
node the same weight, so the first wavelet is constant and all others have mean zero.
"""

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch
from PIL import Image  # installed with matplotlib

import haarpool as hp
from haarpool.plot import plot_chain, plot_wavelets

INK = "#333333"
TEXT = {"color": INK, "fontsize": 12}


def draw(chain: hp.Chain, columns: Sequence[int]) -> Figure:
    """Draw the levels 0..3 of a chain side by side, and four columns of its Haar basis U_0 below.

    Args:
        chain: a chain of three steps that knows its graph.
        columns: four columns of U_0; the last one is a detail of level 0.
    """
    figure = Figure((10, 6.6), layout="constrained")
    top, bottom = figure.subfigures(2, height_ratios=[1, 1.28], hspace=0.03)
    top.suptitle("A chain: cluster the graph, again and again", **TEXT, weight="bold")
    levels = list(top.subplots(1, 4))
    plot_chain(chain, levels)
    for left, right in pairwise(levels):
        ends = {"xyA": (0.97, 0.5), "xyB": (0.03, 0.5), "coordsA": "axes fraction"}
        style = {"arrowstyle": "-|>", "mutation_scale": 18, "linewidth": 1.5, "color": INK}
        top.add_artist(ConnectionPatch(**ends, axesA=left, axesB=right, **style))

    bottom.suptitle("Its Haar wavelets: orthonormal, coarse to fine", **TEXT, weight="bold")
    rows = {"height_ratios": [1, 0.16, 0.04]}
    panels = bottom.subplot_mosaic("abcd;kkkx;.ll.", gridspec_kw=rows)
    plot_wavelets(chain, columns, [panels[name] for name in "abcd"], bar=panels["l"])
    kept = chain.sizes[1]
    bracket(panels["k"], f"HaarPooling keeps the coefficients of vectors 1 to {kept} ...")
    bracket(panels["x"], f"... and drops {kept + 1} to {chain.sizes[0]}")
    return figure


def bracket(ax: Axes, text: str) -> None:
    """Draw a bracket below the panels above `ax`, with a text."""
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.plot([0.02, 0.02, 0.98, 0.98], [0.95, 0.7, 0.7, 0.95], color=INK, linewidth=1.2)
    ax.text(0.5, 0.5, text, ha="center", va="top", color=INK, fontsize=11)
    ax.set_axis_off()


def main(argv: Sequence[str] | None = None) -> None:
    """Build the chain and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="build/chain.png", help="default: %(default)s")
    out = Path(parser.parse_args(argv).out)
    flake = nx.convert_node_labels_to_integers(nx.hexagonal_lattice_graph(4, 4))
    chain = hp.build_chain(flake, num_levels=3, sizes=[16, 4, 1], measure="mass")
    out.parent.mkdir(parents=True, exist_ok=True)
    draw(chain, [0, 1, 7, 21]).savefig(out, dpi=160)
    if out.suffix == ".png":  # 256 colours look the same and take a third of the bytes
        Image.open(out).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
            out, optimize=True
        )
    print(f"{chain}, picture: {out}")


if __name__ == "__main__":
    main()
