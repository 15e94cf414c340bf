"""What stands behind the tokens: equal to PyG where PyG has it, to the formulas where not.

Convolutions with edge weights, the way of weights and options through a network, EdgePooling,
DiffPool, and what `build_model` and `Network.check` refuse.
"""

import copy
import pickle
from math import ceil

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    MLP,
    ChebConv,
    EdgePooling,
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    dense_diff_pool,
)
from torch_geometric.utils import (
    erdos_renyi_graph,
    scatter,
    to_dense_adj,
    to_dense_batch,
    to_undirected,
)

from haarpool import Chain, HaarPoolError
from haarpool.data import AddHaarChain
from haarpool.nn import AddEigenModes, Architecture, DiffPool, LaPool, StructPool, build_model
from haarpool.nn.architecture import CONVOLUTIONS, Block
from haarpool.nn.convolutions import (
    Convolution,
    WeightedCheb,
    WeightedGAT,
    WeightedGCN,
    WeightedGIN,
    WeightedSAGE,
)
from haarpool.nn.stages import ChainPooling, Contraction
from haarpool.nn.state import LayerState

FEATURES = 3
SIZES = (12, 1, 5, 30, 2, 8)
WEIGHTED = {
    "GC": WeightedGCN,
    "GIN": WeightedGIN,
    "SAGE": WeightedSAGE,
    "GAT": WeightedGAT,
    "CHEB": WeightedCheb,
}
each_conv = pytest.mark.parametrize("token", CONVOLUTIONS)


def weighted_graph(nodes: int, seed: int = 0, density: float = 0.3) -> Data:
    """A random graph without self-loops, symmetric weights; two nodes or fewer have no edges."""
    torch.manual_seed(seed)
    index = erdos_renyi_graph(nodes, density if nodes > 2 else 0)
    index, weight = to_undirected(index, 0.5 + torch.rand(index.shape[1]), nodes, reduce="mean")
    x, y = torch.randn(nodes, FEATURES), torch.tensor([nodes % 2])
    return Data(x=x, edge_index=index, edge_weight=weight, y=y)


def graphs(sizes=SIZES) -> list[Data]:
    return [weighted_graph(n, seed=i) for i, n in enumerate(sizes)]


def batch_for(model, sizes=SIZES, **parameters) -> Batch:
    transform = model.transform(**parameters) or (lambda data: data)
    return Batch.from_data_list([transform(data) for data in graphs(sizes)])


def adjacency(data: Data, weight: Tensor) -> Tensor:
    """A[i, j] = weight of the edge j -> i, as messages go."""
    return to_dense_adj(data.edge_index, None, weight, data.num_nodes)[0].T


def without_neighbours(data: Data, *nodes: int) -> Data:
    kept = ~torch.isin(data.edge_index, torch.tensor(nodes)).any(0)
    data.edge_index, data.edge_weight = data.edge_index[:, kept], data.edge_weight[kept]
    return data


def inputs_of(module: torch.nn.Module) -> list[tuple]:
    """A list that gets the arguments of each call of the module from now on."""
    calls: list[tuple] = []
    module.register_forward_pre_hook(lambda _, inputs: calls.append(inputs))
    return calls


def outputs_of(module: torch.nn.Module) -> list:
    calls: list = []
    module.register_forward_hook(lambda _, __, output: calls.append(output))
    return calls


# One graph in double precision, with two isolated nodes, the last one among them.
GRAPH = without_neighbours(weighted_graph(15), 4, 14)
GRAPH.x, GRAPH.edge_weight = GRAPH.x.double(), GRAPH.edge_weight.double()
ONES = torch.ones_like(GRAPH.edge_weight)


def test_the_graph_has_isolated_nodes_and_no_loops():
    """What the tests below rely on."""
    assert GRAPH.has_isolated_nodes()
    assert not GRAPH.has_self_loops()
    assert set(GRAPH.edge_index.unique().tolist()) == {*range(15)} - {4, 14}


# ---------------------------------------------------------------------- convolutions


def convolution(token: str) -> torch.nn.Module:
    torch.manual_seed(1)
    conv = WEIGHTED[token](FEATURES, 4).double()
    for parameter in conv.parameters():  # zero biases would hide a bias that is left out
        torch.nn.init.normal_(parameter)
    return conv


