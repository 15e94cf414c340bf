"""One layer called from Python on a minibatch of sparse graphs, beside layers that readers know.

At these sizes a GPU waits for Python, so this is the time of the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.nn import GCNConv, TopKPooling
from torch_geometric.utils import from_networkx

from benchmarks.layers import COLUMNS, MODES, OWN, TimedLayer
from benchmarks.measure import BenchOptions, in_new_process, measure
from benchmarks.results import Measurement
from haarpool.data import AddHaarChain
from haarpool.nn import HaarPooling
from haarpool.training.devices import num_threads

TITLE = "layers called from Python, 50 graphs of average degree 4, 64 features; value: GCNConv / it"
REFERENCE = "GCNConv"
ONE_THREAD = f"{MODES[1]}, autograd in the calling thread"
LIMIT_US = 350.0  # of forward + backward on an H200
# The C library of Linux then keeps freed memory. Without it, to map memory again takes most of the
# time of GCNConv.
KEEP_MEMORY = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**31))


def run(options: BenchOptions) -> Iterator[Measurement]:
    """Measure all sizes; on a processor in a process that keeps its memory."""
    if options.on_gpu:
        yield from lines(options)
    else:
        yield from in_new_process(all_lines, options, environment=KEEP_MEMORY)


def all_lines(options: BenchOptions) -> list[Measurement]:
    """Return the measurements of all sizes."""
    return list(lines(options))


def lines(options: BenchOptions) -> Iterator[Measurement]:
    """Measure all sizes; on a processor with one thread, or threads would wait."""
    for num_nodes in (20,) if options.quick else (30, 100, 300, 1000):
        layers = make_layers(minibatch(num_nodes, options))
        for mode in (*MODES, ONE_THREAD) if options.on_gpu else MODES:
            own_thread = torch.autograd.set_multithreading_enabled(mode != ONE_THREAD)
            with nullcontext() if options.on_gpu else num_threads(1), own_thread:
                times = measure({n: one.action(mode) for n, one in layers.items()}, options)
            for name, spent in times.items():
                title, ratio = (
                    f"{name}, {num_nodes} nodes, {mode}",
                    times[REFERENCE].median / spent.median,
                )
                case: dict[str, str | int] = {"layer": name, "nodes": num_nodes, "mode": mode}
                yield Measurement(title, ratio, "x as fast", spent, case=case)
                if options.on_gpu and mode == MODES[1] and name.startswith(OWN):
                    yield microseconds(title, spent.median)


def microseconds(title: str, ms: float) -> Measurement:
    """Return a time in microseconds with its limit."""
    return Measurement(f"{title}, microseconds", 1000 * ms, "us", at_most=LIMIT_US)


def minibatch(num_nodes: int, options: BenchOptions) -> Any:
    """Make a minibatch of sparse graphs with chains that halve the nodes down to one."""
    transform = AddHaarChain(num_levels=math.ceil(math.log2(num_nodes)), method="matching")
    rng, graphs = np.random.default_rng(num_nodes), []
    for seed in range(4 if options.quick else 50):
        graph = from_networkx(nx.barabasi_albert_graph(num_nodes, 2, seed=seed))
        graph.x = torch.from_numpy(rng.standard_normal((num_nodes, COLUMNS), np.float32))
        graphs.append(transform(graph))
    batch = Batch.from_data_list(graphs).to(options.device)
    batch.x.requires_grad_()  # as after a convolution
    return batch


def make_layers(batch: Any) -> dict[str, TimedLayer]:
    """Make the layers of a minibatch.

    "new batch" reads the tensors of the chain anew in every call, as the first layer of a training
    step does. `index_add_` sums over clusters, and nothing else.
    """
    x, edges, graph = batch.x, batch.edge_index, batch.batch
    parent, size = batch.haar_tree_0[0].long(), batch.haar_tree_1.shape[1]
    haar, vertex = HaarPooling(0), HaarPooling(0, "vertex")
    conv, topk = (layer.to(x.device) for layer in (GCNConv(COLUMNS, COLUMNS), TopKPooling(COLUMNS)))
    forwards: dict[str, tuple[Callable[[], Tensor], torch.nn.Module]] = {
        REFERENCE: (lambda: conv(x, edges), conv),
        "TopKPooling": (lambda: topk(x, edges, batch=graph)[0], topk),
        "index_add_": (lambda: x.new_zeros(size, COLUMNS).index_add_(0, parent, x), haar),
        OWN[1]: (lambda: vertex(x, batch).x, vertex),
        f"{OWN[1]}, new batch": (lambda: vertex(x, dict(batch.tensors)).x, vertex),
        OWN[0]: (lambda: haar(x, batch).x, haar),
        f"{OWN[0]}, new batch": (lambda: haar(x, dict(batch.tensors)).x, haar),
    }
    return {
        name: TimedLayer(forward, [x, *module.parameters()])
        for name, (forward, module) in forwards.items()
    }
