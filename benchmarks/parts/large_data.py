"""The memory of training and prediction on a dataset as large as REDDIT.

Takes about five minutes on a quiet core.

The graphs are generated: 2,000 discussions with a million nodes, each with one or two hubs of up to
3,000 neighbours. They are written in TU layout; then `haarpool train` reads them, builds their
chains and trains the default network for one epoch, and `haarpool predict` predicts all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import BenchOptions, run_haarpool
from benchmarks.results import Measurement

TITLE = "commands on 2,000 graphs with a million nodes; value: peak memory in GB"
FILE = "large_data"
SIZES = (2_000, 1_000_000, 3_000)  # graphs, nodes, neighbours of the largest hub
LIMIT = 4.0  # GB


def write_discussions(folder: Path, graphs: int, nodes: int, hub_size: int) -> None:
    """Write the dataset. A node answers a hub, or a random earlier node; class 1 has two hubs."""
    rng = np.random.default_rng(0)
    sizes = np.minimum(rng.lognormal(size=graphs), 7)
    sizes = np.maximum((sizes * nodes / sizes.sum()).astype(np.int64), 6)
    classes = rng.integers(0, 2, graphs)
    sizes[0], classes[0] = 5 * hub_size // 4, 0
    graph = np.repeat(np.arange(graphs), sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    node = np.arange(len(graph)) - first  # in its graph
    earlier = (rng.random(len(graph)) * node).astype(np.int64)
    answers_hub = rng.random(len(graph)) < 0.8
    hub = np.minimum(rng.integers(0, 1 + classes[graph]), node - 1)
    parent = np.where(answers_hub, hub, earlier)
    child = np.flatnonzero(node > 0)
    pairs = np.stack([child, (first + parent)[child]], axis=1) + 1
    folder.mkdir(parents=True)
    np.savetxt(folder / "THREADS_A.txt", np.concatenate([pairs, pairs[:, ::-1]]), "%d", ", ")
    np.savetxt(folder / "THREADS_graph_indicator.txt", graph + 1, "%d")
    np.savetxt(folder / "THREADS_graph_labels.txt", classes, "%d")


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure each command."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        data, run, cache = root / "THREADS", root / "run", root / "cache"
        write_discussions(data / "raw", *((20, 10_000, 30) if options.quick else SIZES))
        commands = {
            "info": ("info", data),
            "train, one epoch": ("train", data, "--epochs", 1, "--quiet", "--out", run),
            "predict": ("predict", run, data, "--quiet", "--out", root / "predictions.csv"),
        }
        for name, command in commands.items():
            memory, spent = run_haarpool(*command, HAARPOOL_CACHE=cache)
            title, note = f"peak memory of {name}", f"{spent:.0f} s"
            yield Measurement(title, memory, "GB", at_most=LIMIT, note=note)