def of_pyg(token: str) -> torch.nn.Module:
    """PyG's own class with the same shape."""
    norm = {"allow_single_element": True}
    return {
        "GC": lambda: GCNConv(FEATURES, 4),
        "GIN": lambda: GINConv(MLP([FEATURES, 4, 4], norm="batch_norm", norm_kwargs=norm)),
        "SAGE": lambda: SAGEConv(FEATURES, 4, aggr="mean"),
        "GAT": lambda: GATConv(FEATURES, 4, edge_dim=1),
        "CHEB": lambda: ChebConv(FEATURES, 4, K=3),
    }[token]().double()


def test_every_convolution_is_tested():
    assert WEIGHTED.keys() == CONVOLUTIONS.keys()
    for token, kind in WEIGHTED.items():
        assert type(Convolution(token, 2, 2).conv) is kind


@each_conv
@pytest.mark.parametrize("training", [False, True])
def test_without_weights_it_is_that_of_pyg(token, training):
    conv, peer = convolution(token).train(training), of_pyg(token).train(training)
    peer.load_state_dict(conv.state_dict())
    last = (ONES[:, None],) if token == "GAT" else ()
    expected = peer(GRAPH.x, GRAPH.edge_index, *last)
    assert_close(conv(GRAPH.x, GRAPH.edge_index, None), expected)


@each_conv
def test_weights_of_one_are_none_and_others_are_not(token):
    conv = convolution(token).eval()
    plain = conv(GRAPH.x, GRAPH.edge_index, None)
    assert_close(conv(GRAPH.x, GRAPH.edge_index, ONES), plain)
    other = conv(GRAPH.x, GRAPH.edge_index, GRAPH.edge_weight)
    alone = [4, 14]
    if token != "GAT":
        assert_close(other[alone], plain[alone])  # they have no edges, so no weights either
    changed = ((other - plain).abs() > 1e-6).any(1)
    assert changed.sum() >= 13 - (token == "SAGE")  # a mean over one neighbour has no weight


@each_conv
def test_gradients_reach_weights_and_features(token):
    conv = convolution(token)
    x, weight = (t.clone().requires_grad_() for t in (GRAPH.x, GRAPH.edge_weight))
    conv(x, GRAPH.edge_index, weight).square().sum().backward()
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
    assert_close(conv(data.x, data.edge_index, data.edge_weight), expected)


@pytest.mark.parametrize("training", [False, True])
def test_weighted_gin_by_its_formula(training):
    conv = convolution("GIN").train(training)
    conv.eps.fill_(0.3)
    data = GRAPH.clone()
    data.edge_index, data.edge_weight = one_way(data)
    mixed = 1.3 * data.x + adjacency(data, data.edge_weight) @ data.x
    expected = copy.deepcopy(conv.nn)(mixed)
    assert_close(conv(data.x, data.edge_index, data.edge_weight), expected)


def test_weighted_sage_by_its_formula():
    conv, data = convolution("SAGE"), GRAPH.clone()
    data.edge_index, data.edge_weight = one_way(data)
    A = adjacency(data, data.edge_weight)
    total = A.sum(1, keepdim=True)
    mean = torch.where(total > 0, A @ data.x / total, 0)
    expected = conv.lin_l(mean) + conv.lin_r(data.x)
    assert_close(conv(data.x, data.edge_index, data.edge_weight), expected)


