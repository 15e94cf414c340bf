"""A training step, with the cut of the minibatch, for HaarPooling and each other pooling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch

from haarpool.bench.measure import Action, Settings, Stopwatch, Times, measure
from haarpool.bench.results import Line
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.locations import is_available
from haarpool.haar.kernels._torch_internals import only_errors_of_compile
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, deterministic, num_threads
from haarpool.training.loop import Trainer
from haarpool.training.preparation import choose_threads
from haarpool.training.presets import preset
from haarpool.training.run import Run, make_network, start_run

TITLE = "a step of 3GIN64-HP-GIN64-SUM-FC64 on 32 graphs; other poolings instead of HP; value: ms"
TOKENS = ("HP", "EIG", "TP", "SP", "EP", "DP", "STRUCT", "LAP")
LIMIT_MS = 1.9  # on a GPU, for HaarPooling as `haarpool train` runs it
STEPS = 20  # in a round
COMPILE_SECONDS = 75  # after this no further network is compiled


def run(settings: Settings) -> Iterator[Line]:
    """Yield the lines of all poolings: plain, captured, compiled."""
    graphs = dataset(settings)
    tokens = ("HP", "TP") if settings.quick else TOKENS
    runs, first = dict[str, Run](), Times()
    for token in tokens:
        one = runs[token] = _start(token, graphs, settings)
        ways = {"plain": False}
        if settings.on_gpu and one.network.has_static_shapes:
            ways = {"captured": True, "plain": False}
        trainers = {way: _epoch(one, padded) for way, padded in ways.items()}
        times = _measure(one, trainers, settings)
        first = first if first.values else times[next(iter(ways))]
        for way in ways:
            yield _line(token, way, times[way], first, graphs, settings)
    if not settings.quick:
        yield from _compiled(runs, first, graphs, settings)


def _compiled(
    runs: dict[str, Run], first: Times, graphs: Graphs, settings: Settings
) -> Iterator[Line]:
    """Yield the lines of compiled networks, as many as there is time for."""
    watch = Stopwatch()
    for token, one in runs.items():
        if watch.seconds > COMPILE_SECONDS:
            times = {"compiled": Times(error=f"left out after {COMPILE_SECONDS} s of compiling")}
        else:
            torch.compiler.reset()  # a network is compiled at most eight times
            compiled = replace(one, config=replace(one.config, compile=True))
            with only_errors_of_compile():  # graph breaks of other poolings are no news
                times = _measure(one, {"compiled": _epoch(compiled, False)}, settings)
        yield _line(token, "compiled", times["compiled"], first, graphs, settings)


def dataset(settings: Settings) -> Graphs:
    """Read NCI1 if it is on this machine, else make the dataset `rings`."""
    name = "NCI1" if is_available("NCI1") and not settings.quick else "rings"
    return read_graphs(name)


def _start(token: str, graphs: Graphs, settings: Settings) -> Run:
    arch = f"3GIN64-{token}-GIN64-SUM-FC64"
    config = RunConfig(**{**preset("best", graphs.name), "arch": arch, "batch_size": 32})
    group = ProcessGroup(device=settings.device)
    started = start_run(graphs, config, group, progress=False)
    steps = 2 if settings.quick else min(STEPS, len(started.splits[0].train) // 32)
    split = started.splits[0]._replace(train=started.splits[0].train[: 32 * steps])
    return replace(started, splits=[split])


def _epoch(one: Run, padded: bool) -> Action:
    """Return an epoch of a new network as an action."""
    network = make_network(one.config, one.graphs, one.encoding).to(one.group.device)
    arguments = (network, one.batches, one.graphs, one.splits[0], one.config, 0, one.group)
    trainer = Trainer(*arguments, padded=padded)
    rng = np.random.default_rng(0)
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    return lambda: trainer._train(rng, nothing)


def _measure(one: Run, epochs: dict[str, Action], settings: Settings) -> dict[str, Times]:
    """Measure epochs under the conditions of `haarpool train`; return times per step."""
    threads = choose_threads(one.network, one.graphs, 32)
    static = one.network.has_static_shapes
    with num_threads(threads), deterministic(settings.device, algorithms=not static):
        times = measure(epochs, settings)
    steps = len(one.splits[0].train) // 32
    return {way: spent.divided_by(steps) for way, spent in times.items()}


def _line(
    token: str, way: str, times: Times, first: Times, graphs: Graphs, settings: Settings
) -> Line:
    limited = (token, way) == ("HP", "captured") and not settings.quick
    return Line(
        "training",
        f"{token}, {way}, {graphs.name}",
        times.median,
        "ms per step",
        times,
        at_most=LIMIT_MS if limited else None,
        case={"pooling": token, "way": way, "dataset": graphs.name},
        note=f"{times.median / first.median:.2f} x the first line" if times.values else "",
        error=times.error,
        optional=token != "HP" or way == "compiled",
    )
