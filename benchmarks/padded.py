"""Compare training on padded minibatches, replayed by a GPU, with the plain loop.

    HAARPOOL_DATA=... python benchmarks/padded.py [--out results/padded.json]

The exit code is 1 if a result is outside its limits.

Ten repeats of the default network on NCI1 with dropout, 40 epochs each, the same splits and first
weights on both sides; dropout differs. All padded repeats run one after the other, as in `haarpool
train`. Plain repeats share the GPU in processes, because they take ten times as long; their time is
measured on two epochs of the first, before the others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
import torch_geometric

from common import Result, report, seconds
from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup
from haarpool.training.loop import Trainer
from haarpool.training.run import Run, make_network, start_run

REPEATS, EPOCHS = 10, 40
PROCESSES = 10


def start() -> Run:
    """Prepare NCI1 on the GPU."""
    config = RunConfig(
        arch="3GIN64-HP-GIN64-SUM-FC64", batch_size=32, dropout=0.5, lr=0.001,
        epochs=EPOCHS, repeats=REPEATS, split="random",
    )  # fmt: skip
    group = ProcessGroup(device=torch.device("cuda"))
    return start_run(read_graphs("NCI1"), config, group, progress=False)


def trainer(run: Run, repeat: int, padded: bool) -> Trainer:
    """Return the trainer of a repeat with new weights."""
    network = make_network(run.config, run.graphs, run.encoding, repeat).to(run.group.device)
    arguments = (network, run.batches, run.graphs, run.splits[repeat], run.config)
    return Trainer(*arguments, repeat, run.group, padded=padded)


def score(fit: Trainer) -> float:
    """Train all epochs; return the test accuracy of the epoch that is best in validation."""
    for _ in range(EPOCHS):
        fit.run_epoch(lambda: None)
    fit.load_best()
    test = fit.split.test
    return 100 * fit.evaluate(fit.outputs(test), test)[1]


def plain_score(repeat: int) -> float:
    """Run a repeat without padding, in a process of its own."""
    torch.set_num_threads(1)
    return score(trainer(start(), repeat, padded=False))


def main() -> Iterator[Result]:
    """Yield the results."""
    run = start()
    steps = len(run.splits[0].train) / run.config.batch_size
    plain = trainer(run, 0, padded=False)
    plain.run_epoch(lambda: None)  # compiles the kernels
    plain_ms = 1e3 * seconds(lambda: plain.run_epoch(lambda: None)) / steps

    padded: list[float] = []
    repeats = [trainer(run, repeat, padded=True) for repeat in range(REPEATS)]
    spent = seconds(lambda: padded.extend(map(score, repeats)))
    padded_ms = 1e3 * spent / (REPEATS * EPOCHS * steps)
    note = f"{plain_ms:.2f} ms and {padded_ms:.2f} ms a step, validation and capture included"
    yield Result("throughput of ten repeats, padded over plain", plain_ms / padded_ms, 8, note=note)

    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        plain_scores = list(pool.map(plain_score, range(REPEATS)))
    difference = np.subtract(padded, plain_scores)
    error = np.hypot(np.std(padded, ddof=1), np.std(plain_scores, ddof=1)) / np.sqrt(REPEATS)
    note = (
        f"{np.mean(padded):.2f} and {np.mean(plain_scores):.2f}; paired difference "
        f"{difference.mean():+.2f} ± {difference.std(ddof=1) / np.sqrt(REPEATS):.2f}"
    )
    ratio = abs(difference.mean()) / error
    name = "difference of the mean test accuracies over its standard error"
    yield Result(name, ratio, at_most=1, note=note)


if __name__ == "__main__":
    versions = {
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "device": torch.cuda.get_device_name(),
    }
    sys.exit(report(__doc__ or "", main(), "results/padded.json", **versions))
