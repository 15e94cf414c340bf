"""The pictures of a report as inline SVG that takes the text colour of the page.

Every panel is a separate SVG, about as wide as a phone, so that the page can wrap them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from io import StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import Collection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from haarpool._numbers import number
from haarpool._text import count
from haarpool._types import Floats
from haarpool.chains.chain import Chain
from haarpool.plot import INK, plot_basis, plot_chain, plot_signal, plot_wavelets
from haarpool.report.record import RunRecord
from haarpool.tasks import Figure as TaskFigure
from haarpool.training.results import MAX_DRAWN

MIN_WAVELETS, MAX_WAVELETS = 4, 6  # pictures of vectors of the basis
MAX_VECTORS = 400  # shapes in one picture; pixels take less space for more
_COLOURS = {"training": "#3b8ed0", "validation": "#e0803a"}
_LEGEND = (*_COLOURS, "kept epoch")
_STYLE: dict[Any, Any] = {  # of matplotlib
    "font.size": 8.5,
    "svg.fonttype": "none",  # text stays text: small, and screen readers can read it
    "svg.hashsalt": "haarpool",  # the same picture gives the same bytes
    "savefig.transparent": True,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
}


def draw(record: RunRecord) -> dict[str, list[str]]:
    """Draw the pictures of a run that have data: SVG texts of their panels by name."""
    pictures: dict[str, list[str]] = {}
    with rc_context(_STYLE):
        if record.chain is not None and record.chain.sizes[0] <= MAX_DRAWN:
            pictures |= _draw_chain(record.chain, record.result)
        pictures["curves"] = _draw_curves(record)
        if record.figure.panels:
            pictures["predictions"] = _draw_predictions(record.figure)
    return pictures


def as_svg(figure: Figure, name: str, label: str) -> str:
    """Return a figure as an inline `<svg>`.

    Args:
        figure: The figure. Lines and text in `INK` take the text colour of the page.
        name: Prefix of all ids, unique in the page.
        label: Text for screen readers.
    """
    for artist in figure.findobj(Collection):
        shapes = max(len(np.asarray(artist.get_offsets())), len(artist.get_paths()))
        # A colour bar drawn as a mesh shows gaps between its colours.
        if shapes > MAX_VECTORS or isinstance(artist, QuadMesh):
            artist.set_rasterized(True)
    buffer = StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", dpi=192, metadata=no_metadata)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    head = f'<svg role="img" aria-label="{escape(label)}"'
    return text.replace("<svg", head, 1)


def _panels(number: int, size: tuple[float, float]) -> list[Axes]:
    return [Figure(size, layout="constrained").subplots() for _ in range(number)]


def _svgs(panels: Iterable[Axes], name: str, labels: Iterable[str]) -> list[str]:
    pairs = enumerate(zip(panels, labels, strict=True))
    return [as_svg(_figure(ax), f"{name}{i}", label) for i, (ax, label) in pairs]


def _figure(ax: Axes) -> Figure:
    return ax.figure.figure  # not a subfigure; this tells the type checker


# ---------------------------------------------------------------------- the chain


def choose_wavelets(chain: Chain) -> list[int]:
    """Choose columns of U_0 to draw, from coarse to fine.

    These are the first column of the top level and the first detail of each level (of the finest
    levels if there are many), and others in between if these are few.

    Example:
        >>> choose_wavelets(Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]]))
        [0, 1, 3, 7]
    """
    last = chain.sizes[0] - 1
    columns = sorted({0, *(start for start in chain.sizes[1:] if start <= last)})
    for column in np.linspace(last, 0, MIN_WAVELETS).round().astype(int).tolist():
        if len(columns) < MIN_WAVELETS and column not in columns:
            columns.append(column)
    columns.sort()
    return columns[:1] + columns[1:][1 - MAX_WAVELETS :]


def _draw_chain(chain: Chain, result: Mapping[str, Any]) -> dict[str, list[str]]:
    # Runs of earlier versions have neither.
    positions, signal = result.get("example_positions"), result.get("example_signal")
    inputs: list[Axes] = []
    if signal is not None:
        inputs = _panels(1, (2.2, 2.3))
        plot_signal(chain, signal, inputs, positions=positions)
        inputs[0].set_title("first feature", fontsize=10, color=INK)
    levels = _panels(chain.num_levels + 1, (2.2, 2.3))
    plot_chain(chain, levels, positions=positions)
    columns = choose_wavelets(chain)
    wavelets, bases = _panels(len(columns), (2.2, 2.3)), _panels(chain.num_levels, (3.1, 3.7))
    bars = _panels(2, (3.1, 0.55))
    plot_wavelets(chain, columns, wavelets, bar=bars[0], positions=positions)
    plot_basis(chain, bases, bar=bars[1])
    labels = [f"level {j}: {count(size, 'node')}" for j, size in enumerate(chain.sizes)]
    bar = ["colour scale: blue below zero, red above"]
    return {
        "input": _svgs(inputs, "input", ["features of the graph"] * len(inputs)),
        "chain": _svgs(levels, "chain", labels),
        "wavelets": _svgs(wavelets, "wavelet", [f"Haar vector {c + 1}" for c in columns]),
        "wavelet_bar": _svgs(bars[:1], "wavelet-bar", bar),
        "basis": _svgs(bases, "basis", [f"basis of level {j}" for j in range(chain.num_levels)]),
        "basis_bar": _svgs(bars[1:], "basis-bar", bar),
    }


# ---------------------------------------------------------------------- training


def _draw_curves(record: RunRecord) -> list[str]:
    """Draw the losses and, if there is one, the validation score by epoch."""
    score = record.score(record.result["metric"])
    plots = [("loss", {"training": "train_loss", "validation": "validation_loss"})]
    if any(entry.get("validation_score") is not None for entry in record.epochs):
        plots.append((f"validation {score.title}", {"validation": "validation_score"}))
    panels = _panels(len(plots), (3.4, 2.6))
    for ax, (name, curves) in zip(panels, plots, strict=True):
        _draw_lines(ax, record, curves)
        ax.set(xlabel="epoch", ylabel=name)
    if len(panels) > 1:
        factor, sign = score.unit
        panels[1].yaxis.set_major_formatter(lambda value, _: number(factor * value) + sign)
    return _svgs(panels, "curve", [f"{name} by epoch" for name, _ in plots])


def _draw_lines(ax: Axes, record: RunRecord, curves: dict[str, str]) -> None:
    """Draw a line per network and curve, bold for the saved repeat.

    Curves are keys of the epochs by name; the last one has a mark at the kept epoch.
    """
    saved, best = record.result["model_of_repeat"], record.best_epochs
    thin: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.5}
    thin["rasterized"] = len(record.epochs) > 10 * MAX_VECTORS
    networks = [*np.ndindex(record.result["repeats"], record.result["ensemble"])]
    for repeat, member in sorted(networks, key=lambda network: network[0] == saved):
        entries = [
            entry
            for entry in record.epochs
            if (entry["repeat"], entry["member"]) == (repeat, member)
        ]
        epoch = np.array([entry["epoch"] for entry in entries])
        style = {"linewidth": 1.6} if repeat == saved else thin
        marker = "." if len(entries) == 1 else ""  # a single epoch makes no line
        for name, key in curves.items():
            value = _numbers(entry.get(key) for entry in entries)
            ax.plot(epoch, value, color=_COLOURS[name], marker=marker, label=name, **style)
        chosen = epoch == best[repeat][member]
        size, edge = (6, INK) if repeat == saved else (3, "none")
        dot: dict[str, Any] = {"markersize": size, "markeredgecolor": edge, "label": _LEGEND[-1]}
        # Above all lines, so that consecutive thin lines are rasterized into one image.
        ax.plot(epoch[chosen], value[chosen], "o", color=_COLOURS["validation"], zorder=3, **dot)
    for chosen_epoch in sorted(set(best[saved])):
        ax.axvline(chosen_epoch, color=INK, linewidth=0.7, linestyle=":", zorder=1)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    low, high = ax.dataLim.intervaly
    if 0 < low < high / 50:
        ax.set_yscale("log")
    ax.spines[["top", "right"]].set_visible(False)
    # The lines of the saved repeat come last, so the legend shows these.
    lines = {line.get_label(): line for line in ax.lines if line.get_label() in _LEGEND}
    handles = [lines[name] for name in _LEGEND if name in lines]
    spacing = {"columnspacing": 1.2, "handletextpad": 0.5}
    _figure(ax).legend(handles=handles, loc="outside upper center", ncols=3, **spacing)


def _numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


# ---------------------------------------------------------------------- predictions


def _draw_predictions(figure: TaskFigure) -> list[str]:
    """Draw the panels that a task has made."""
    panels = _panels(len(figure.panels), (2.3, 2.5) if figure.is_curve else (3.1, 3.1))
    for ax, (_, x, y) in zip(panels, figure.panels, strict=True):
        low, high, margin = 0.0, 1.0, 0.0
        if figure.is_curve:
            ax.plot(x, y, color=_COLOURS["training"], linewidth=1.4)
        else:
            ax.scatter(x, y, 9, _COLOURS["training"], alpha=0.45, linewidths=0, zorder=2)
            ax.locator_params(nbins=5)
            if len(x):
                low, high = min(x.min(), y.min()), max(x.max(), y.max())
                margin = 0.04 * (high - low) or 1.0
        ax.axline((0, 0), slope=1, color=INK, linewidth=0.8, linestyle="--", zorder=1)
        ax.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
        ax.set(aspect="equal", xlabel=figure.axes[0], ylabel=figure.axes[1])
        ax.spines[["top", "right"]].set_visible(False)
    return _svgs(panels, "prediction", [f"{figure.label}: {one.name}" for one in figure.panels])
