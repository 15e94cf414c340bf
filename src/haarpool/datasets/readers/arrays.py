"""NumPy files of a graph with labels at its nodes, or of one graph with many signals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from haarpool.datasets.readers.registry import Reader, register
from haarpool.errors import HaarPoolError, HaarPoolWarning

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs


@register
class Arrays(Reader):
    """A graph as arrays, see `graphs_of_arrays`; x (S, N, d) are S signals on the same graph."""

    phrase = ".npz file of a graph with labels at its nodes"
    suffixes = (".npz",)
    tasks = ("node_classification", "node_regression")

    def read(self, source: Path, task: str | None = None, *, labels: bool = True) -> Graphs:
        """Read the arrays; nothing is unpickled."""
        import warnings
        import zipfile

        import numpy as np

        from haarpool.datasets.nodes import ARRAYS, graphs_of_arrays

        expected = "an .npz file with edge_index, x and y, written by numpy.savez"
        try:
            with np.load(source, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
            reason = " ".join(str(error).split())[:80]
            raise HaarPoolError(expected, f"{source} ({reason})", "save it again") from error
        if "edge_index" not in arrays:
            got = f"{', '.join(arrays) or 'nothing'} in {source}"
            raise HaarPoolError(expected, got, "add edge_index (2, E)")
        if unknown := sorted(set(arrays) - {*ARRAYS, "target_names"}):
            text = f"arrays of {source} that are not known are ignored: {', '.join(unknown)}"
            warnings.warn(text, HaarPoolWarning, stacklevel=4)
        try:
            return graphs_of_arrays(arrays, source.stem, task, labels=labels)
        except HaarPoolError as error:
            raise error.located(f"in {source}") from None

    def sample(self, folder: Path) -> Path:
        """Write 30 signals on a ring of 12 nodes, each a random walk of heat."""
        import numpy as np

        rng, nodes = np.random.default_rng(0), np.arange(12)
        pairs = np.stack([nodes, (nodes + 1) % 12])
        x = rng.normal(size=(30, 12, 1)).astype(np.float32)
        y = (np.roll(x, 1, 1) + np.roll(x, -1, 1))[:, :, 0]
        edges = np.concatenate([pairs, pairs[::-1]], 1)
        np.savez(folder / "sample.npz", edge_index=edges, x=x, y=y)
        return folder / "sample.npz"
