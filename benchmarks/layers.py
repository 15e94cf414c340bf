"""Speed of the layers and of batching, as ratios in one run; exit code 1 if a figure is missed.

    python benchmarks/layers.py [--out results/layers.json]

A minibatch is 50 random graphs of 30 nodes, of whose pairs one in ten is an edge, with 64 columns
of float32 that require a gradient, as behind a convolution. Chains have three levels (30 -> 15 -> 7
-> 1), and HaarPooling keeps 15 nodes of each graph like its peers with ratio 0.5. Times are the
least of many rounds, in which all take turns, of the mean over 20 calls; torch uses the threads
that it chooses, unless the name says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import torch
import torch_geometric
from torch_geometric.data import Batch, Data
from torch_geometric.nn import EdgePooling, SAGPooling, TopKPooling
from torch_geometric.utils import erdos_renyi_graph

from figures import Figure, report, seconds
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
    """The least mean time of a call over rounds in which all actions take turns."""
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(rounds):
        for name, action in actions.items():
            action()  # what the others left in the caches

            def block(action: Callable[[], object] = action) -> None:
                for _ in range(calls):
                    action()

            best[name] = min(best[name], seconds(block) / calls)
    return best


def pooling(threads: int | None) -> Iterator[Figure]:
    """Forward of one pooling from 30 to 15 nodes per graph."""
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
        least = 12 if threads is None else None
        yield Figure(f"HaarPooling, Haar domain: times faster than {peer}, {where}",
                     times[peer] / own, least=least, note=note)  # fmt: skip
    for name in ("vertex", "full", "eigen"):
        note = "for information"
        yield Figure(
            f"TopKPooling over {name}, {where}", times["TopKPooling"] / times[name], note=note
        )
    if threads is None:
        slow = race({"edge": lambda: edge(x, batch.edge_index, batch.batch)}, 3, 1)["edge"]
        yield Figure(
            "HaarPooling: times faster than EdgePooling", slow / own, note="for information"
        )
    torch.set_num_threads(before)


def backward() -> Iterator[Figure]:
    """Forward and backward together."""
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
    yield Figure(
        "forward and backward: times faster than TopKPooling", ratio, note="for information"
    )


def collating() -> Iterator[Figure]:
    plain, pre = graphs(), {}
    for domain in ("haar", "vertex"):
        transform = AddHaarChain(num_levels=LEVELS, domain=domain)
        pre[domain] = [transform(data) for data in plain]
    times = race(
        {
            "plain": lambda: Batch.from_data_list(plain),
            **{
                domain: lambda many=many: Batch.from_data_list(many) for domain, many in pre.items()
            },
        },
        rounds=40,
        calls=5,
    )
    note = f"{times['haar'] * 1e3:.1f} ms against {times['plain'] * 1e3:.1f}"
    yield Figure(
        "collating 50 ChainData over plain Data", times["haar"] / times["plain"], most=8, note=note
    )
    yield Figure(
        'the same with domain="vertex"', times["vertex"] / times["plain"], note="for information"
    )


def graph_breaks() -> Iterator[Figure]:
    """In plain torch.compile; with fullgraph=True a break would be an error."""
    for text in PAPER:
        model = build_model(text, COLUMNS, 2)
        transform = model.transform()
        batch = Batch.from_data_list([transform(data) for data in graphs()])
        torch.compiler.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(model, dynamic=True, backend="aot_eager")
        compiled(batch).sum().backward()
        breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
        yield Figure(f"graph breaks of {text}", breaks, most=0)


def measure() -> Iterator[Figure]:
    yield from pooling(None)
    yield from pooling(1)
    yield from backward()
    yield from collating()
    yield from graph_breaks()


if __name__ == "__main__":
    versions = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}
    machine = {"threads": torch.get_num_threads(), **versions}
    sys.exit(report(__doc__, measure(), "results/layers.json", **machine))
