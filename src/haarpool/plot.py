"""Figures of chains: the graphs of all levels (Figure 1 of the paper) and their bases (Figure 2).

Figures do not use pyplot, so they need no display and have no global state. Save a figure with
`figure.savefig("chain.pdf")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import FuncNorm, to_rgba
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from haarpool._text import count
from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import as_array
from haarpool.chains.chain import Chain, check_chain
from haarpool.chains.tree_order import orders_of
from haarpool.errors import HaarPoolError
from haarpool.haar.basis import haar_basis

AxesRow = Axes | Sequence[Axes] | NDArray[Any]
Colours = dict[int, Floats]

__all__ = [
    "plot_basis",
    "plot_chain",
    "plot_chains",
    "plot_overview",
    "plot_signal",
    "plot_wavelets",
]

MAX_BASIS_NODES = 3000  # a figure has no more pixels
INK, _FAINT = "#333333", "#b0b0b0"
_LEGEND = (
    "disc: a node, coloured like its members one level below",
    "rim (on level 0 all of it): the colour of its parent one level above",
    "area: number of level-0 nodes",
    "line width: edge weight",
)


def plot_chain(
    chain: Chain,
    axes: AxesRow | None = None,
    *,
    positions: ArrayLike | None = None,
    seed: int = 0,
) -> Figure:
    """Draw the graphs of levels 0..K side by side, as in Figure 1 of the paper.

    A node is a disc with a rim in the colour of its parent; on level 0 the disc has this colour,
    too. So the members of a cluster show which node they become. The area of a node is its mass,
    and its position is the mean of the level-0 nodes below it.

    Args:
        chain: A chain that knows its graph.
        axes: K+1 axes to draw into; by default a new figure.
        positions: (N_0, 2) where level-0 nodes are drawn, y upwards; by default a layout.
        seed: Seed of the layout.
    """
    check_chain(chain)
    row = _row(axes, chain.num_levels + 1)
    _draw_chain(chain, row, _layout(chain, positions, seed, chain.parents[0]))
    if axes is None:
        _add_legend(row)
    return _figure(row)


def plot_chains(
    chains: Mapping[str, Chain],
    *,
    title: str = "",
    positions: ArrayLike | None = None,
    seed: int = 0,
) -> Figure:
    """Draw several chains of one graph in the same layout, one row per chain.

    Args:
        chains: Chains of the same graph by name, for example the name of the clustering method.
        title: Title of the figure.
        positions: (N_0, 2) where level-0 nodes are drawn, y upwards; by default a layout.
        seed: Seed of the layout.
    """
    for chain in chains.values():
        check_chain(chain)
    rows = _grid(len(chains), max(chain.num_levels + 1 for chain in chains.values()))
    first = next(iter(chains.values()))
    layout = _layout(first, positions, seed)
    for (name, chain), row in zip(chains.items(), rows, strict=True):
        _draw_chain(chain, row[: chain.num_levels + 1], layout)
        for empty in row[chain.num_levels + 1 :]:
            empty.set_axis_off()
        row[0].set_title(f"{name}\n{row[0].get_title()}", fontsize=10, color=INK)
    _add_legend(rows[0])
    _figure(rows[0]).suptitle(title, fontsize=11, color=INK)
    return _figure(rows[0])


def plot_basis(chain: Chain, axes: AxesRow | None = None, *, bar: Axes | None = None) -> Figure:
    """Draw the Haar bases U_0, ..., U_{K-1} as heat maps, as in Figure 2 of the paper.

    Columns have the order of `haar_basis`; a bracket marks the compressive basis Φ_j, and lines
    mark where a level begins. Rows are sorted cluster by cluster on all levels, which shows the
    blocks; the strip on the left has the colour of the parent, as in `plot_chain`.

    Args:
        chain: The chain.
        axes: K axes to draw into; by default a new figure.
        bar: Wide axes for the colour bar; by default it is to the right of the panels.
    """
    check_chain(chain)
    row = _row(axes, chain.num_levels)
    _add_bar(row, _draw_bases(chain, row), bar)
    return _figure(row)


def plot_wavelets(
    chain: Chain,
    columns: Sequence[int],
    axes: AxesRow | None = None,
    *,
    bar: Axes | None = None,
    positions: ArrayLike | None = None,
    seed: int = 0,
) -> Figure:
    """Draw vectors of the Haar basis U_0 on the graph: the colour of a node is its entry.

    Nodes outside the support of a vector are small and grey. Positions are those of `plot_chain`,
    colours those of `plot_basis`.

    Args:
        chain: A chain that knows its graph.
        columns: Columns of U_0, in 0..N_0-1, from coarse to fine.
        axes: One axes per column to draw into; by default a new figure.
        bar: Wide axes for the colour bar; by default it is to the right of the panels.
        positions: (N_0, 2) where level-0 nodes are drawn, y upwards; by default a layout.
        seed: Seed of the layout.
    """
    check_chain(chain)
    if not len(columns) or not all(0 <= column < chain.sizes[0] for column in columns):
        raise HaarPoolError(
            f"columns of U_0 in 0..{chain.sizes[0] - 1}, at least one",
            f"{list(columns)}",
            "column 0 is the coarsest",
        )
    _check_size(chain)
    row = _row(axes, len(columns))
    graph = chain.adjacency(0)
    layout = _layout(chain, positions, seed, chain.parents[0])
    x, y = layout.position.T
    vectors = haar_basis(chain)[:, list(columns)].toarray()
    entry = _entry_colours(np.abs(vectors).max())
    for column, vector, ax in zip(columns, vectors.T, row, strict=True):
        _draw_edges(ax, graph, layout.position)
        inside, area = vector != 0, _node_area(ax, chain)
        ax.scatter(x[~inside], y[~inside], 0.3 * area, _FAINT, linewidths=0)
        line = {"edgecolors": INK, "linewidths": min(np.sqrt(area) / 20, 0.6)}
        ax.scatter(x[inside], y[inside], area, vector[inside], **entry, **line)
        _frame(ax, layout)
        # Columns N_{j+1}, ..., N_j - 1 are the details of level j.
        level = sum(size > column for size in chain.sizes) - 1
        kind = "top level" if level == chain.num_levels else f"detail of level {level}"
        ax.set_title(f"vector {column + 1}: {kind}", fontsize=10, color=INK)
    _add_bar(row, entry, bar)
    return _figure(row)


def plot_signal(
    chain: Chain,
    signal: ArrayLike,
    axes: AxesRow | None = None,
    *,
    positions: ArrayLike | None = None,
    seed: int = 0,
) -> Figure:
    """Draw a signal on the graph: the larger a value, the darker is its node.

    Args:
        chain: A chain that knows its graph.
        signal: (N_0,) values of the level-0 nodes.
        axes: Axes to draw into; by default a new figure.
        positions: (N_0, 2) where level-0 nodes are drawn, y upwards; by default a layout.
        seed: Seed of the layout.
    """
    check_chain(chain)
    (ax,) = _row(axes, 1)
    values = _checked(signal, "signal", (chain.sizes[0],))
    layout = _layout(chain, positions, seed, chain.parents[0])
    low, width = values.min(), np.ptp(values) or 1.0
    # Opaque ink on any background; the smallest values are faint, not invisible.
    fill = [to_rgba(INK, 1 - 0.92 * (1 - share)) for share in (values - low) / width]
    x, y = layout.position.T
    ax.scatter(x, y, 2 * _node_area(ax, chain), fill, linewidths=0)
    _frame(ax, layout)
    return _figure([ax])


def plot_overview(chain: Chain, *, positions: ArrayLike | None = None, seed: int = 0) -> Figure:
    """Draw the graph of each level (`plot_chain`) above its Haar basis (`plot_basis`).

    Args:
        chain: A chain that knows its graph.
        positions: (N_0, 2) where level-0 nodes are drawn, y upwards; by default a layout.
        seed: Seed of the layout.
    """
    check_chain(chain)
    top, (*row, corner) = _grid(2, chain.num_levels + 1)
    plot_chain(chain, top, positions=positions, seed=seed)
    # There is no panel for U_K; the legend is in its place.
    corner.set_axis_off()
    plot_basis(chain, row, bar=corner.inset_axes((0.05, 0.9, 0.9, 0.05)))
    text = "\n".join(_LEGEND).replace(": ", ":\n    ").replace(" one level", "\n    one level")
    corner.text(0.05, 0.6, text, fontsize=8, color=INK, va="top", linespacing=1.4)
    return _figure(row)


# ---------------------------------------------------------------------- Figure 1


def _draw_chain(chain: Chain, row: Sequence[Axes], layout: _Placement) -> None:
    """Draw all levels."""
    colours, position = _colours(chain), layout.position
    for level, ax in enumerate(row):
        if level:
            position = _means(position, chain.parents[level - 1], chain.mass(level - 1))
        _draw_edges(ax, chain.adjacency(level), position)
        _draw_nodes(ax, chain, level, position, colours)
        _frame(ax, layout)
        nodes = count(chain.sizes[level], "node")
        ax.set_title(f"level {level}: {nodes}", fontsize=10, color=INK)


def _frame(ax: Axes, layout: _Placement) -> None:
    """Set the limits of a panel so that all level-0 nodes are inside."""
    position = layout.position
    width = np.ptp(position, axis=0)
    if layout.is_given:
        reach = np.full(2, 0.6 * (width.max() or 1.0))
        ax.set_aspect("equal")
    else:
        # Distances in a layout mean little: stretch a narrow one, but not by more than a factor.
        reach = 0.6 * np.maximum(width, max(0.55 * width.max(), 1e-3))
    middle = (position.min(axis=0) + position.max(axis=0)) / 2
    x, y = np.stack([middle - reach, middle + reach], axis=1)
    ax.set(xlim=x, ylim=y)
    ax.set_axis_off()


def _add_legend(row: Sequence[Axes]) -> None:
    separator = "   |   " if len(row) > 3 else "\n"
    _figure(row).supxlabel(separator.join(_LEGEND), fontsize=8, color=INK)


def _draw_edges(ax: Axes, graph: sparse.csr_array, position: Floats) -> None:
    edges = sparse.triu(graph, k=1).tocoo()
    # Many edges are drawn thin, so that they do not hide the nodes.
    widths = 0.3 + 2.2 * min(1, 80 / max(edges.nnz, 1)) * edges.data / edges.data.max(initial=0)
    lines = [*np.stack([position[edges.row], position[edges.col]], axis=1)]
    ax.add_collection(LineCollection(lines, linewidths=widths, colors=_FAINT, alpha=0.6, zorder=1))


def _draw_nodes(ax: Axes, chain: Chain, level: int, position: Floats, colours: Colours) -> None:
    """Draw all nodes as one collection, each disc after its rim, so that a node covers another."""
    mass = chain.mass(level)
    nodes = np.argsort(-mass, kind="stable")  # small nodes on top
    layers = [colours[level][nodes]] if level else []
    if level < chain.num_levels:
        layers.insert(0, colours[level + 1][chain.parents[level][nodes]])
    # The nodes of every level have the same total area.
    area = _node_area(ax, chain) * mass[nodes]
    areas = (area[:, None] * [1.0, 0.45][: len(layers)]).ravel()
    x, y = np.repeat(position[nodes], len(layers), axis=0).T
    fill, edge = np.stack(layers, axis=1).reshape(-1, 3), [INK, "white"][: len(layers)]
    widths = np.clip(np.sqrt(areas) / 12, 0.2, 0.8).tolist()
    ax.scatter(x, y, areas, fill, edgecolors=edge * len(nodes), linewidths=widths, zorder=2)


def _node_area(ax: Axes, chain: Chain) -> float:
    """Return the area of a level-0 node in square points."""
    inches = np.array(ax.get_position().size) * _figure([ax]).get_size_inches()
    return float(0.13 * (72 * inches.min()) ** 2 / max(chain.sizes[0], 24))


class _Placement(NamedTuple):
    """(N_0, 2) positions of the level-0 nodes, and whether they are given, with equal scales."""

    position: Floats
    is_given: bool


def _layout(
    chain: Chain, positions: ArrayLike | None, seed: int, clusters: Ints | None = None
) -> _Placement:
    """Return the given positions, checked, or computed ones, see `_node_positions`."""
    if positions is None:
        return _Placement(_node_positions(chain.adjacency(0), seed, clusters), False)
    return _Placement(_checked(positions, "positions", (chain.sizes[0], 2)), True)


def _checked(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    """Return finite numbers of this shape, with a row for each node."""
    array = as_array(values, name)
    got = f"shape {array.shape}, dtype {array.dtype}"
    is_right = array.shape == shape and array.dtype.kind in "biuf"
    if is_right and not np.isfinite(array).all():
        is_right, got = False, "nan or infinity"
    if not is_right:
        remedy = "pass a row for each node of level 0"
        raise HaarPoolError(f"as finite numbers of shape {shape}", got, remedy, parameter=name)
    return array.astype(np.float64)


def _node_positions(adjacency: sparse.csr_array, seed: int, clusters: Ints | None = None) -> Floats:
    """Compute positions by distances in the graph.

    Args:
        adjacency: (N_0, N_0) the graph.
        seed: Seed of the first positions.
        clusters: (N_0,) cluster of each node; edges inside clusters are shorter.

    Returns:
        (N_0, 2) positions.
    """
    graph = adjacency.tocoo()
    network = nx.from_scipy_sparse_array(graph)
    position = nx.spring_layout(network, weight=None, seed=seed)
    if len(network) <= 300:  # for more nodes, Kamada-Kawai is too slow
        graph.data = np.ones(graph.nnz)
        if clusters is not None:
            graph.data[clusters[graph.row] == clusters[graph.col]] = 0.6
        distance = sparse.csgraph.shortest_path(graph.tocsr())
        unreachable = np.isinf(distance)  # other components: a bit more than the largest distance
        distance[unreachable] = distance[~unreachable].max() + 1
        table = {u: dict(enumerate(row)) for u, row in enumerate(distance.tolist())}
        position = nx.kamada_kawai_layout(network, dist=table, pos=position)
    return np.array([position[v] for v in range(adjacency.shape[0])])


def _means(position: Floats, parent: Ints, mass: Ints | Floats) -> Floats:
    """Return the mean position of each cluster, weighted by mass."""
    sums = [np.bincount(parent, weights=mass * x) for x in position.T]
    return np.stack(sums, axis=1) / np.bincount(parent, weights=mass)[:, None]


# ---------------------------------------------------------------------- Figure 2


def _draw_bases(chain: Chain, row: Sequence[Axes]) -> dict[str, Any]:
    """Draw every U_j; return the colours of entries as arguments for matplotlib."""
    _check_size(chain)
    bases = [haar_basis(chain, level).toarray() for level in range(len(row))]
    entry = _entry_colours(max(np.abs(basis).max() for basis in bases))
    colours, order = _colours(chain), orders_of(chain)
    for level, (ax, basis) in enumerate(zip(row, bases, strict=True)):
        size, *ends = chain.sizes[level:]
        nodes = order[level]
        entries = np.ma.masked_equal(basis[nodes], 0)
        ax.imshow(entries, **entry, interpolation="nearest")
        strip, parent = ax.inset_axes((-0.065, 0, 0.045, 1)), chain.parents[level][nodes, None]
        strip.imshow(colours[level + 1][parent], aspect="auto", interpolation="nearest")
        strip.set(xticks=[], yticks=[])
        for end in ends:
            ax.axvline(end - 0.5, color=INK, linewidth=1.2 if end == ends[0] else 0.4)
        _bracket(ax, 0, ends[0], rf"$\Phi_{{{level}}}$")
        if ends[0] < size:
            _bracket(ax, ends[0], size, "details")
        ticks = [size] + [n for above, n in pairwise([size, *ends]) if above - n > 0.08 * size]
        ax.set_xticks([n - 1 for n in ticks], labels=[str(n) for n in ticks])
        ax.set_yticks([])
        ax.tick_params(labelsize=8)
        ax.set_title(f"$U_{{{level}}}$: {size} × {size}", fontsize=10, color=INK, pad=25)
        ax.set_xlabel("Haar vector, coarse → fine", fontsize=8)
        ax.set_ylabel("node, cluster by cluster", fontsize=8, labelpad=15)
    return entry


def _entry_colours(largest: float) -> dict[str, Any]:
    """Return norm and colour map of entries: blue below zero, red above, no colour at zero."""
    # Colours by the root of an entry, because entries of coarse vectors are small: 1/sqrt(N).
    norm = FuncNorm((lambda u: np.sign(u) * np.sqrt(np.abs(u)), lambda r: r * np.abs(r)))
    norm.vmin, norm.vmax = -largest, largest
    return {"norm": norm, "cmap": colormaps["RdBu_r"].with_extremes(bad="none")}


def _check_size(chain: Chain) -> None:
    if chain.sizes[0] > MAX_BASIS_NODES:
        raise HaarPoolError(
            f"at most {MAX_BASIS_NODES:,} nodes for a figure of the bases",
            f"{chain.sizes[0]:,}",
            "draw only the chain, with plot_chain",
        )


def _bracket(ax: Axes, start: int, stop: int, text: str) -> None:
    """Draw a bracket with a text above columns start..stop-1."""
    style: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "color": INK}
    gap = 0.008 * (ax.get_xlim()[1] + 0.5)
    left, right = start - 0.5 + gap, stop - 0.5 - gap
    x, y = [left, left, right, right], [1.02, 1.04, 1.04, 1.02]
    ax.plot(x, y, linewidth=0.8, clip_on=False, **style)
    ax.text((left + right) / 2, 1.055, text, fontsize=9, ha="center", va="bottom", **style)


def _add_bar(row: Sequence[Axes], entry: dict[str, Any], bar: Axes | None) -> None:
    """Add a colour bar, into the wide axes `bar` or to the right of a row."""
    position: dict[str, Any] = {"ax": row, "shrink": 0.8}
    if bar:
        position = {"cax": bar, "orientation": "horizontal"}
    figure = _figure([bar] if bar else row)
    colour_bar = figure.colorbar(ScalarMappable(**entry), format="{x:.2f}", **position)
    colour_bar.set_label("entry of the basis (zero: blank)", fontsize=8)
    # The colour is the root of an entry, so these ticks have equal distances.
    colour_bar.set_ticks(entry["norm"].vmax * np.array([-1, -0.25, 0, 0.25, 1]))
    colour_bar.ax.tick_params(labelsize=8)


# ---------------------------------------------------------------------- order and colours


def _colours(chain: Chain) -> Colours:
    """Return RGB colours (N_j, 3) of the nodes of levels 1..K.

    The hue is the position in the tree, so that a branch keeps its hue from level to level; the
    larger the part of the graph below a node, the more grey it is. Neighbours, in the graph or in
    the order of the tree, never have the same lightness.
    """
    orders = orders_of(chain)
    position, share = np.argsort(orders[1]) / chain.sizes[1], np.full(chain.sizes[1], 1.0)
    colours = {}
    for level in range(1, chain.num_levels + 1):
        if level > 1:
            parent = chain.parents[level - 1]
            position = _means(position[:, None], parent, share)[:, 0]
            share = np.bincount(parent, weights=share)
        neighbours = nx.path_graph(orders[level].tolist())
        if chain.has_graph:
            neighbours.add_edges_from(np.transpose(chain.adjacency(level).nonzero()).tolist())
        shade_of = nx.greedy_color(neighbours, strategy="DSATUR")
        shade = np.array([shade_of[v] for v in range(chain.sizes[level])])
        lightness = 0.87 - 0.40 * (shade + 0.5) / (shade.max() + 1)
        chroma = 0.14 * (1 - (share / chain.sizes[1]) ** 2)
        colours[level] = _rgb(lightness, chroma, 0.4 + 1.8 * np.pi * position)
    return colours


def _rgb(lightness: Floats, chroma: Floats, hue: Floats) -> Floats:
    """Convert OKLCH, where equal steps look equal, to sRGB (Ottosson 2020)."""
    lab = np.stack([lightness, chroma * np.cos(hue), chroma * np.sin(hue)])
    lms = np.array([[1, 0.3963, 0.2158], [1, -0.1056, -0.0639], [1, -0.0895, -1.2915]]) @ lab
    to_rgb = [[4.0767, -3.3077, 0.231], [-1.2684, 2.6098, -0.3413], [-0.0042, -0.7034, 1.7076]]
    linear = np.clip(np.array(to_rgb) @ lms**3, 0, 1).T
    return np.asarray(np.where(linear > 0.003, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear))


# ---------------------------------------------------------------------- axes


def _grid(rows: int, columns: int) -> list[list[Axes]]:
    """Return the axes of a new figure, row by row."""
    figure = Figure((2.8 * columns, 3.1 * rows), layout="constrained")
    return [list(row) for row in figure.subplots(rows, columns, squeeze=False)]


def _row(axes: AxesRow | None, number: int) -> list[Axes]:
    """Return the given axes, which must be `number`, or those of a new figure."""
    row = _grid(1, number)[0] if axes is None else list(np.ravel(np.asarray(axes, object)))
    if len(row) != number:
        raise HaarPoolError(f"{number} axes", f"{len(row)}", "pass one per panel, or none")
    return row


def _figure(row: Sequence[Axes]) -> Figure:
    return row[0].figure.figure  # the figure, even if the axes are in a subfigure
