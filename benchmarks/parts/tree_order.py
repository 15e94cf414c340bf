"""A grid that is numbered row by row, as in a file, at random, and in tree order.

The chains merge pairs of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from benchmarks.measure import Action, BenchOptions, measure
from benchmarks.parts.transforms import threads
from benchmarks.results import Measurement
from haarpool._types import Ints
from haarpool.chains.chain import Chain
from haarpool.chains.coarsening import build_chain
from haarpool.chains.tree_order import inverse
from haarpool.data import ChainData
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.transform import adjoint
from haarpool.nn import HaarUNet
from haarpool.nn.layers.mean_convolution import MeanConvolution, MeanEdges
from haarpool.nn.layers.state import LayerState
from haarpool.training.minibatches import Minibatches

TITLE = "a grid, its nodes numbered in several orders; value: copies of x, and ratios of times"
FILE = "tree_order"
COLUMNS, LEVELS = 16, 12
LIMIT = 3.0  # copies, of `adjoint` in tree order
TREE = "tree order"
STEPS = (256, 512)  # sides of the grids of the training steps


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure transform and convolution of a large grid, then training steps by size."""
    with threads(options):
        yield from _large(40 if options.quick else 2000, options)
        for side in (16,) if options.quick else STEPS:
            yield from _steps(side, options)


def grid(side: int) -> Ints:
    """Return (2, E) the edges of a grid that is numbered row by row."""
    number = np.arange(side * side).reshape(side, side)
    ends = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in ends], 1)
    return np.concatenate([pairs, pairs[::-1]], 1)


def orders(side: int, levels: int) -> Iterator[tuple[str, Chain, Ints]]:
    """Yield the chain and the edges of a grid in each order."""
    edges, size = grid(side), side * side
    for name in ("random order", "row by row"):
        numbers = np.random.default_rng(0).permutation(size) if name == "random order" else None
        one = edges if numbers is None else numbers[edges]
        weights = np.ones(one.shape[1])
        graph = sparse.coo_array((weights, (one[0], one[1])), shape=(size, size)).tocsr()
        chain = build_chain(graph, levels, top=None, method="matching", measure="mass")
        yield name, chain, one
    chain, order = chain.reorder()
    yield TREE, chain, inverse(order)[edges]


def _large(side: int, options: BenchOptions) -> Iterator[Measurement]:
    x = torch.randn(side * side, COLUMNS, device=options.device)
    convolution = MeanConvolution(COLUMNS).to(options.device)
    target, actions = torch.empty_like(x), dict[str, Action]()
    actions["copy"] = lambda: target.copy_(x)
    for name, chain, edges in orders(side, LEVELS):
        tensors = ChainTensors.from_chains([chain], options.device)
        actions[f"adjoint, {name}"] = partial(adjoint, tensors, x)
        graph = Data(x.cpu(), torch.from_numpy(edges))
        batch = Minibatches.of([graph], options.device).take([0])
        means = MeanEdges(LayerState.of_input(x, batch))
        actions[f"means over neighbours, {name}"] = partial(means.plain.sum, x)
        actions[f"convolution, {name}"] = _without_gradient(convolution, x[:, None], means)
    times = measure(actions, options)
    copy = times.pop("copy").median
    shape = f"{side * side:,} x {COLUMNS}"
    for name, spent in times.items():
        limit = LIMIT if name == f"adjoint, {TREE}" and not options.on_gpu else None
        yield Measurement(
            f"{name}, {shape}", spent.median / copy, "copies", spent, at_most=limit,
            case={"nodes": side * side, "columns": COLUMNS},
        )  # fmt: skip


def _steps(side: int, options: BenchOptions) -> Iterator[Measurement]:
    torch.manual_seed(0)
    levels = 2 * int(np.log2(side)) - 4
    model = HaarUNet(4, 1, width=32, levels=levels).to(options.device)
    actions = dict[str, Action]()
    for name, chain, edges in orders(side, levels):
        graph = Data(torch.randn(side * side, 4), torch.from_numpy(edges))
        data = ChainData.from_chain(graph, chain)
        batch = Minibatches.of([data], options.device).take([0])
        actions[name] = partial(_step, model, batch)
    times = measure(actions, options)
    for name, spent in times.items():
        ratio = spent.median / times[TREE].median
        step = f"training step of HaarUNet, {name}, {side * side:,} nodes"
        yield Measurement(step, ratio, "x of tree order", spent, case={"nodes": side * side})


def _step(model: torch.nn.Module, batch: Any) -> None:
    model.zero_grad()
    model(batch).square().mean().backward()


def _without_gradient(function: Callable[..., object], *arguments: Any) -> Action:
    def action() -> object:
        with torch.no_grad():
            return function(*arguments)

    return action