@each_conv
@pytest.mark.parametrize("edges", [0, 2])
def test_isolated_nodes_go_forward_and_back(token, edges):
    """No edges at all, and a pair beside an isolated node; with weights that are learned."""
    conv = WEIGHTED[token](FEATURES, 4)
    x = torch.randn(3, FEATURES, requires_grad=True)
    weight = torch.full((edges,), 0.5, requires_grad=True)
    out = conv(x, torch.tensor([[0, 1], [1, 0]])[:, :edges], weight)
    assert out.isfinite().all()
    out.square().sum().backward()
    for tensor in (x, weight, *conv.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()


@each_conv
def test_weights_of_zero_go_forward_and_back(token):
    """All weights of a node may vanish, as behind a soft assignment; a mean of none is zero."""
    conv, x = WEIGHTED[token](FEATURES, 4), torch.randn(3, FEATURES, requires_grad=True)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    out = conv(x, edges, torch.zeros(4))
    if token != "GAT":  # to attention zero is a feature like another
        assert_close(out, conv(x, edges[:, :0], None))
    out.square().sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_gin_normalizes_its_batch_and_takes_a_single_row():
    conv = WeightedGIN(FEATURES, 4).train()
    norm = conv.nn.norms[0].module
    assert isinstance(norm, torch.nn.BatchNorm1d)
    none = torch.empty(2, 0, dtype=torch.long)
    assert conv(torch.randn(1, FEATURES), none, None).isfinite().all()
    seen = outputs_of(norm)
    conv(torch.randn(50, FEATURES), none, None)
    assert_close(seen[0].mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    assert_close(seen[0].std(0, correction=0), torch.ones(4), atol=1e-2, rtol=0)


@pytest.mark.parametrize("token", ["GC", "GIN"])
def test_a_network_of_one_node_trains(token):
    model = build_model(f"{token}8-HP-{token}8-HP-{token}8-FC8", FEATURES, 2)
    model(batch_for(model, (1,))).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


# ---------------------------------------------------------------------- weights in a network


@each_conv
def test_weights_of_the_data_reach_the_first_convolution(token):
    model = build_model(f"{token}8-SUM-FC8", FEATURES, 2).eval()
    batch = batch_for(model)
    seen = inputs_of(model.stages[0].conv)
    before = model(batch)
    assert torch.equal(seen[0][2], batch.edge_weight)
    batch.edge_weight = 3 * batch.edge_weight.flip(0)
    after = model(batch)
    large = torch.tensor([0, 2, 3, 5])  # those with edges
    assert ((before - after)[large].abs() > 1e-5).any(1).all()
    del batch.edge_weight
    model(batch)
    assert seen[-1][2] is None


@pytest.mark.parametrize("pool", ["HP", "EIG", "DP", "STRUCT", "LAP", "SP", "TP", "EP"])
@each_conv
def test_weights_of_the_coarse_graph_reach_the_next_convolution(pool, token):
    model = build_model(f"GC8-{pool}-{token}8-SUM", FEATURES, 2, num_clusters=4).eval()
    batch = batch_for(model)
    first, stage, conv = model.stages
    before, seen, out = outputs_of(first), inputs_of(conv.conv), outputs_of(conv)
    model(batch)
    (x, edges, weight), (state,) = seen[0], before
    if pool == "EP":
        assert weight is None  # which weights there would be is not defined
        return
    if pool in ("HP", "EIG"):
        expected_edges, expected = batch.haar_links_1, batch.haar_weights_1
    elif pool in ("SP", "TP"):
        _, _, _, _, perm, _ = stage.pool(state.x, state.edge_index, None, state.batch)
        place = torch.full((len(state.x),), -1)
        place[perm] = torch.arange(len(perm))
        moved = place[batch.edge_index]
        kept = (moved >= 0).all(0)
        expected_edges, expected = moved[:, kept], batch.edge_weight[kept]
    else:
        coarse = stage.pool(state.x, state.edge_index, batch.edge_weight, state.batch)
        unweighted = stage.pool(state.x, state.edge_index, None, state.batch)
        expected_edges, expected = coarse.edge_index, coarse.edge_weight
        shapes = expected.shape, unweighted.edge_weight.shape
        assert shapes[0] != shapes[1] or not torch.allclose(expected, unweighted.edge_weight)
    assert torch.equal(edges, expected_edges)
    assert_close(weight, expected)
    assert (weight != weight[0]).any()
    # And they are used: without them something else comes out.
    assert not torch.allclose(conv.conv(x, edges, None).relu(), out[0].x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.float16])
@pytest.mark.parametrize("pool", ["HP", "EIG", "DP", "STRUCT", "LAP", "SP", "TP", "EP"])
def test_weights_of_any_type(pool, dtype):
    model = build_model(f"GC8-{pool}-GC8-SUM", FEATURES, 2, num_clusters=4).eval()
    data = graphs()
    for one in data:
        one.edge_weight = (3 * one.edge_weight).round()
    transform = model.transform() or (lambda one: one)
    expected = model(Batch.from_data_list(list(map(transform, data))))
    for one in data:
        one.edge_weight = one.edge_weight.to(dtype)
    result = model(Batch.from_data_list(list(map(transform, data))))
    assert result.dtype == torch.float32
    assert_close(result, expected)


@each_conv
def test_weights_of_another_type_for_every_convolution(token):
    model = build_model(f"{token}8-SUM", FEATURES, 2)
    batch = batch_for(model)
    for weight in (batch.edge_weight.double(), (5 * batch.edge_weight).long()):
        batch.edge_weight = weight
        assert model(batch).dtype == torch.float32


def test_a_whole_network_in_bfloat16():
    model = build_model("GC8-HP-GC8-HP-FC8", FEATURES, 2).eval()
    batch = batch_for(model)
    expected = model(batch).detach()
    model.bfloat16()
    batch.x = batch.x.bfloat16()
    result = model(batch)
    assert result.dtype == torch.bfloat16
    assert_close(result.float(), expected, atol=0.05 * float(expected.abs().max()), rtol=0.05)
    result.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


# ---------------------------------------------------------------------- EdgePooling


def contracted() -> tuple[LayerState, LayerState, tuple]:
    """A state, what the stage makes of it, and what PyG's class makes of it."""
    torch.manual_seed(0)
    stage, batch = Contraction(EdgePooling(FEATURES)), Batch.from_data_list(graphs())
    peer = EdgePooling(FEATURES)
    peer.load_state_dict(stage.pool.state_dict())
    state = LayerState(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    return state, stage(state, {}), peer(batch.x, batch.edge_index, batch.batch)


def test_contracted_graphs_stand_graph_by_graph():
    before, after, (_, _, batch, _) = contracted()
    assert not (batch.diff() >= 0).all()  # as PyG leaves them
    assert (after.batch.diff() >= 0).all()
    assert len(after.x) == len(batch) < len(before.x)
    assert torch.equal(after.batch.bincount(), batch.bincount())
    assert after.edge_weight is None


def test_contracted_graphs_are_those_of_pyg():
    _, after, (x, edges, batch, _) = contracted()
    for reduce in ("sum", "max", "min"):
        one = scatter(after.x, after.batch, dim_size=len(SIZES), reduce=reduce)
        assert_close(one, scatter(x, batch, dim_size=len(SIZES), reduce=reduce))
    assert (after.batch[after.edge_index[0]] == after.batch[after.edge_index[1]]).all()
    assert len(x.unique(dim=0)) == len(x)  # so that rows are known by what they hold
    pairs = [x[edges].movedim(0, 1).flatten(1), after.x[after.edge_index].movedim(0, 1).flatten(1)]
    assert torch.equal(*(pair.unique(dim=0) for pair in pairs))
    assert after.edge_index.shape == edges.shape


@pytest.mark.parametrize("text", ["DP-SUM", "STRUCT-SUM", "LAP-SUM", "SORT", "S2S", "EP-SUM"])
def test_what_may_follow_edge_pooling(text):
    model = build_model(f"GC8-EP-{text}", FEATURES, 2, num_clusters=4, sorted_nodes=3)
    batch = batch_for(model)
    out = model(batch)
    assert out.shape == (len(SIZES), 2)
    model.loss(out, batch.y).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("make", [DiffPool, StructPool, LaPool])
def test_an_unsorted_batch_is_refused(make):
    x, none = torch.randn(4, FEATURES), torch.empty(2, 0, dtype=torch.long)
    with pytest.raises(HaarPoolError, match="sorted batch vector"):
        make(FEATURES)(x, none, None, torch.tensor([0, 1, 0, 1]))
    make(FEATURES)(x, none, None, torch.tensor([0, 0, 1, 1]))


# ---------------------------------------------------------------------- DiffPool


def assignment(pool: DiffPool, x: Tensor, A: Tensor) -> Tensor:
    """Scores by two layers of DenseSAGEConv, written out."""
    mean = A / A.sum(-1, keepdim=True).clamp(min=1)
    for layer, function in ((pool.hidden, torch.relu), (pool.assign, lambda h: h)):
        h = mean @ x @ layer.lin_rel.weight.T + x @ layer.lin_root.weight.T + layer.lin_root.bias
        x = function(h)
    return x


@pytest.mark.parametrize("weighted", [False, True])
def test_diffpool_by_its_formulas(weighted):
    torch.manual_seed(0)
    pool, data = DiffPool(FEATURES, num_clusters=4).double(), GRAPH
    weight = data.edge_weight if weighted else ONES
    out = pool(data.x, data.edge_index, weight if weighted else None)
    A = to_dense_adj(data.edge_index, None, weight, 15)[0]
    scores = assignment(pool, data.x, A)
    S = scores.softmax(-1)
    assert_close(out.x, S.T @ data.x)
    assert_close(to_dense_adj(out.edge_index, None, out.edge_weight, 4)[0], S.T @ A @ S)
    assert out.batch.tolist() == [0] * 4
    link, entropy = out.details
    assert_close(link, torch.linalg.matrix_norm(A - S @ S.T) / 15**2)
    assert_close(entropy, -(S * S.log()).sum(1).mean())
    pooled, _, *losses = dense_diff_pool(data.x, A, scores)
    assert_close(out.x, pooled[0])
    assert_close(out.details, torch.stack(losses))


def test_diffpool_of_a_batch_is_that_of_pyg():
    pool, batch = DiffPool(FEATURES, num_clusters=4), Batch.from_data_list(graphs())
    x, mask = to_dense_batch(batch.x, batch.batch)
    A = to_dense_adj(batch.edge_index, batch.batch, batch.edge_weight)
    pooled, coarse, *losses = dense_diff_pool(x, A, assignment(pool, x, A), mask)
    out = pool(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    assert_close(out.x, pooled.flatten(0, 1))
    assert_close(to_dense_adj(out.edge_index, out.batch, out.edge_weight), coarse)
    assert_close(out.details, torch.stack(losses))
    assert out.batch.bincount().tolist() == [4] * len(SIZES)


def test_padding_does_not_matter_to_diffpool():
    torch.manual_seed(0)
    pool = DiffPool(FEATURES, num_clusters=4)
    batch = Batch.from_data_list(graphs())
    out = pool(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    whole = to_dense_adj(out.edge_index, out.batch, out.edge_weight)
    for number, data in enumerate(graphs()):
        alone = pool(data.x, data.edge_index, data.edge_weight)
        assert_close(out.x[out.batch == number], alone.x)
        assert_close(whole[number], to_dense_adj(alone.edge_index, None, alone.edge_weight, 4)[0])


def test_diffpool_repr_and_reset():
    text = "DiffPool(16, num_clusters=8)"
    pool = eval(text)
    assert repr(pool) == text
    assert pool.assign.lin_root.weight.shape == (8, 16)
    assert DiffPool(16).num_clusters == 16
    for parameter in pool.parameters():
        parameter.data.fill_(7)
    pool.reset_parameters()
    assert all((parameter != 7).all() for parameter in pool.parameters())


@pytest.mark.parametrize(
    ("bad", "got"),
    [
        (lambda: DiffPool(0), "0"),
        (lambda: DiffPool(4, num_clusters=0), "0"),
        (lambda: DiffPool(4, num_clusters=2.5), "2.5"),
        (lambda: DiffPool(4, num_clusters=True), "True"),
        (lambda: DiffPool(4)(torch.ones(3, 5), torch.ones(2, 0).long()), "(3, 5)"),
        (lambda: DiffPool(4)(torch.ones(4), torch.ones(2, 0).long()), "(4,)"),
    ],
)
def test_diffpool_refuses(bad, got):
    with pytest.raises(HaarPoolError) as error:
        bad()
    assert error.value.got == got


# ---------------------------------------------------------------------- options of build_model


@pytest.mark.parametrize("pool", ["SP", "TP"])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.8])
def test_ratio_of_the_nodes_is_kept(pool, ratio):
    model = build_model(f"GC8-{pool}-SUM", FEATURES, 2, ratio=ratio)
    states = outputs_of(model.stages[1])
    model(batch_for(model))
    assert states[0].batch.bincount().tolist() == [ceil(ratio * n) for n in SIZES]


def test_a_ratio_of_one_is_refused():
    """PyG takes it for a number of nodes."""
    with pytest.raises(HaarPoolError, match=r"a ratio in \(0, 1\)"):
        build_model("GC8-TP-SUM", FEATURES, 2, ratio=1.0)


BLOCKS = {
    "width 0": lambda: Block("GC", 0),
    "negative width": lambda: Block("GC", -3),
    "repeat 0": lambda: Block("GC", 4, 0),
    "two poolings in one": lambda: Block("HP", None, 2),
    "a pooling with a width": lambda: Block("HP", 3),
    "a fraction": lambda: Block("GC", 2.5),
    "no blocks": lambda: Architecture(5),
    "no architecture": lambda: build_model(None, FEATURES, 2),
}


@pytest.mark.parametrize("case", BLOCKS)
def test_blocks_are_checked_whichever_way_they_are_made(case):
    with pytest.raises(HaarPoolError):
        BLOCKS[case]()


DATA = {
    "whole numbers as features": ({"x": torch.ones(3, FEATURES, dtype=int)}, "x.float()"),
    "no edges": ({"edge_index": None}, "ToSparseTensor"),
    "weights as a column": ({"edge_weight": torch.ones(2, 1)}, "squeeze"),
}


@pytest.mark.parametrize("case", DATA)
def test_data_that_a_network_cannot_read(case):
    changed, remedy = DATA[case]
    good = {"x": torch.ones(3, FEATURES), "edge_index": torch.tensor([[0, 1], [1, 0]])}
    model = build_model("GC8-SUM", FEATURES, 2)
    assert model(good).shape == (1, 2)
    with pytest.raises(HaarPoolError) as caught:
        model(good | changed)
    assert remedy in caught.value.remedy


def test_negative_weights_do_not_blow_up_a_mean():
    conv = Convolution("SAGE", 1, 4)
    edges = torch.tensor([[0, 1], [2, 2]])
    for weight in ([1.0, -2.0], [1.0, -1.0], [0.0, 0.0]):
        w = torch.tensor(weight, requires_grad=True)
        out = conv.conv(torch.ones(3, 1), edges, w)
        out.sum().backward()
        assert out.abs().max() < 100
        assert w.grad.abs().max() < 100


def test_sagpool_scores_with_a_gcn():
    stage = build_model("GC8-SP-SUM", FEATURES, 2).stages[1]
    assert type(stage.pool.gnn) is GCNConv


def test_number_of_clusters_halves():
    model = build_model("GC8-DP-GC8-STRUCT-LAP-DP-STRUCT-SUM", FEATURES, 2, num_clusters=5)
    poolings = [stage.pool for stage in model.stages if hasattr(stage, "pool")]
    numbers = [pool.num_clusters for pool in poolings if not isinstance(pool, LaPool)]
    assert numbers == [5, 2, 1, 1]
    states = outputs_of(model.stages[3])
    model(batch_for(model))
    assert states[0].batch.bincount().tolist() == [2] * len(SIZES)


def test_number_of_modes():
    model = build_model("GC8-EIG-GC4-EIG-SUM", FEATURES, 2, num_modes=3)
    pools = [stage.pool for stage in model.stages if isinstance(stage, ChainPooling)]
    assert [(pool.level, pool.num_modes) for pool in pools] == [(0, 3), (1, 3)]
    assert model.stages[2].conv.in_channels == 24
    assert model.linear[0].in_features == 12
    batch = batch_for(model)
    assert batch.haar_modes_0.shape[0] == batch.haar_modes_1.shape[0] == 3
    assert model(batch).shape == (len(SIZES), 2)


def test_sorted_nodes_and_set2set():
    model = build_model("GC8-SORT", FEATURES, 2, sorted_nodes=7)
    rows = outputs_of(model.readout)
    model(batch_for(model))
    assert rows[0].shape == (len(SIZES), 7 * 8)
    assert model.linear[0].in_features == 7 * 8
    model = build_model("GC8-S2S", FEATURES, 2)
    assert model.readout.processing_steps == 3
    assert model.linear[0].in_features == 16


def test_dropout_before_a_last_layer_that_is_the_only_one():
    model = build_model("GC64-SUM", FEATURES, 2, dropout=0.9)
    readout, seen = outputs_of(model.readout), inputs_of(model.linear[0])
    batch = batch_for(model, (30, 30))
    model(batch)
    kept = seen[0][0] != 0
    assert 0 < kept.float().mean() < 0.25
    assert_close(seen[0][0][kept], 10 * readout[0][kept])
    model.eval()
    model(batch)
    assert torch.equal(seen[1][0], readout[1])


def test_relu_behind_the_adapter():
    model = build_model("GC8-SUM-FC16-FC4", FEATURES, 2).eval()
    readout, seen = outputs_of(model.readout), inputs_of(model.linear[0])
    model(batch_for(model))
    before, after = model.adapter(readout[0]), seen[0][0]
    assert (before < 0).any()
    assert (after >= 0).all()
    assert torch.equal(after, before.relu())


# ---------------------------------------------------------------------- the transform it asks for


def bases(model, **parameters) -> set[str]:
    return {key for key in batch_for(model, **parameters).to_dict() if "basis" in key}


@pytest.mark.parametrize(
    ("text", "domain", "expected"),
    [
        ("GC8-HP-GC8-HP-FC8", "haar", {"haar_basis_1", "haar_basis_2"}),
        ("GC8-HP-EIG-SUM", "haar", {"haar_basis_1", "haar_basis_2"}),
        ("GC8-HP-GC8-HP-FC8", "vertex", set()),
        ("GC8-HP-EIG-SUM", "vertex", set()),
        ("GC8-EIG-SUM", "haar", set()),
    ],
)
def test_bases_only_where_they_are_needed(text, domain, expected):
    model = build_model(text, FEATURES, 2, domain=domain)
    assert bases(model) == expected
    model.check(batch_for(model))
    assert bases(model, domain="haar", details=True) >= {"haar_basis_0"}


def in_one_step(data: Data) -> Chain:
    return Chain.from_parents([np.zeros(data.num_nodes, int)])


@pytest.mark.parametrize("text", ["GC8-HP-FC8", "GC8-EIG-SUM"])
def test_a_chain_of_your_own(text):
    model = build_model(text, FEATURES, 2)
    batch = batch_for(model, chain=in_one_step)
    assert batch.chain_sizes == (sum(SIZES), len(SIZES))
    assert model(batch).shape == (len(SIZES), 2)
    assert "in_one_step" in repr(model.transform(chain=in_one_step))


@pytest.mark.parametrize("own", [{"num_levels": 1}, {"top": None}, {"num_levels": 2, "top": 1}])
def test_levels_are_not_yours_to_choose(own):
    with pytest.raises(HaarPoolError, match="besides those of the network") as error:
        build_model("GC8-HP-GC8-HP-FC8", FEATURES, 2).transform(**own)
    assert error.value.got == ", ".join(own)


NETWORK = {"arch": "GC8-HP-GC8-HP-FC8", "in_channels": FEATURES, "out_channels": 2}
# case: (network, transform of the data, what is missing, what to do)
LACKING = {
    "bases": (
        NETWORK, AddHaarChain(num_levels=2, domain="vertex"),
        "haar_basis_1", "AddHaarChain(num_levels=2, top=1, details=False)",
    ),
    "bases beside modes": (
        NETWORK | {"arch": "GC8-HP-EIG-SUM"}, AddEigenModes(2, num_levels=2, top=None),
        "haar_basis_1", "num_levels=2, top=None, domain='haar', details=False)",
    ),
    "modes": (
        NETWORK | {"arch": "GC8-EIG-SUM"}, AddHaarChain(num_levels=1, top=None),
        "2 rows haar_modes_0", "AddEigenModes(num_modes=2, num_levels=1, top=None)",
    ),
    "more modes": (
        NETWORK | {"arch": "GC8-EIG-SUM", "num_modes": 3}, AddEigenModes(2, num_levels=1),
        "3 rows haar_modes_0", "AddEigenModes(num_modes=3, num_levels=1, top=None)",
    ),
    "edges": (
        NETWORK | {"arch": "GC8-SUM"}, T.ToSparseTensor(layout=torch.sparse_coo),
        "edge_index", "ToSparseTensor",
    ),
    "edges beside a chain": (
        NETWORK, T.Compose([AddHaarChain(num_levels=2), T.ToSparseTensor(layout=torch.sparse_coo)]),
        "edge_index", "ToSparseTensor",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch, once
@pytest.mark.parametrize("case", LACKING)
@pytest.mark.parametrize("batched", [False, True])
def test_check_says_what_is_missing(case, batched):
    arguments, transform, missing, remedy = LACKING[case]
    model = build_model(**arguments)
    data = transform(graphs()[3])
    if batched:
        # Two sparse matrices of PyG batch to one; all else as ever.
        data = Batch.from_data_list([data, transform(graphs()[0])])
    for ask in (model.check, model):  # forward asks before it computes
        with pytest.raises(HaarPoolError) as error:
            ask(data)
        assert missing in error.value.expected
        assert remedy in error.value.remedy


def test_what_the_remedy_names_is_a_remedy():
    for arguments, *_ in LACKING.values():
        model = build_model(**arguments)
        model.check(batch_for(model))
        model(batch_for(model))


# ---------------------------------------------------------------------- copies, batches by hand


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("text", ["GC8-DP-GC8-SUM-FC8", "GC8-HP-GC8-DP-SUM"])
def test_a_copy_after_training_gives_the_same(text, copied):
    model = build_model(text, FEATURES, 2, num_clusters=4)
    batch = batch_for(model)
    model.loss(model(batch), batch.y).backward()
    assert model.auxiliary is not None
    twin = copied(model)
    assert twin.auxiliary is None
    assert model.auxiliary is not None
    assert torch.equal(twin.eval()(batch), model.eval()(batch))
    assert torch.equal(twin.auxiliary, model.auxiliary)
    for (name, one), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert one is not other, name
        assert torch.equal(one, other), name


@pytest.mark.parametrize("form", [lambda data: data, Data.to_dict])
def test_a_batch_vector_made_by_hand(form):
    model = build_model("GC8-SUM", FEATURES, 2).eval()
    batch = batch_for(model)
    by_hand = Data(
        x=batch.x, edge_index=batch.edge_index, edge_weight=batch.edge_weight, batch=batch.batch
    )
    assert "ptr" not in by_hand
    assert_close(model(form(by_hand)), model(batch))


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 0),
        ("width", 2.5),
        ("width", True),
        ("dropout", "a"),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("tied", 3),
        ("ratio", 0),
        ("ratio", -1),
        ("ratio", 1.5),
        ("ratio", "a"),
        ("num_modes", 0),
        ("num_clusters", 0),
        ("sorted_nodes", 0),
        ("in_channels", 0),
        ("in_channels", 2.0),
        ("in_channels", True),
        ("out_channels", -1),
    ],
)
def test_bad_options(name, value):
    with pytest.raises(HaarPoolError) as error:
        build_model(**(NETWORK | {name: value}))
    assert name in error.value.expected
    assert repr(value) in error.value.got


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_integers_of_numpy_are_integers(kind):
    model = build_model(
        "GC-DP-SORT-FC", kind(FEATURES), kind(2), width=kind(8), dropout=np.float32(0)
    )
    assert type(model.in_channels) is type(model.out_channels) is int
    assert model(batch_for(model)).shape == (len(SIZES), 2)
    model = build_model(
        "GC8-DP-SORT",
        FEATURES,
        2,
        num_clusters=kind(4),
        sorted_nodes=kind(3),
        ratio=np.float64(0.5),
    )
    assert model(batch_for(model)).shape == (len(SIZES), 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Architecture("GC64-HP"),
        lambda: Architecture((Block("XX"), Block("SUM"))),
        lambda: Architecture(("GC", "SUM")),
        lambda: Architecture.parse("GC٨-SUM"),
        lambda: Architecture.parse("٢GC8-SUM"),
        lambda: Architecture.parse("2GC８-SUM"),
        lambda: build_model("GC٨-SUM", FEATURES, 2),
        lambda: Architecture.parse(5),
    ],
)
def test_bad_architectures(make):
    with pytest.raises(HaarPoolError):
        make()


