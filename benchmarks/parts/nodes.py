"""Networks for every node of a large graph: the time of a training step, and memory on a million.

Steps are on a graph of as many nodes and edges as a power grid of 9,241 buses, with 16 signals:
`HaarUNet` beside the flat network of 16 layers and the same width, and beside PyG's `GraphUNet`,
which takes signals as copies of the graph. The commands train and predict on grids. On a GPU
instead a step on one grid of ten million nodes.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GraphUNet

from benchmarks.measure import (
    BenchOptions,
    captured,
    in_new_process,
    measure,
    peak_memory,
    run_haarpool,
)
from benchmarks.results import Measurement
from haarpool.nn import HaarUNet
from haarpool.training.minibatches import Minibatches

TITLE = "networks for nodes; value: ratio of times of a step, or peak memory in GB"
FILE = "nodes-{device}"
NODES, SIGNALS, WIDTH, LAYERS = 9_241, 16, 64, 16
FLAT_LIMIT = {"cpu": 0.6, "cuda": 0.5}  # of HaarUNet's step over that of the flat network
SIDES = (316, 1_000)  # of the grids
LARGE = 3_163  # side of the grid on a GPU
MEMORY = {"train": 12.0, "predict": 4.0}  # GB on the largest grid, at most
EXPONENT = 1.1  # of the growth of time with the nodes, at most


def scattered(nodes: int, seed: int = 0) -> Data:
    """Return points in the plane, each with edges to its two nearest ones."""
    points = np.random.default_rng(seed).random((nodes, 2))
    near = cKDTree(points).query(points, 3)[1][:, 1:]
    source, target = np.repeat(np.arange(nodes), 2), near.ravel()
    pairs = np.stack([np.minimum(source, target), np.maximum(source, target)])
    pairs = np.unique(pairs, axis=1)
    edges = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], 1))
    weight = torch.from_numpy(1 / np.linalg.norm(points[edges[0]] - points[edges[1]], axis=1))
    return Data(edge_index=edges, edge_weight=weight.float(), x=torch.randn(nodes, 4))


def step_of(network: torch.nn.Module, output: Callable[[], Tensor]) -> Callable[[], None]:
    """Return a training step: forward, backward and AdamW."""
    on_gpu = next(network.parameters()).is_cuda
    optimizer = torch.optim.AdamW(network.parameters(), fused=True, capturable=on_gpu)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        output().square().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def networks(options: BenchOptions) -> Mapping[str, Callable[[], None]]:
    """Return the training step of each network."""
    nodes = 300 if options.quick else NODES
    device, graph = options.device, scattered(nodes)
    levels = max(2, round(math.log2(nodes / 10)))
    unet = HaarUNet(4, 2, width=WIDTH, levels=levels).to(device)
    flat = HaarUNet(4, 2, width=WIDTH, levels=0, depth=LAYERS).to(device)
    transform = unet.transform()
    assert transform is not None
    batch = Minibatches.of([transform(graph)], device).take([0])
    batch["x"] = torch.randn(SIGNALS, nodes, 4, device=device)
    copies = torch.arange(SIGNALS)[:, None] * nodes
    edges = (graph.edge_index[:, None] + copies).flatten(1).to(device)
    rows, of_graph = batch["x"].flatten(0, 1), torch.arange(SIGNALS, device=device)
    of_graph = of_graph.repeat_interleave(nodes)
    peer = GraphUNet(4, WIDTH, 2, depth=levels, pool_ratios=0.5).to(device)
    return {
        "HaarUNet": step_of(unet, lambda: unet(batch)),
        "flat": step_of(flat, lambda: flat(batch)),
        "GraphUNet": step_of(peer, lambda: peer(rows, edges, of_graph)),
    }


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure steps, then the commands on grids."""
    steps = dict(networks(options))
    times = measure(steps, options, once=() if options.on_gpu else ("GraphUNet",))
    own = times["HaarUNet"].median
    size = f"{300 if options.quick else NODES:,} nodes x {SIGNALS} signals"
    if options.on_gpu:
        fast = {name: captured(steps[name]) for name in ("HaarUNet", "flat")}
        replayed = measure(fast, options)
        ratio = replayed["HaarUNet"].median / replayed["flat"].median
        note = f"{replayed['HaarUNet'].median:.2f} ms"
    else:
        ratio, note = own / times["flat"].median, f"{own:.0f} ms"
    yield Measurement(
        f"step of HaarUNet over flat of {LAYERS} layers, {size}", ratio, "x", note=note,
        at_most=FLAT_LIMIT[options.device.type],
    )  # fmt: skip
    peer = times["GraphUNet"]
    yield Measurement(
        f"step of GraphUNet over HaarUNet, eager, {size}", peer.median / own, "x", at_least=3.0,
        note=f"{peer.median:.0f} ms", error=peer.error,
    )  # fmt: skip
    if options.on_gpu:
        yield in_new_process(large_step, options)  # all memory for it
    else:
        yield from commands(options)


