"""Measure the overhead of the training loop and the memory of prediction.

    HAARPOOL_DATA=... python benchmarks/training.py [--out results/training.json]

The exit code is 1 if a result is outside its limits.

Steps: the loop of `haarpool train` (select a batch, loss, gradient, Adam, progress bar) is compared
with a minimal hand-written loop over ready-made batches. Times are the minimum of several rounds;
each round runs all loops. For information: the loops of Lightning Fabric and Accelerate if they are
installed. `haarpool bench` measures the time of a step.
Memory: the peak of `haarpool predict` on 10,000 and on 100,000 molecules in a CSV file, each in its
own process.
"""

from __future__ import annotations

import importlib.util
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from common import report, run_haarpool, seconds
from haarpool.bench.results import Measurement
from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, num_threads
from haarpool.training.loop import Trainer
from haarpool.training.preparation import choose_threads
from haarpool.training.presets import preset
from haarpool.training.run import Run, make_network, start_run


def minibatches(run: Run, rng: np.random.Generator) -> Iterator[Any]:
    """Select the minibatches of one epoch, one by one."""
    for chosen in run.batches.epoch(run.splits[0].train, run.config.batch_size, rng):
        yield run.batches.take(chosen)


def bare(run: Run, batches: Callable[[], Iterable[Any]], driver: Any = None) -> Callable[[], None]:
    """Return a minimal training loop, inside of Lightning Fabric or Accelerate if one is given."""
    network = make_network(run.config, run.graphs, run.encoding).train()
    lr, decay = run.config.lr, run.config.weight_decay
    optimizer = torch.optim.Adam(network.parameters(), lr, weight_decay=decay, fused=True)
    forward = network
    if driver is not None:
        prepare = getattr(driver, "setup", None) or driver.prepare
        forward, optimizer = prepare(network, optimizer)

    def epoch() -> None:
        for batch in batches():
            optimizer.zero_grad()
            loss = network.loss(forward(batch), batch["y"])
            loss.backward() if driver is None else driver.backward(loss)
            optimizer.step()

    return epoch


def drivers() -> dict[str, Any]:
    """Return Lightning Fabric and Accelerate, those that are installed."""
    found = {}
    if importlib.util.find_spec("lightning_fabric"):
        from lightning_fabric import Fabric

        found["lightning_fabric"] = Fabric(accelerator="cpu", devices=1)
    if importlib.util.find_spec("accelerate"):
        from accelerate import Accelerator

        found["accelerate"] = Accelerator(cpu=True)
    return found


def engine(run: Run) -> Callable[[], None]:
    """Return the training loop of `haarpool train`."""
    fit = Trainer(run, 0)
    bar = tqdm(total=10**9, file=io.StringIO())
    return lambda: fit._train(np.random.default_rng(0), bar.update)


def steps(name: str, which: str, rounds: int) -> Iterator[Measurement]:
    """Compare the loops on one dataset; each round runs all of them."""
    config = RunConfig(**preset(which, name), precision="float32")
    run = start_run(read_graphs(name), config, ProcessGroup(), progress=False)
    ready = list(minibatches(run, np.random.default_rng(0)))
    loops = {
        "bare": bare(run, lambda: ready),
        "engine": engine(run),
        "gathering": bare(run, partial(minibatches, run, np.random.default_rng(0))),
    }
    loops |= {name: bare(run, lambda: ready, driver) for name, driver in drivers().items()}
    threads = choose_threads(run.network, run.graphs, config.batch_size)
    with num_threads(threads):  # as `haarpool train` does
        rows = [[seconds(loop) for loop in loops.values()] for _ in range(rounds)]
    plain, engine_time, selecting, *others = np.min(rows, axis=0)
    title = f"{name}, {config.arch}"
    yield Measurement(
        f"{title}: steps per second over a bare loop",
        plain / engine_time,
        at_least=0.9 if name == "NCI1" else None,
        note=f"{1e3 * plain / len(ready):.2f} ms a step",
    )
    yield Measurement(
        f"{title}: overhead over a bare loop with the same batching",
        engine_time / selecting - 1,
        at_most=0.05 if name == "MUTAG" else None,
    )
    for other, time in zip(list(loops)[3:], others, strict=True):
        overhead = time / plain - 1
        yield Measurement(f"{title}: overhead of {other}", overhead, note="for information")


def molecules(path: Path, count: int) -> None:
    """Write a CSV file of valid, almost always different SMILES."""
    rng = np.random.default_rng(0)
    parts = np.array(["C", "O", "N", "C(F)", "C(=O)", "c1ccccc1", "C1CC1", "C(C)", "S", "C(Cl)"])
    with open(path, "w") as file:
        file.write("smiles,toxic\n")
        for chosen in rng.integers(0, len(parts), (count, 8)):
            smiles = "C" + "".join(parts[chosen]) + "C"
            file.write(f"{smiles},{int(chosen.sum() % 2)}\n")


def memory() -> Iterator[Measurement]:
    """Measure the peak memory of `haarpool predict` for two sizes of input."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        molecules(root / "train.csv", 300)
        train = ("train", root / "train.csv", "--target", "toxic", "--epochs", 2)
        run_haarpool(*train, "--out", root / "run", "--quiet")
        peaks, times, out = {}, {}, root / "out.csv"
        for count in (10_000, 100_000):
            molecules(root / "new.csv", count)
            predict = ("predict", root / "run", root / "new.csv", "--quiet", "--out", out)
            peaks[count], times[count] = run_haarpool(*predict)
            assert len(out.read_text().splitlines()) == count + 1
        yield Measurement(
            "peak memory of predict, 100,000 over 10,000 molecules",
            peaks[100_000] / peaks[10_000],
            at_most=1.05,
            note=" GB, ".join(f"{peak:.2f}" for peak in peaks.values()) + " GB",
        )
        yield Measurement("molecules per second", 1e5 / times[100_000], note="for information")


def measure() -> Iterator[Measurement]:
    yield from steps("MUTAG", "best", 100)
    yield from steps("NCI1", "paper", 5)
    yield from memory()


if __name__ == "__main__":
    report(__doc__, measure(), "training.json")