def test_blocks_as_a_list_are_an_architecture():
    arch = Architecture([Block("GC", 8), Block("SUM")])
    assert arch == Architecture.parse("GC8-SUM")
    assert hash(arch) == hash(Architecture.parse("GC8-SUM"))


# ---------------------------------------------------------------------- StructPool and LaPool


def test_a_negative_weight_cannot_make_a_degree_vanish():
    pool = StructPool(FEATURES, num_clusters=2)
    x = torch.randn(3, FEATURES, requires_grad=True)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([-1.0, -1.0, 0.5, 0.5], requires_grad=True)  # 1 - 1 = 0 for node 0
    out = pool(x, edges, weight)
    (out.x.square().sum() + out.edge_weight.square().sum()).backward()
    for tensor in (out.x, out.edge_weight, x.grad, weight.grad):
        assert tensor.isfinite().all()
        assert (tensor.abs() < 1e4).all()


# Cliques whose nodes all vary alike, but where a sum of s is rounded to less than a multiple of s.
@pytest.mark.parametrize(
    ("nodes", "scale", "dtype"),
    [(7, 1.0, torch.float32), (9, 0.1, torch.float32), (7, 1.0, torch.float64)],
)
def test_rounding_alone_makes_no_centroids(nodes, scale, dtype):
    x = scale * torch.eye(nodes, dtype=dtype)
    A = 1 - torch.eye(nodes, dtype=dtype)
    s = torch.linalg.vector_norm(A.sum(1, keepdim=True) * x - A @ x, dim=1)
    assert_close(s, s[:1].expand(nodes))
    mask = torch.ones(1, nodes, dtype=torch.bool)
    chosen = LaPool(nodes, relaxed=True).centroids(x[None], A[None], mask)
    assert chosen[0].tolist() == [True] + [False] * (nodes - 1)


@pytest.mark.parametrize("relaxed", [False, True])
def test_constant_features_leave_every_graph_a_centroid(relaxed):
    data = graphs((12, 1, 5, 30, 2, 8))
    for one in data:
        one.x = torch.full_like(one.x, 0.1)
    batch = Batch.from_data_list(data)
    out = LaPool(FEATURES, relaxed=relaxed)(
        batch.x, batch.edge_index, batch.edge_weight, batch.batch
    )
    assert out.batch.unique().tolist() == list(range(len(SIZES)))
    assert out.x.isfinite().all()
