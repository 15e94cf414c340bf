"""`ndpunet`: the U-Net with Node Decimation Pooling of Bianchi et al. (2020), by tgp."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import torch
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.utils import remove_self_loops

from haarpool.haar.chain_tensors import TensorDict
from haarpool.nn.layers.neighbours import BY_SOURCE, STARTS, Neighbours
from haarpool.nn.layers.state import LayerState
from paper.pooling.peers.registering import variant
from paper.pooling.peers.selection_unet import Selection, SelectionUNet
from paper.pooling.peers.tgp import import_tgp


@variant("ndpunet")
class NDPUNet(SelectionUNet):
    """The U-Net on one side of an approximate maximum cut, connected by Kron reduction.

    The side is that of the signs of the last eigenvector of the Laplacian; coarse edges below 0.01
    are dropped, where the weights of a graph have the mean 1. All this depends on the graph alone.
    Our engine prepares chains, which are partitions, so it cannot prepare these levels: they are
    computed when a graph is met first, and found again by a digest of its edges, in all networks of
    a process. With one graph, as in all minibatches of its signals, not even the digest is needed.
    """

    copies_graphs = False

    _last: tuple[Tensor, Tensor | None, list[Selection]] | None = None

    def plan(self, graphs: LayerState) -> list[Selection]:
        """Return the selections on all levels."""
        edges, weight = graphs.edge_index, graphs.edge_weight
        if self._last is None or self._last[0] is not edges or self._last[1] is not weight:
            self._last = edges, weight, joined_levels(graphs, len(self.up))
        return self._last[2]

    def select(self, level: int, x: Tensor, graphs: LayerState, plan: list[Selection]) -> Selection:
        """Return the next level."""
        return plan[level]


class Decimation(NamedTuple):
    """A level of one graph.

    Attributes:
        nodes: (n,) its nodes, by their numbers on the level before.
        edge_index: (2, E) edges.
        edge_weight: (E,) weights.
    """

    nodes: Tensor
    edge_index: Tensor
    edge_weight: Tensor


_KNOWN: dict[bytes, list[Decimation]] = {}  # by a digest of the graph: the same for all networks


def joined_levels(graphs: LayerState, levels: int) -> list[Selection]:
    """Return the levels 1, ..., K of all graphs of a minibatch together."""
    batch, edges = graphs.batch.cpu(), graphs.edge_index.cpu()
    weight = graphs.edges().weights(graphs.x).float().cpu()
    sizes = torch.bincount(batch)
    of_edge = batch[edges[1]]
    number = torch.bincount(of_edge, minlength=len(sizes)).tolist()
    order = of_edge.argsort(stable=True)
    edges = (edges - (sizes.cumsum(0) - sizes)[of_edge])[:, order]
    made = [
        decimations(*graph, levels)
        for graph in zip(
            torch.split(edges, number, 1),
            torch.split(weight[order], number),
            sizes.tolist(),
            strict=True,
        )
    ]
    joined = []
    for j in range(levels):
        first = sizes.cumsum(0) - sizes  # node of each graph, on level j
        sizes = torch.tensor([len(one[j].nodes) for one in made])
        first_coarse = (sizes.cumsum(0) - sizes).tolist()
        level = {
            "nodes": torch.cat([one[j].nodes + n for one, n in zip(made, first, strict=True)]),
            "edge_index": torch.cat(
                [one[j].edge_index + n for one, n in zip(made, first_coarse, strict=True)], 1
            ),
            "edge_weight": torch.cat([one[j].edge_weight for one in made]),
            "batch": torch.arange(len(sizes)).repeat_interleave(sizes),
        }
        joined.append(_selection(level, graphs.x))
    return joined


def _selection(level: TensorDict, like: Tensor) -> Selection:
    """Return a level on the device, with the lists of neighbours that make sums fast."""
    nodes, edges, weight, batch = (one.to(like.device) for one in level.values())
    by_target = edges[1].argsort(stable=True)
    edges, weight = edges[:, by_target].contiguous(), weight[by_target].to(like.dtype)
    counts = torch.stack([torch.bincount(edges[row], minlength=len(nodes)) for row in (1, 0)])
    lists = {
        "edge_index": edges,
        STARTS: (counts.cumsum(1) - counts).int(),
        BY_SOURCE: edges[0].argsort(stable=True).int(),
    }
    neighbours = Neighbours.of_input(lists, weight)
    empty = like.new_empty(len(nodes), 0)
    return Selection(nodes, LayerState(empty, edges, weight, batch, neighbours=neighbours))


def decimations(
    edge_index: Tensor, edge_weight: Tensor, num_nodes: int, levels: int
) -> list[Decimation]:
    """Return the levels 1, ..., K of one graph; they are computed once."""
    content = (edge_index.numpy(), edge_weight.numpy())
    key = sha256(b"".join(one.tobytes() for one in content) + b"%d %d" % (num_nodes, levels))
    if key.digest() not in _KNOWN:
        edges, weight = remove_self_loops(edge_index, edge_weight)
        made = [Decimation(torch.arange(num_nodes), edges, weight / weight.mean())]
        for _ in range(levels):
            made.append(decimate(made[-1]))
        _KNOWN[key.digest()] = made[1:]
    return _KNOWN[key.digest()]


def decimate(graph: Decimation) -> Decimation:
    """Return the next level; a graph without edges stays as it is.

    Each connected component is cut by itself: the eigenvector of several is zero on all but one,
    and where no node of a component is left, there is no Kron reduction.
    """
    _, edges, weight = graph
    num_nodes = len(graph.nodes)
    if edges.shape[1] == 0:
        return Decimation(torch.arange(num_nodes), edges, weight)
    pairs = sparse.coo_array((weight.numpy(), edges.numpy()), shape=(num_nodes, num_nodes))
    component = torch.from_numpy(connected_components(pairs, directed=False)[1]).long()
    # tgp takes the nodes of a component as consecutive.
    order = component.argsort(stable=True)
    edges, component = order.argsort()[edges], component[order]
    with torch.random.fork_rng(devices=[]):  # the eigenvector starts with random numbers
        torch.manual_seed(0)
        chosen = import_tgp("select").NDPSelect()(
            edges, weight, batch=component, num_nodes=num_nodes
        )
    coarse_edges, coarse_weight = import_tgp("connect").KronConnect()(edges, chosen, weight)
    return Decimation(order[chosen.node_index], coarse_edges.long(), coarse_weight)
