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
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric

from common import Result, report, seconds
from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, num_threads
from haarpool.training.loop import Trainer
from haarpool.training.preparation import choose_threads
from haarpool.training.presets import preset
from haarpool.training.run import Run, make_network, start_run

HAARPOOL = Path(sysconfig.get_path("scripts")) / "haarpool"


def start(name: str, which: str) -> Run:
    """Start a run on a dataset with a preset."""
    config = RunConfig(**preset(which, name), precision="float32")
    return start_run(read_graphs(name), config, ProcessGroup(), progress=False)


def new_network(run: Run) -> tuple[Any, torch.optim.Optimizer]:
    """Build the network of a run and its optimizer."""
    network = make_network(run.config, run.graphs, run.encoding).train()
    lr, decay = run.config.lr, run.config.weight_decay
    return network, torch.optim.Adam(network.parameters(), lr, weight_decay=decay, fused=True)


def batches_of(run: Run) -> list[dict[str, torch.Tensor]]:
    """Return the batches of one epoch."""
    order = np.random.default_rng(0)
    chosen = run.batches.epoch(run.splits[0].train, run.config.batch_size, order)
    return [run.batches.take(graphs) for graphs in chosen]


def bare(run: Run, ready: list[Any] | Any) -> Callable[[], None]:
    """Return a minimal training loop over ready-made batches."""
    network, optimizer = new_network(run)

    def epoch() -> None:
        for batch in ready:
            optimizer.zero_grad()
            loss = network.loss(network(batch), batch["y"])
            loss.backward()
            optimizer.step()

    return epoch


def gathering(run: Run) -> Callable[[], None]:
    """Return the minimal loop over batches that are selected one by one."""
    store, order = run.batches, np.random.default_rng(0)

    class Ready:
        def __iter__(self) -> Iterator[Any]:
            for chosen in store.epoch(run.splits[0].train, run.config.batch_size, order):
                yield store.take(chosen)

    return bare(run, Ready())


def engine(run: Run) -> Callable[[], None]:
    """Return the training loop of `haarpool train`."""
    from tqdm import tqdm

    network = make_network(run.config, run.graphs, run.encoding)
    fit = Trainer(network, run.batches, run.graphs, run.splits[0], run.config, 0, ProcessGroup())
    bar = tqdm(total=10**9, file=io.StringIO())
    return lambda: fit._train(np.random.default_rng(0), bar.update)


def fabric() -> tuple[Any, Any]:
    from lightning_fabric import Fabric

    driver = Fabric(accelerator="cpu", devices=1)
    return driver.setup, driver.backward


def accelerate() -> tuple[Any, Any]:
    from accelerate import Accelerator

    driver = Accelerator(cpu=True)
    return driver.prepare, driver.backward


def driven(run: Run, ready: list[Any], setup: Any, backward: Any) -> Callable[[], None]:
    """Return the minimal loop inside Lightning Fabric or Accelerate."""
    plain, optimizer = new_network(run)
    network, optimizer = setup(plain, optimizer)

    def epoch() -> None:
        for batch in ready:
            optimizer.zero_grad()
            backward(plain.loss(network(batch), batch["y"]))
            optimizer.step()

    return epoch


def race(loops: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the seconds per epoch, minimum over rounds; each round runs all loops."""
    best = dict.fromkeys(loops, float("inf"))
    for _ in range(rounds):
        for name, loop in loops.items():
            best[name] = min(best[name], seconds(loop))
    return best


def steps(name: str, which: str, rounds: int) -> Iterator[Result]:
    """Compare the loops on one dataset."""
    run = start(name, which)
    ready = batches_of(run)
    loops = {"bare": bare(run, ready), "engine": engine(run), "gathering": gathering(run)}
    for package, make in {"lightning_fabric": fabric, "accelerate": accelerate}.items():
        if importlib.util.find_spec(package):
            loops[package] = driven(run, ready, *make())
    threads = choose_threads(run.network, run.graphs, run.config.batch_size)
    with num_threads(threads):  # as `haarpool train` does
        times = race(loops, rounds)
    title = f"{name}, {run.config.arch}"
    note = f"{1e3 * times['bare'] / len(ready):.2f} ms a step"
    limit = {"at_least": 0.9} if name == "NCI1" else {}
    yield Result(f"{title}: steps per second over a bare loop", times["bare"] / times["engine"],
                 **limit, note=note)  # fmt: skip
    limit = {"at_most": 0.05} if name == "MUTAG" else {}
    overhead = times["engine"] / times["gathering"] - 1
    yield Result(f"{title}: overhead over a bare loop with the same batching", overhead, **limit)
    for other in loops:
        if other not in ("bare", "engine", "gathering"):
            ratio = times[other] / times["bare"] - 1
            yield Result(f"{title}: overhead of {other}", ratio, note="for information")


def molecules(path: Path, count: int) -> None:
    """Write a CSV file of valid, almost always different SMILES."""
    rng = np.random.default_rng(0)
    parts = np.array(["C", "O", "N", "C(F)", "C(=O)", "c1ccccc1", "C1CC1", "C(C)", "S", "C(Cl)"])
    with open(path, "w") as file:
        file.write("smiles,toxic\n")
        for chosen in rng.integers(0, len(parts), (count, 8)):
            smiles = "C" + "".join(parts[chosen]) + "C"
            file.write(f"{smiles},{int(chosen.sum() % 2)}\n")


def memory() -> Iterator[Result]:
    """Measure the peak memory of `haarpool predict` for two sizes of input."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        molecules(root / "train.csv", 300)
        command = [HAARPOOL, "train", root / "train.csv", "--target", "toxic", "--epochs", "2"]
        subprocess.run(
            [*command, "--out", root / "run", "--quiet"], check=True, capture_output=True
        )
        peaks, times = {}, {}
        for count in (10_000, 100_000):
            molecules(root / "new.csv", count)
            command = [HAARPOOL, "predict", root / "run", root / "new.csv", "--quiet"]
            out = ["--out", root / "out.csv"]
            start = time.perf_counter()
            process = subprocess.Popen([*command, *out], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            times[count], peaks[count] = time.perf_counter() - start, usage.ru_maxrss / 1024
            assert len((root / "out.csv").read_text().splitlines()) == count + 1
        note = f"{peaks[10_000]:.0f} MB, {peaks[100_000]:.0f} MB"
        yield Result("peak memory of predict, 100,000 over 10,000 molecules",
                     peaks[100_000] / peaks[10_000], at_most=1.05, note=note)  # fmt: skip
        yield Result("molecules per second", 1e5 / times[100_000], note="for information")


def measure() -> Iterator[Result]:
    yield from steps("MUTAG", "best", 100)
    yield from steps("NCI1", "paper", 5)
    yield from memory()


if __name__ == "__main__":
    versions = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}
    machine = {"threads": torch.get_num_threads(), **versions}
    sys.exit(report(__doc__, measure(), "results/training.json", **machine))
