"""Convolutions with edge weights: equal to PyG where PyG has them, else to the formulas."""

import copy

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.nn import (
    MLP,
    ChebConv,
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    SimpleConv,
)
from torch_geometric.utils import (
    to_dense_adj,
)

from haarpool.nn import build_model
from haarpool.nn.layers.convolutions import NormalizedGIN, WeightedGIN
from haarpool.nn.layers.masked import batch_norm
from haarpool.nn.layers.neighbours import DenseNeighbours, Neighbours
from haarpool.nn.layers.state import Edges, LayerState
from haarpool.nn.networks.stages import Convolution
from haarpool.nn.strings.registry import find_layer
from haarpool.training.minibatches import Minibatches
from helpers.networks import (
    FEATURES,
    GRAPH,
    ONES,
    batch_for,
    outputs_of,
    tokens,
)
from helpers.tolerances import LOOSER, TOLERANCE

each_conv = pytest.mark.parametrize("token", tokens("convolution"))


def adjacency(data: Data, weight: Tensor) -> Tensor:
    """A[i, j] = weight of the edge j -> i, as messages go."""
    return to_dense_adj(data.edge_index, None, weight, data.num_nodes)[0].T


def test_the_graph_has_isolated_nodes_and_no_loops():
    """What the tests below rely on."""
    assert GRAPH.has_isolated_nodes()
    assert not GRAPH.has_self_loops()
    assert set(GRAPH.edge_index.unique().tolist()) == {*range(15)} - {4, 14}


def make(token: str) -> torch.nn.Module:
    return Convolution(find_layer(token), FEATURES, 4).conv


def convolution(token: str) -> torch.nn.Module:
    torch.manual_seed(1)
    conv = make(token).double()
    for parameter in conv.parameters():  # zero biases would hide a bias that is left out
        torch.nn.init.normal_(parameter)
    return conv


class MeanByPyG(GCNConv):
    """D⁻¹(A + I) x W from other classes of PyG; it has the parameters of a GCN."""

    def forward(self, x, edge_index):
        mean = SimpleConv(aggr="mean", combine_root="self_loop")(x, edge_index)
        return self.lin(mean) + self.bias


NORM = {"norm": "batch_norm", "norm_kwargs": {"allow_single_element": True}}
# The classes of PyG with the same shapes.
OF_PYG = {
    "GC": lambda: GCNConv(FEATURES, 4),
    "DGC": lambda: MeanByPyG(FEATURES, 4),
    "GIN": lambda: GINConv(MLP([FEATURES, 4, 4], **NORM)),
    "GINB": lambda: GINConv(MLP([FEATURES, 4, 4], **NORM, plain_last=False)),
    "SAGE": lambda: SAGEConv(FEATURES, 4, aggr="mean"),
    "GAT": lambda: GATConv(FEATURES, 4, edge_dim=1),
    "CHEB": lambda: ChebConv(FEATURES, 4, K=3),
}
SUMS = [token for token in OF_PYG if token != "GAT"]  # to attention zero is a feature like another


@pytest.mark.parametrize("token", OF_PYG)
@pytest.mark.parametrize("training", [False, True])
def test_without_weights_it_is_that_of_pyg(token, training):
    conv, peer = convolution(token).train(training), OF_PYG[token]().double().train(training)
    peer.load_state_dict(conv.state_dict())
    last = (ONES[:, None],) if token == "GAT" else ()
    expected = peer(GRAPH.x, GRAPH.edge_index, *last)
    assert_close(conv(GRAPH.x, Edges(GRAPH.edge_index)), expected)


@each_conv
def test_weights_of_one_are_none_and_others_are_not(token):
    conv = convolution(token).eval()
    plain = conv(GRAPH.x, Edges(GRAPH.edge_index))
    assert_close(conv(GRAPH.x, Edges(GRAPH.edge_index, ONES)), plain)
    other = conv(GRAPH.x, Edges(GRAPH.edge_index, GRAPH.edge_weight))
    alone = [4, 14]
    if token in SUMS:
        assert_close(other[alone], plain[alone])  # they have no edges, so no weights either
    changed = ((other - plain).abs() > 1e-6).any(1)
    several = GRAPH.edge_index[1].bincount(minlength=15) > 1
    assert changed[several].all()  # a mean over one neighbour has no weight


@each_conv
def test_gradients_reach_weights_and_features(token):
    conv = convolution(token)
    x, weight = (t.clone().requires_grad_() for t in (GRAPH.x, GRAPH.edge_weight))
    conv(x, Edges(GRAPH.edge_index, weight)).square().sum().backward()
    for grad in (x.grad, weight.grad, *(p.grad for p in conv.parameters())):
        assert grad.isfinite().all()
        assert (grad != 0).any()


