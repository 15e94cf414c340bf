"""The figure of the paper on QM7: training loss and validation error over the epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from haarpool._files import atomic_write
from haarpool.comparison.learners import Line

PANELS = {"train_loss": "training loss", "validation": "validation MAE [kcal/mol]"}


def draw_history(lines: Mapping[str, Sequence[Line]], path: Path) -> None:
    """Draw the mean over the splits of each method, with a band of one standard deviation.

    Args:
        lines: Trials by name of the method; trials may have different numbers of epochs.
        path: The PNG file to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (key, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        for name, trials in lines.items():
            shortest = min(len(line["history"][key]) for line in trials)
            values = np.array([line["history"][key][:shortest] for line in trials], float)
            epochs, mean = np.arange(1, shortest + 1), values.mean(axis=0)
            std = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(shortest)
            (drawn,) = axes.plot(epochs, mean, label=f"{name} ({len(values)} splits)")
            axes.fill_between(epochs, mean - std, mean + std, color=drawn.get_color(), alpha=0.2)
        axes.set(xlabel="epoch", ylabel=label)
        axes.legend(frameon=False)
    with atomic_write(path) as partial:
        figure.savefig(partial, dpi=120, format="png", metadata={"Software": None})
