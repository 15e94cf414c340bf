"""A training step, with the cut of the minibatch, for HaarPooling and each other pooling."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from benchmarks.measure import Action, BenchOptions, Times, measure
from benchmarks.results import Measurement
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.locations import is_available
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, deterministic, num_threads
from haarpool.training.loop import Trainer
from haarpool.training.preparation import choose_threads
from haarpool.training.presets import preset
from haarpool.training.run import Run, start_run

TITLE = "a step of 3GIN64-HP-GIN64-SUM-FC64 on 32 graphs; other poolings instead of HP; value: ms"
TOKENS = ("HP", "EIG", "TP", "SP", "EP", "DP", "STRUCT", "LAP")
LIMIT_MS = 1.9  # on a GPU, for HaarPooling as `haarpool train` runs it
STEPS = 20  # in a round
COMPILE_SECONDS = 75  # after this no further network is compiled


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure all poolings: plain, captured, compiled."""
    graphs = dataset(options)
    tokens = ("HP", "TP") if options.quick else TOKENS
    runs, first = dict[str, Run](), Times()
    for token in tokens:
        one = runs[token] = _start(token, graphs, options)
        can_capture = options.on_gpu and one.network.has_static_shapes
        ways = ("captured", "plain") if can_capture else ("plain",)
        times = _measure(one, {way: _epoch(one, way == "captured") for way in ways}, options)
        first = first if first.values else times[ways[0]]
        for way in ways:
            yield _line(token, way, times[way], first, graphs)
    if not options.quick:
        yield from _compiled(runs, first, graphs, options)


def _compiled(
    runs: dict[str, Run], first: Times, graphs: Graphs, options: BenchOptions
) -> Iterator[Measurement]:
    """Measure compiled networks, as many as there is time for."""
    start, logger = time.perf_counter(), logging.getLogger("torch._dynamo")
    level = logger.level
    for token, one in runs.items():
        if time.perf_counter() - start > COMPILE_SECONDS:
            times = {"compiled": Times(error=f"left out after {COMPILE_SECONDS} s of compiling")}
        else:
            torch.compiler.reset()  # a network is compiled at most eight times
            compiled = replace(one, config=replace(one.config, compile=True))
            logger.setLevel(logging.ERROR)  # graph breaks of other poolings are no news
            times = _measure(one, {"compiled": _epoch(compiled, False)}, options)
            logger.setLevel(level)
        yield _line(token, "compiled", times["compiled"], first, graphs)


def dataset(options: BenchOptions) -> Graphs:
    """Read NCI1 if it is on this machine, else make the dataset `rings`."""
    name = "NCI1" if is_available("NCI1") and not options.quick else "rings"
    return read_graphs(name)


def _start(token: str, graphs: Graphs, options: BenchOptions) -> Run:
    arch = f"3GIN64-{token}-GIN64-SUM-FC64"
    config = RunConfig(**{**preset("best", graphs.name), "arch": arch, "batch_size": 32})
    group = ProcessGroup(device=options.device)
    started = start_run(graphs, config, group, progress=False)
    steps = 2 if options.quick else min(STEPS, len(started.splits[0].train) // 32)
    split = started.splits[0]._replace(train=started.splits[0].train[: 32 * steps])
    return replace(started, splits=[split])


def _epoch(one: Run, padded: bool) -> Action:
    """Return an epoch of a new network as an action."""
    trainer = Trainer(one, 0, padded=padded)
    rng = np.random.default_rng(0)
    return lambda: trainer._train(rng, lambda: None)


def _measure(one: Run, epochs: dict[str, Action], options: BenchOptions) -> dict[str, Times]:
    """Measure epochs under the conditions of `haarpool train`; return times per step."""
    threads = choose_threads(one.network, one.graphs, 32)
    static = one.network.has_static_shapes
    with num_threads(threads), deterministic(options.device, algorithms=not static):
        times = measure(epochs, options)
    steps = len(one.splits[0].train) // 32
    return {way: spent.divided_by(steps) for way, spent in times.items()}


def _line(token: str, way: str, times: Times, first: Times, graphs: Graphs) -> Measurement:
    return Measurement(
        f"{token}, {way}, {graphs.name}",
        times.median,
        "ms per step",
        times,
        at_most=LIMIT_MS if (token, way) == ("HP", "captured") else None,
        case={"pooling": token, "way": way, "dataset": graphs.name},
        note=f"{times.median / first.median:.2f} x the first line" if times.values else "",
        optional=token != "HP" or way == "compiled",
    )