def one_way(data: Data) -> tuple[Tensor, Tensor]:
    """Edges and weights without their way back, here and there, so that A is not symmetric."""
    kept = torch.arange(data.num_edges) % 3 > 0
    return data.edge_index[:, kept], data.edge_weight[kept]


@pytest.mark.parametrize("directed", [False, True])
def test_weighted_gcn_by_its_formula(directed):
    data = GRAPH.clone()
    if directed:
        data.edge_index, data.edge_weight = one_way(data)
    conv, A = convolution("GC"), adjacency(data, data.edge_weight) + torch.eye(15).double()
    scale = A.sum(1).rsqrt()
    expected = scale[:, None] * A * scale @ data.x @ conv.lin.weight.T + conv.bias
    assert_close(conv(data.x, Edges(data.edge_index, data.edge_weight)), expected)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("token", ["GIN", "GINB"])
def test_weighted_gin_by_its_formula(token, training):
    conv = convolution(token).train(training)
    conv.eps.fill_(0.3)
    data = GRAPH.clone()
    data.edge_index, data.edge_weight = one_way(data)
    mixed = 1.3 * data.x + adjacency(data, data.edge_weight) @ data.x
    expected = copy.deepcopy(conv.nn)(mixed)
    assert_close(conv(data.x, Edges(data.edge_index, data.edge_weight)), expected)


def test_weighted_mean_of_dgcnn_by_its_formula():
    conv, data = convolution("DGC"), GRAPH.clone()
    data.edge_index, data.edge_weight = one_way(data)
    A = adjacency(data, data.edge_weight) + torch.eye(15).double()
    expected = A / A.sum(1, keepdim=True) @ data.x @ conv.lin.weight.T + conv.bias
    assert_close(conv(data.x, Edges(data.edge_index, data.edge_weight)), expected)
    stage = Convolution(find_layer("DGC"), FEATURES, 4).double()
    out = stage(LayerState.of_input(data.x, {"x": data.x, "edge_index": data.edge_index}), {}).x
    assert_close(out, stage.conv(data.x, Edges(data.edge_index)).tanh())
    assert (out < 0).any()


def test_weighted_sage_by_its_formula():
    conv, data = convolution("SAGE"), GRAPH.clone()
    data.edge_index, data.edge_weight = one_way(data)
    A = adjacency(data, data.edge_weight)
    total = A.sum(1, keepdim=True)
    mean = torch.where(total > 0, A @ data.x / total, 0)
    expected = conv.lin_l(mean) + conv.lin_r(data.x)
    assert_close(conv(data.x, Edges(data.edge_index, data.edge_weight)), expected)


