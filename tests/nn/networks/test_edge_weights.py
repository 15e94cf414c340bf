"""Edge weights on their way through a network."""

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch

from haarpool.haar.chain_tensors import ChainTensors
from haarpool.nn import build_model
from haarpool.nn.layers.state import Edges
from haarpool.nn.strings.registry import find_layer
from helpers.networks import (
    FEATURES,
    batch_for,
    inputs_of,
    outputs_of,
    taken,
    tokens,
    weighted_graph,
    weighted_graphs,
)
from helpers.tolerances import LOOSER

each_conv = pytest.mark.parametrize("token", tokens("convolution"))


@each_conv
def test_weights_of_the_data_reach_the_first_convolution(token):
    model = build_model(f"{token}8-SUM-FC8", FEATURES, 2).eval()
    batch = batch_for(model)
    seen = inputs_of(model.stages[0].conv)
    before = model(batch)
    assert torch.equal(seen[0][1].edge_weight, batch.edge_weight)
    batch.edge_weight = 3 * batch.edge_weight.flip(0)
    after = model(batch)
    large = torch.tensor([0, 2, 3, 5])  # those with edges
    assert ((before - after)[large].abs() > 1e-5).any(1).all()
    del batch.edge_weight
    model(batch)
    assert seen[-1][1].edge_weight is None


@pytest.mark.parametrize("pool", tokens("pooling"))
@each_conv
def test_weights_of_the_coarse_graph_reach_the_next_convolution(pool, token):
    text = f"GC8-{pool}-{token}8-SUM"
    model = build_model(text, FEATURES, 2, **taken(text, num_clusters=4)).eval()
    # Sparse and large: its coarse graph has nodes with several neighbours for each pooling.
    batch = batch_for(model, more=[weighted_graph(60, density=0.05)])
    first, stage, conv, _ = model.stages
    before, pooled = outputs_of(first), outputs_of(stage.pool)
    seen, out = inputs_of(conv.conv), outputs_of(conv.conv)
    model(batch)
    (x, (edges, weight, *_)), (state,) = seen[0], before
    _, expected_edges, expected, *_ = pooled[0]
    if find_layer(pool).chain:
        expected_edges, expected, _ = ChainTensors(batch.tensors).coarse_graph(1, x.dtype)
    assert torch.equal(edges, expected_edges)
    if expected is None:  # a layer without weights
        assert weight is None
        return
    assert_close(weight, expected)
    if not find_layer(pool).chain:
        _, _, unweighted, *_ = stage.pool(state.x, state.edge_index, None, state.batch)
        if unweighted is not None and unweighted.shape == weight.shape:
            assert not torch.allclose(weight, unweighted)
    # And they are used: without them something else comes out. In CHEB and GAT the weight of
    # an edge cancels out if its nodes have no other.
    if torch.bincount(edges[0]).max() > 1 and (weight != weight[0]).any():
        assert not torch.allclose(conv.conv(x, Edges(edges)), out[0])


@pytest.mark.parametrize("pool", ["SP", "GP", "TP"])
def test_weights_of_the_nodes_that_are_kept(pool):
    model = build_model(f"{pool}-SUM", FEATURES, 2)
    batch = batch_for(model)
    _, edges, weight, _, perm, _ = model.stages[0].pool(
        batch.x, batch.edge_index, batch.edge_weight, batch.batch
    )
    place = torch.full((len(batch.x),), -1)
    place[perm] = torch.arange(len(perm))
    moved = place[batch.edge_index]
    kept = (moved >= 0).all(0)
    assert torch.equal(edges, moved[:, kept])
    assert torch.equal(weight, batch.edge_weight[kept])


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.float16])
@pytest.mark.parametrize("pool", tokens("pooling"))
def test_weights_of_any_type(pool, dtype):
    text = f"GC8-{pool}-GC8-SUM"
    model = build_model(text, FEATURES, 2, **taken(text, num_clusters=4)).eval()
    data = weighted_graphs()
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("pool", tokens("pooling"))
def test_another_pooling_after_a_chain_in_every_type(pool, dtype):
    text = f"GC8-HP-{pool}-GC8-SUM"
    model = build_model(text, FEATURES, 2, **taken(text, num_clusters=4)).to(dtype)
    batch = batch_for(model)
    batch.x = batch.x.to(dtype)
    assert model(batch).dtype == dtype


def test_a_whole_network_in_bfloat16():
    model = build_model("GC8-HP-GC8-HP-FC8", FEATURES, 2).eval()
    batch = batch_for(model)
    expected = model(batch).detach()
    model.bfloat16()
    batch.x = batch.x.bfloat16()
    result = model(batch)
    assert result.dtype == torch.bfloat16
    assert_close(
        result.float(),
        expected,
        atol=LOOSER["deep bfloat16"] * float(expected.abs().max()),
        rtol=LOOSER["deep bfloat16"],
    )
    result.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
