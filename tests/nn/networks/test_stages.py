"""Stages of a network and their options."""

import warnings
from math import ceil

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.nn import EdgePooling, GCNConv
from torch_geometric.nn.aggr import MaxAggregation
from torch_geometric.utils import scatter

from haarpool import HaarPoolError
from haarpool.nn import LaPool, build_model
from haarpool.nn.layers.edgepool import FastEdgePooling
from haarpool.nn.layers.global_readouts import MaxReadout
from haarpool.nn.layers.state import LayerState
from haarpool.nn.networks.stages import ChainPooling, Pooling
from haarpool.nn.strings.registry import find_layer
from helpers.networks import (
    FEATURES,
    SIZES,
    batch_for,
    inputs_of,
    outputs_of,
    taken,
    tokens,
    weighted_graphs,
)


def contracted() -> tuple[LayerState, LayerState, tuple]:
    """A state, what the stage makes of it, and what PyG's class makes of it."""
    torch.manual_seed(0)
    stage, batch = Pooling(FastEdgePooling(FEATURES)), Batch.from_data_list(weighted_graphs())
    peer = EdgePooling(FEATURES)
    peer.load_state_dict(stage.pool.state_dict())
    state = LayerState(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    return state, stage(state, {}), peer(batch.x, batch.edge_index, batch.batch)


def test_contracted_nodes_are_sorted_by_graph():
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


OTHERS = [token for token in tokens("pooling") if not find_layer(token).chain]


@pytest.mark.parametrize("text", [*(f"{token}-SUM" for token in OTHERS), *tokens("readout")])
def test_layers_after_edge_pooling(text):
    text = f"GC8-EP-{text}"
    model = build_model(text, FEATURES, 2, **taken(text, num_clusters=4))
    batch = batch_for(model)
    out, auxiliary = model.output_and_auxiliary(batch)
    assert out.shape == (len(SIZES), 2)
    loss = model.loss(out, batch.y)
    (loss if auxiliary is None else loss + auxiliary).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize("pool", ["SP", "GP", "TP"])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.8])
def test_ratio_of_the_nodes_is_kept(pool, ratio):
    model = build_model(f"GC8-{pool}-SUM", FEATURES, 2, ratio=ratio)
    states = outputs_of(model.stages[1])
    model(batch_for(model))
    assert states[0].batch.bincount().tolist() == [ceil(ratio * n) for n in SIZES]


def test_a_ratio_of_one_is_an_error():
    """PyG takes it for a number of nodes."""
    with pytest.raises(HaarPoolError, match=r"ratio in \(0, 1\)"):
        build_model("GC8-TP-SUM", FEATURES, 2, ratio=1.0)
    with pytest.raises(HaarPoolError, match=r"cluster_ratio in \(0, 1\)"):
        build_model("GC8-DP-SUM", FEATURES, 2, cluster_ratio=1.0)


