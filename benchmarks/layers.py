"""Measure the speed of the layers and of batching.

    python benchmarks/layers.py [--out results/layers.json]

Results are ratios of times measured in the same run; the exit code is 1 if one is outside its
limits. A minibatch is 50 random graphs of 30 nodes (one pair of nodes in ten is an edge) with 64
columns of float32 that require a gradient, as after a convolution. Chains have three steps (30 ->
15 -> 7 -> 1); HaarPooling keeps 15 nodes per graph, like its peers with ratio 0.5. A time is the
mean over 20 calls, minimum of many rounds; each round runs all layers. torch chooses the number of
threads unless the name says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import torch
import torch_geometric
from torch_geometric.data import Batch, Data
from torch_geometric.nn import EdgePooling, SAGPooling, TopKPooling
from torch_geometric.utils import erdos_renyi_graph

from common import Result, report, seconds
from haarpool.data import AddHaarChain
from haarpool.nn import EigenPooling, HaarPooling, build_model
from haarpool.nn.peers.eigenpool import AddEigenModes

GRAPHS, NODES, COLUMNS, LEVELS = 50, 30, 64, 3
PAPER = [
    "GC60-HP-FC60-FC180-FC60",
    "2GC128-HP-2GC128-HP-2GC128-HP-GC128-2FC128-FC64",
    "2GC256-HP-FC256-FC1024-FC2048",
    "3GC256-HP-2FC256-FC128",
    "GIN-HP-GIN-HP-GIN-MP",
    "GIN-HP-GIN-GIN-MP",
]


def graphs() -> list[Data]:
    """Return the random graphs of one minibatch."""
    torch.manual_seed(0)
    return [
        Data(
            x=torch.randn(NODES, COLUMNS),
            edge_index=erdos_renyi_graph(NODES, 0.1),
            y=torch.tensor([0]),
        )
        for _ in range(GRAPHS)
    ]


def race(actions: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Return the mean time per call, minimum over rounds; each round runs all actions."""
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(rounds):
        for name, action in actions.items():
            action()  # warm the caches

            def block(action: Callable[[], object] = action) -> None:
                for _ in range(calls):
                    action()

            best[name] = min(best[name], seconds(block) / calls)
    return best


def pooling(threads: int | None) -> Iterator[Result]:
    """Measure the forward pass of one pooling from 30 to 15 nodes per graph."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    transform = AddEigenModes(num_modes=2, num_levels=LEVELS, domain="haar", details=True)
    batch = Batch.from_data_list([transform(data) for data in graphs()])
    x = batch.x.requires_grad_()
    haar, vertex = HaarPooling(0), HaarPooling(0, domain="vertex")
    full, eigen = HaarPooling(0, details="full"), EigenPooling(0, num_modes=2)
    top, sag, edge = TopKPooling(COLUMNS), SAGPooling(COLUMNS), EdgePooling(COLUMNS)
    times = race(
        {
            "haar": lambda: haar(x, batch),
            "vertex": lambda: vertex(x, batch),
            "full": lambda: full(x, batch),
            "eigen": lambda: eigen(x, batch),
            "TopKPooling": lambda: top(x, batch.edge_index, batch=batch.batch),
            "SAGPooling": lambda: sag(x, batch.edge_index, batch=batch.batch),
        },
        rounds=60,
        calls=20,
    )
    assert len(haar(x, batch).x) == len(top(x, batch.edge_index, batch=batch.batch)[0])
    own = times["haar"]
    where = f"{threads or before} thread{'s' * ((threads or before) > 1)}"
    for peer in ("TopKPooling", "SAGPooling"):
        note = f"{own * 1e6:.0f} µs against {times[peer] * 1e6:.0f}"
        limit = 12 if threads is None else None
        yield Result(f"HaarPooling, Haar domain: times faster than {peer}, {where}",
                     times[peer] / own, at_least=limit, note=note)  # fmt: skip
    for name in ("vertex", "full", "eigen"):
        note = "for information"
        yield Result(
            f"TopKPooling over {name}, {where}", times["TopKPooling"] / times[name], note=note
        )
    if threads is None:
        slow = race({"edge": lambda: edge(x, batch.edge_index, batch.batch)}, 3, 1)["edge"]
        yield Result(
            "HaarPooling: times faster than EdgePooling", slow / own, note="for information"
        )
    torch.set_num_threads(before)


def backward() -> Iterator[Result]:
    """Measure forward and backward together."""
    transform = AddHaarChain(num_levels=LEVELS)
    batch = Batch.from_data_list([transform(data) for data in graphs()])
    x = batch.x.requires_grad_()
    haar, top = HaarPooling(0), TopKPooling(COLUMNS)
    times = race(
        {
            "haar": lambda: haar(x, batch).x.sum().backward(),
            "top": lambda: top(x, batch.edge_index, batch=batch.batch)[0].sum().backward(),
        },
        rounds=40,
        calls=10,
    )
    ratio = times["top"] / times["haar"]
    yield Result(
        "forward and backward: times faster than TopKPooling", ratio, note="for information"
    )


def collating() -> Iterator[Result]:
    """Compare collating of `ChainData` with plain `Data`."""
    plain, with_chain = graphs(), {}
    for domain in ("haar", "vertex"):
        transform = AddHaarChain(num_levels=LEVELS, domain=domain)
        with_chain[domain] = [transform(data) for data in plain]
    times = race(
        {
            "plain": lambda: Batch.from_data_list(plain),
            **{
                domain: lambda data=data: Batch.from_data_list(data)
                for domain, data in with_chain.items()
            },
        },
        rounds=40,
        calls=5,
    )
    note = f"{times['haar'] * 1e3:.1f} ms against {times['plain'] * 1e3:.1f}"
    yield Result(
        "collating 50 ChainData over plain Data",
        times["haar"] / times["plain"],
        at_most=8,
        note=note,
    )
    yield Result(
        'the same with domain="vertex"', times["vertex"] / times["plain"], note="for information"
    )


def graph_breaks() -> Iterator[Result]:
    """Count the graph breaks of torch.compile in the networks of the paper."""
    for text in PAPER:
        model = build_model(text, COLUMNS, 2)
        transform = model.transform()
        batch = Batch.from_data_list([transform(data) for data in graphs()])
        torch.compiler.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(model, dynamic=True, backend="aot_eager")
        compiled(batch).sum().backward()
        breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
        yield Result(f"graph breaks of {text}", breaks, at_most=0)


def measure() -> Iterator[Result]:
    yield from pooling(None)
    yield from pooling(1)
    yield from backward()
    yield from collating()
    yield from graph_breaks()


if __name__ == "__main__":
    versions = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}
    machine = {"threads": torch.get_num_threads(), **versions}
    sys.exit(report(__doc__, measure(), "results/layers.json", **machine))