@each_conv
@pytest.mark.parametrize("edges", [0, 2])
def test_isolated_nodes_go_forward_and_back(token, edges):
    """No edges at all, and a pair beside an isolated node; with weights that are learned."""
    conv = make(token)
    x = torch.randn(3, FEATURES, requires_grad=True)
    weight = torch.full((edges,), 0.5, requires_grad=True)
    out = conv(x, Edges(torch.tensor([[0, 1], [1, 0]])[:, :edges], weight))
    assert out.isfinite().all()
    out.square().sum().backward()
    for tensor in (x, weight, *conv.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()


@each_conv
def test_weights_of_zero_go_forward_and_back(token):
    """All weights of a node may vanish, as behind a soft assignment; a mean of none is zero."""
    conv, x = make(token), torch.randn(3, FEATURES, requires_grad=True)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    out = conv(x, Edges(edges, torch.zeros(4)))
    if token in SUMS:
        assert_close(out, conv(x, Edges(edges[:, :0])))
    out.square().sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize(("kind", "num_norms"), [(WeightedGIN, 1), (NormalizedGIN, 2)])
def test_gin_normalizes_its_batch_and_takes_a_single_row(kind, num_norms):
    conv = kind(FEATURES, 4).train()
    norms = [norm.module for norm in conv.nn.norms]
    assert [type(norm) for norm in norms] == num_norms * [torch.nn.BatchNorm1d]
    none = torch.empty(2, 0, dtype=torch.long)
    assert conv(torch.randn(1, FEATURES), Edges(none)).isfinite().all()
    seen = [outputs_of(norm) for norm in norms]
    conv(torch.randn(50, FEATURES), Edges(none))
    for (out,) in seen:
        assert_close(out.mean(0), torch.zeros(4), atol=TOLERANCE[torch.float32], rtol=0)
        std = out.std(0, correction=0)
        assert_close(std, torch.ones(4), atol=LOOSER["batch norm"], rtol=0)


@pytest.mark.parametrize("token", ["GC", "GIN", "GINB"])
def test_a_network_of_one_node_trains(token):
    model = build_model(f"{token}8-HP-{token}8-HP-{token}8-FC8", FEATURES, 2)
    model(batch_for(model, (1,))).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_negative_weights_do_not_blow_up_a_mean():
    conv = Convolution(find_layer("SAGE"), 1, 4)
    edges = torch.tensor([[0, 1], [2, 2]])
    for weight in ([1.0, -2.0], [1.0, -1.0], [0.0, 0.0]):
        w = torch.tensor(weight, requires_grad=True)
        out = conv.conv(torch.ones(3, 1), Edges(edges, w))
        out.sum().backward()
        assert out.abs().max() < 100
        assert w.grad.abs().max() < 100


# ---------------------------------------------------------------------- lists of neighbours


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("token", ["GC", "DGC", "GIN", "GINB", "SAGE"])
def test_lists_of_neighbours_give_the_same(token, weighted):
    """Also for directed graphs, and with the same gradients."""
    data = GRAPH.clone()
    data.edge_index, data.edge_weight = one_way(data)
    data.batch = torch.zeros(data.num_nodes, dtype=torch.long)
    if not weighted:
        del data.edge_weight
    batch = Minibatches.of([data]).take([0])
    weight = batch.get("edge_weight")
    lists = Neighbours.of_input(batch, weight)
    conv, results = convolution(token), []
    for neighbours in (None, lists):
        x = data.x.clone().requires_grad_()
        out = conv(x, Edges(batch["edge_index"], weight, neighbours))
        grads = torch.autograd.grad(out.square().sum(), (x, *conv.parameters()))
        results.append((out, *grads))
    for scattered, listed in zip(*results, strict=True):
        assert_close(listed, scattered)


def test_lists_are_left_out_where_weights_are_learned():
    batch = Minibatches.of([GRAPH]).take([0])
    assert Neighbours.of_input(batch, batch["edge_weight"]) is not None
    assert Neighbours.of_input(batch, batch["edge_weight"].requires_grad_()) is None
    assert Neighbours.of_input(GRAPH, None) is None


@pytest.mark.parametrize("token", ["GC", "DGC", "GIN", "GINB", "SAGE"])
def test_matrices_of_neighbours_give_the_same(token):
    """Also where weights are zero, and with the same gradients of learned weights."""
    torch.manual_seed(0)
    size, conv, results = 4, convolution(token), []
    adjacency = torch.rand(3, size, size).double() * (torch.rand(3, size, size) < 0.7)
    if token != "GC":  # degrees have a root there
        adjacency -= torch.rand(3, size, size) * (adjacency != 0)
    graph, row, column = adjacency.nonzero().T
    edges = torch.stack([row, column]) + size * graph
    features = torch.randn(3 * size, FEATURES).double()
    for dense in (False, True):
        x = features.clone().requires_grad_()
        weight = adjacency[graph, row, column].clone().requires_grad_()
        matrices = DenseNeighbours.of_clusters(edges, weight, len(x), size) if dense else None
        out = conv(x, Edges(edges, weight, matrices))
        grads = torch.autograd.grad(out.square().sum(), (x, weight, *conv.parameters()))
        results.append((out, *grads))
    for scattered, multiplied in zip(*results, strict=True):
        assert_close(multiplied, scattered)


@pytest.mark.parametrize("token", ["DP", "STRUCT"])
def test_networks_behind_soft_assignments_multiply_matrices(token, monkeypatch):
    torch.manual_seed(0)
    model = build_model(f"GC8-{token}-2SAGE8-{token}-GC8-AP-FC8", FEATURES, 2, num_clusters=5)
    model, batch = model.eval(), batch_for(model, (3, 9, 6))
    multiplied = model(batch)
    seen, of_clusters = [], DenseNeighbours.of_clusters
    monkeypatch.setattr(
        DenseNeighbours, "of_clusters", lambda *args: seen.append(of_clusters(*args))
    )
    assert_close(multiplied, model(batch))
    assert [matrices.adjacency.shape for matrices in seen] == [(3, 5, 5), (3, 2, 2)]


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_over_the_first_rows(training):
    norm = torch.nn.BatchNorm1d(3).double().train(training)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.running_mean)
    peer = copy.deepcopy(norm)
    x = torch.randn(10, 3, dtype=torch.float64, requires_grad=True)
    out = batch_norm(norm, x, torch.tensor(7))[:7]
    expected = peer(x[:7])
    assert_close(out, expected)
    for value, other in zip(norm.buffers(), peer.buffers(), strict=True):
        assert_close(value, other)
    weights = torch.randn_like(out)
    grads = (torch.autograd.grad((y * weights).sum(), x)[0] for y in (out, expected))
    assert_close(*grads)