OUTPUTS = {
    "two values": (lambda x, edges, weight, batch: (x, edges), r"shapes \(58, 8\), \(2, \d+\)"),
    "features alone": (lambda x, edges, weight, batch: x, "Tensor;"),
    "a batch of another length": (
        lambda x, edges, weight, batch: (x[:5], edges, weight, batch),
        r"shapes \(5, 8\), .*, \(58,\);",
    ),
    "a batch as a column": (
        lambda x, edges, weight, batch: (x, edges, weight, batch[:, None]), r"\(58, 1\);",
    ),
    "weights of other edges": (
        lambda x, edges, weight, batch: (x, edges[:, :9], weight, batch), r"\(2, 9\), \(\d+,\)",
    ),
    "no edges": (lambda x, edges, weight, batch: (x, None, weight, batch), r"\(58, 8\), None,"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTPUTS)
def test_an_output_of_another_form_names_the_layer(case):
    pool, got = OUTPUTS[case]
    stage = Pooling(pool, "OWN")
    batch = Batch.from_data_list(weighted_graphs())
    x = torch.ones(batch.num_nodes, 8)
    with pytest.raises(HaarPoolError, match=f"a PoolingOutput of OWN: x .*, got .*{got}"):
        stage(LayerState(x, batch.edge_index, batch.edge_weight, batch.batch), {})


def test_an_output_on_the_chain_of_another_form_names_the_layer():
    model = build_model("HP-SUM", FEATURES, 2)
    model.stages[0].pool.forward = lambda x, data: x
    with pytest.raises(HaarPoolError, match=r"a PoolingOutput of HP: x .*, got Tensor"):
        model(batch_for(model))


def test_sagpool_scores_with_a_gcn():
    stage = build_model("GC8-SP-SUM", FEATURES, 2).stages[1]
    assert type(stage.pool.gnn) is GCNConv


@pytest.mark.parametrize(
    ("first", "ratio", "expected"),
    [(5, {}, [5, 2, 1, 1]), (155, {"cluster_ratio": 0.25}, [155, 38, 9, 2])],
)
def test_number_of_clusters_of_the_next_poolings(first, ratio, expected):
    arch = "GC8-DP-GC8-STRUCT-LAP-DP-STRUCT-SUM"
    model = build_model(arch, FEATURES, 2, num_clusters=first, **ratio)
    poolings = [stage.pool for stage in model.stages if hasattr(stage, "pool")]
    numbers = [pool.num_clusters for pool in poolings if not isinstance(pool, LaPool)]
    assert numbers == expected
    states = outputs_of(model.stages[3])
    model(batch_for(model))
    assert states[0].batch.bincount().tolist() == [expected[1]] * len(SIZES)


def test_joined_outputs_and_several_readouts():
    model = build_model("SUM-GC8-2GC4-JK-MP-SP-AP-FC51", FEATURES, 2).eval()
    first, joined, middle, _, last = model.stages
    outputs = [outputs_of(convolution) for convolution in joined.convolutions]
    rows = [outputs_of(stage) for stage in (first, middle, last)]
    states, seen = outputs_of(joined), inputs_of(model.linear[0])
    batch = batch_for(model)
    model(batch)
    assert torch.equal(states[0].x, torch.cat([one[0].x for one in outputs], 1))
    assert states[0].x.shape[1] == 16
    assert_close(rows[0][0], scatter(batch.x, batch.batch, dim_size=len(SIZES), reduce="sum"))
    assert model.adapter.in_features == FEATURES + 2 * 16
    row = torch.cat([one[0] for one in rows], 1)
    assert torch.equal(seen[0][0], model.adapter(row).relu())


def test_joined_convolutions_are_the_same_as_without():
    torch.manual_seed(0)
    joined = build_model("3GC8-JK-SUM", FEATURES, 2)
    torch.manual_seed(0)
    plain = build_model("3GC8-SUM", FEATURES, 2)
    for one, other in zip(joined.stages[0].convolutions, plain.stages, strict=False):
        assert torch.equal(one.conv.lin.weight, other.conv.lin.weight)


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
    rows = outputs_of(model.stages[-1])
    model(batch_for(model))
    assert rows[0].shape == (len(SIZES), 7 * 8)
    assert model.linear[0].in_features == 7 * 8
    model = build_model("GC8-S2S", FEATURES, 2)
    assert model.stages[-1].aggregation.processing_steps == 3
    assert model.linear[0].in_features == 16


def test_dropout_before_a_last_layer_that_is_the_only_one():
    model = build_model("GC64-SUM", FEATURES, 2, dropout=0.9)
    readout, seen = outputs_of(model.stages[-1]), inputs_of(model.linear[0])
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
    readout, seen = outputs_of(model.stages[-1]), inputs_of(model.linear[0])
    model(batch_for(model))
    before, after = model.adapter(readout[0]), seen[0][0]
    assert (before < 0).any()
    assert (after >= 0).all()
    assert torch.equal(after, before.relu())


@pytest.mark.parametrize("token", ["AP", "SUM"])
def test_a_graph_without_nodes_reads_out_as_zeros(token):
    """With and without the first node of each graph."""
    empty = torch.zeros(2, 0, dtype=torch.long)
    batch = Batch.from_data_list(
        [Data(x=torch.ones(n, FEATURES), edge_index=empty) for n in (2, 0, 3)]
    )
    model = build_model(f"GIN8-{token}-FC8", FEATURES, 2).eval()
    rows = {key: batch[key] for key in ("x", "edge_index", "batch")}
    assert model(batch)[1].isfinite().all()
    torch.testing.assert_close(model(batch), model(rows))


def max_of_nodes(x: torch.Tensor, batch: torch.Tensor, dim_size: int) -> torch.Tensor:
    edges = torch.empty(2, 0, dtype=torch.long)
    ptr = {"ptr": torch.zeros(dim_size + 1)}  # for the number of graphs
    return MaxReadout(x.shape[1])(LayerState(x, edges, None, batch), ptr)


def test_maximum_is_that_of_pyg():
    torch.manual_seed(0)
    x = torch.randint(-3, 4, (9, 5)).float()  # ties share their gradient
    batch = torch.tensor([0, 0, 0, 0, 2, 2, 3, 3, 3])  # graph 1 has no nodes
    results, gradients = [], []
    for readout in (max_of_nodes, MaxAggregation()):
        leaf = x.clone().requires_grad_()
        result = readout(leaf, batch, dim_size=4)
        (result * torch.arange(20).view(4, 5)).sum().backward()
        results.append(result)
        gradients.append(leaf.grad)
    assert torch.equal(*results)
    assert torch.equal(*gradients)
    assert not results[0][1].any()


@pytest.mark.gpu
def test_maximum_does_not_warn_on_a_gpu():
    x = torch.randn(6, 2, device="cuda", requires_grad=True)
    batch = torch.tensor([0, 0, 1, 1, 1, 2], device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        max_of_nodes(x, batch, dim_size=3).sum().backward()