def large_step(options: BenchOptions) -> Measurement:
    """Measure a step on one grid of ten million nodes, and its memory in sizes of x."""
    side = 20 if options.quick else LARGE
    nodes = side * side
    unet = HaarUNet(4, 1, width=WIDTH, levels=round(math.log2(nodes / 10))).to(options.device)
    transform = unet.transform()
    assert transform is not None
    grid = Data(x=torch.randn(nodes, 4), edge_index=torch.from_numpy(grid_edges(side)))
    start = time.perf_counter()
    data = transform(grid)
    in_chain = time.perf_counter() - start
    batch = Minibatches.of([data], options.device).take([0])
    step = step_of(unet, lambda: unet(batch))
    times = measure({"step": step}, options)["step"]
    size_of_x = 4 * nodes * WIDTH
    peak = peak_memory(step, options)
    return Measurement(
        f"step on a grid of {nodes:,} nodes, peak memory", peak / size_of_x, "sizes of x", times,
        note=f"{peak / 1e9:.0f} GB, x of width {WIDTH}; chain in {in_chain:.0f} s",
    )  # fmt: skip


def grid_edges(side: int) -> np.ndarray:
    """Return the edges of a square grid, numbered row by row, in both directions."""
    number = np.arange(side * side).reshape(side, side)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    down = np.stack([number[:-1].ravel(), number[1:].ravel()])
    pairs = np.concatenate([across, down], axis=1)
    return np.concatenate([pairs, pairs[::-1]], axis=1)


def write_grid(path: Path, side: int) -> None:
    """Write a grid whose nodes have a value: a smooth function of their noisy features."""
    rng = np.random.default_rng(0)
    smooth = np.sin(np.arange(side) / 20)[:, None] * np.cos(np.arange(side) / 30)
    x = smooth.reshape(-1, 1) + rng.normal(size=(side * side, 4))
    np.savez(path, edge_index=grid_edges(side), x=x.astype(np.float32), y=smooth.ravel())


def commands(options: BenchOptions) -> Iterator[Measurement]:
    """Measure `haarpool train`, two epochs, and `haarpool predict`."""
    sides = (10, 20) if options.quick else SIDES
    spent: dict[str, list[float]] = {name: [] for name in MEMORY}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for side in sides:
            data, folder = root / f"grid-{side}.npz", root / f"run-{side}"
            write_grid(data, side)
            arguments = {
                "train": ("train", data, "--epochs", 2, "--quiet", "--out", folder),
                "predict": ("predict", folder, data, "--quiet", "--out", root / "out.csv"),
            }
            for name, command in arguments.items():
                gigabytes, taken = run_haarpool(*command, HAARPOOL_CACHE=root / "cache")
                spent[name].append(taken)
                limit = MEMORY[name] if side == sides[-1] else None
                yield Measurement(
                    f"{name}, grid of {side * side:,} nodes", gigabytes, "GB",
                    note=f"{taken:.0f} s", at_most=limit,
                )  # fmt: skip
    growth = math.log((sides[-1] / sides[0]) ** 2)
    for name, (small, large) in spent.items():
        exponent = math.log(large / small) / growth
        yield Measurement(
            f"{name}, exponent of time by nodes", exponent, at_most=EXPONENT,
            note="with the start of Python",
        )  # fmt: skip
