"""Compare training on padded minibatches, replayed by a GPU, with the plain loop.

    HAARPOOL_DATA=... python benchmarks/padded.py [--out results/padded.json]

The exit code is 1 if a result is outside its limits.

Thirty repeats of the default network on NCI1 with dropout, 20 epochs each, the same splits and
first weights on both sides; dropout differs. Both kinds share the GPU in processes. Times are of
the first repeat alone, before the others, with validation and capture.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch

from common import report, seconds
from haarpool.bench.measure import BenchOptions
from haarpool.bench.results import Measurement
from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup
from haarpool.training.loop import Trainer
from haarpool.training.run import Run, start_run

REPEATS, EPOCHS, PROCESSES = 30, 20, 15
LIMIT_MS = 1.9


def start() -> Run:
    """Prepare NCI1 on the GPU."""
    config = RunConfig(
        arch="3GIN64-HP-GIN64-SUM-FC64", batch_size=32, dropout=0.5, lr=0.001,
        epochs=EPOCHS, repeats=REPEATS, split="random",
    )  # fmt: skip
    group = ProcessGroup(device=torch.device("cuda"))
    return start_run(read_graphs("NCI1"), config, group, progress=False)


def score(fit: Trainer) -> float:
    """Train all epochs; return the test accuracy of the epoch that is best in validation."""
    for _ in range(EPOCHS):
        fit.run_epoch(lambda: None)
    fit.load_best()
    test = fit.split.test
    return 100 * fit.evaluate(fit.outputs(test), test)[1]


def score_in_process(repeat: int, padded: bool) -> float:
    """Run a repeat in a process of its own."""
    torch.set_num_threads(1)
    return score(Trainer(start(), repeat, padded=padded))


def measure() -> Iterator[Measurement]:
    run = start()
    steps = len(run.splits[0].train) / run.config.batch_size
    Trainer(run, 0, padded=False).run_epoch(lambda: None)  # compiles the kernels
    plain = Trainer(run, 0, padded=False)
    plain_ms = 1e3 * seconds(lambda: plain.run_epoch(lambda: None)) / steps
    padded = Trainer(run, 0, padded=True)
    padded_ms = 1e3 * seconds(lambda: score(padded)) / (EPOCHS * steps)
    yield Measurement("padded step, ms", padded_ms, at_most=LIMIT_MS)
    yield Measurement(
        "plain step over padded step", plain_ms / padded_ms, note=f"{plain_ms:.2f} ms"
    )

    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        futures = [
            [pool.submit(score_in_process, repeat, padded) for repeat in range(REPEATS)]
            for padded in (True, False)
        ]
        scores = np.array([[future.result() for future in kind] for kind in futures])
    means = scores.mean(axis=1)
    error = np.hypot(*scores.std(axis=1, ddof=1)) / np.sqrt(REPEATS)
    difference = scores[0] - scores[1]
    note = (
        f"{means[0]:.2f} padded, {means[1]:.2f} plain, {REPEATS} repeats; paired difference "
        f"{difference.mean():+.2f} ± {difference.std(ddof=1) / np.sqrt(REPEATS):.2f}"
    )
    name = "difference of the mean test accuracies over its standard error"
    yield Measurement(name, abs(means[0] - means[1]) / error, at_most=1, note=note)


if __name__ == "__main__":
    report(__doc__, measure(), "padded.json", BenchOptions(torch.device("cuda")))
