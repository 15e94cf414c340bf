"""Measure the memory of training and prediction on a dataset as large as REDDIT.

    python benchmarks/large_data.py [--out results/large_data.json]

The exit code is 1 if a result is outside its limits. Takes about five minutes on a quiet core.

The graphs are generated: 2,000 discussions with a million nodes, each with one or two hubs of up to
3,000 neighbours. They are written in TU layout; then `haarpool train` reads them, builds their
chains and trains the default network for one epoch, and `haarpool predict` predicts all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from common import Result, report

HAARPOOL = Path(sysconfig.get_path("scripts")) / "haarpool"
GRAPHS, NODES, HUB = 2_000, 1_000_000, 3_000
LIMIT = 4.0  # GB


def write_discussions(folder: Path, name: str = "THREADS", seed: int = 0) -> Path:
    """Write the dataset. A node answers a hub, or a random earlier node; class 1 has two hubs."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.lognormal(size=GRAPHS), 7)
    sizes = np.maximum((sizes * NODES / sizes.sum()).astype(np.int64), 6)
    classes = rng.integers(0, 2, GRAPHS)
    sizes[0], classes[0] = 5 * HUB // 4, 0
    graph = np.repeat(np.arange(GRAPHS), sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    node = np.arange(len(graph)) - first  # in its graph
    earlier = (rng.random(len(graph)) * node).astype(np.int64)
    answers_hub = rng.random(len(graph)) < 0.8
    hub = np.minimum(rng.integers(0, 1 + classes[graph]), node - 1)
    parent = np.where(answers_hub, hub, earlier)
    child = np.flatnonzero(node > 0)
    pairs = np.stack([child, (first + parent)[child]], axis=1) + 1
    folder.mkdir(parents=True)
    np.savetxt(folder / f"{name}_A.txt", np.concatenate([pairs, pairs[:, ::-1]]), "%d", ", ")
    np.savetxt(folder / f"{name}_graph_indicator.txt", graph + 1, "%d")
    np.savetxt(folder / f"{name}_graph_labels.txt", classes, "%d")
    return folder


def peak(*command: object, cache: Path) -> tuple[float, float]:
    """Run `haarpool` in its own process; return its peak memory in GB and its time in seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [HAARPOOL, *map(str, command)],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"HAARPOOL_CACHE": str(cache)},
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024 / 1e9, time.perf_counter() - start


def measure() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        data, run, cache = root / "THREADS", root / "run", root / "cache"
        write_discussions(data / "raw")
        commands = {
            "info": ("info", data),
            "train, one epoch": ("train", data, "--epochs", 1, "--quiet", "--out", run),
            "predict": ("predict", run, data, "--quiet", "--out", root / "predictions.csv"),
        }
        for name, command in commands.items():
            memory, seconds = peak(*command, cache=cache)
            note = f"GB, {seconds:.0f} s"
            yield Result(f"peak memory of {name}", memory, at_most=LIMIT, note=note)


if __name__ == "__main__":
    description = __doc__ or ""
    sys.exit(report(description, measure(), "results/large_data.json", torch=torch.__version__))
