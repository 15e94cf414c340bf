"""HaarNet and HaarSumNet: what they compute, on which data, and how they run."""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from haarpool.data import AddHaarChain
from haarpool.errors import HaarPoolError
from haarpool.nn import (
    HaarNet,
    HaarNetArchitecture,
    HaarSumArchitecture,
    HaarSumNet,
    build_model,
    parse_architecture,
)
from haarpool.training.minibatches import Minibatches
from helpers.networks import FEATURES, SIZES, weighted_graph

EDGES = 4


def graphs(levels=2, weights=True):
    """Graphs of all sizes with edge features."""
    made = []
    for seed, size in enumerate(SIZES):
        graph = weighted_graph(size, seed)
        torch.manual_seed(seed)
        graph.edge_attr = torch.randn(graph.edge_index.shape[1], EDGES)
        if not weights:
            del graph.edge_weight
        made.append(graph)
    return [AddHaarChain(num_levels=levels, top=None)(g) for g in made] if levels else made


both = pytest.mark.parametrize("kind", [HaarNet, HaarSumNet])


def net(levels=2, seed=0, kind=HaarNet, **options):
    torch.manual_seed(seed)
    sizes = {"width": 8, "depth": 3, "coarse_depth": 1, "edge_channels": EDGES} | options
    sizes |= {"task": "classification"} | ({"dropout": 0.0} if kind is HaarNet else {})
    return kind(FEATURES, 2, levels=levels, **sizes)


def doubled(batch):
    """The same batch in float64."""
    as_dict = batch.to_dict() if hasattr(batch, "to_dict") else batch
    return {k: v.double() if v.is_floating_point() else v for k, v in as_dict.items()}


@both
@pytest.mark.parametrize("levels", [0, 1, 3])
@pytest.mark.parametrize("weights", [True, False])
def test_minibatches_and_pyg_batches_give_the_same(levels, weights, kind):
    data, model = graphs(levels, weights), net(levels, kind=kind).double().eval()
    pyg = model(doubled(Batch.from_data_list(data)))
    own = model(doubled(Minibatches.of(data).take(range(len(data)))))
    torch.testing.assert_close(pyg, own, rtol=1e-10, atol=1e-10)


@both
@pytest.mark.parametrize("levels", [0, 2])
def test_a_batch_gives_what_single_graphs_give(levels, kind):
    data, model = graphs(levels), net(levels, kind=kind).double().eval()
    batch = model(doubled(Batch.from_data_list(data)))
    single = torch.cat([model(doubled(Batch.from_data_list([g]))) for g in data])
    torch.testing.assert_close(batch, single, rtol=1e-10, atol=1e-10)


def test_statistics_of_a_graph():
    """The readout of a network without convolutions' help: checked against numpy."""
    from haarpool.nn.layers.state import LayerState
    from haarpool.nn.networks.haar_net import _statistics

    data = Minibatches.of(graphs(0)).take(range(len(SIZES)))
    x = torch.randn(len(data["x"]), 5, dtype=torch.float64)
    rows = _statistics(x, LayerState.of_input(x, data), len(SIZES))
    for g, part in enumerate(np.split(x.numpy(), np.cumsum(SIZES)[:-1])):
        expected = [part.sum(0) / len(part) ** 0.5, part.mean(0), (part.var(0) + 1e-6) ** 0.5]
        np.testing.assert_allclose(rows[g], np.concatenate(expected), rtol=1e-9, atol=1e-9)


@both
def test_messages_see_edge_features(kind):
    data, model = graphs(), net(kind=kind).eval()
    batch = Batch.from_data_list(data)
    before = model(batch)
    batch.edge_attr = batch.edge_attr + 1
    assert not torch.allclose(before, model(batch))


@both
def test_renumbered_nodes_give_the_same(kind):
    graph = graphs(0)[3]
    order = torch.randperm(graph.num_nodes, generator=torch.manual_seed(1))
    renumbered = graph.clone()
    renumbered.x, renumbered.edge_index = graph.x[order], order.argsort()[graph.edge_index]
    model = net(0, kind=kind).double().eval()
    results = [model(doubled(Batch.from_data_list([g]))) for g in (graph, renumbered)]
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)


@both
def test_padding_changes_neither_output_nor_gradients(kind):
    data = graphs()
    batches, model = Minibatches.of(data), net(kind=kind).double()
    batches._flat = doubled(batches._flat)
    chosen = torch.tensor([0, 3, 2, 5])
    results = []
    for batch, padded in (
        (batches.take(chosen), False),
        (batches.take_padded(chosen, batches.capacity(4)), True),
    ):
        model.zero_grad()
        output = model(batch, padded=padded)
        output.square().sum().backward()
        results.append([output.detach(), *(p.grad.clone() for p in model.parameters())])
        model.load_state_dict(net(kind=kind).double().state_dict())
    for plain, padded in zip(*results, strict=True):
        torch.testing.assert_close(plain, padded, rtol=1e-8, atol=1e-8)


@both
def test_gradients(kind):
    data = doubled(Minibatches.of(graphs()[:4]).take([0, 2, 3]))
    model = net(kind=kind).double().eval()
    x = data["x"].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(data | {"x": x}), x, nondet_tol=0.0)


@both
def test_it_compiles_without_graph_breaks(kind):
    torch._dynamo.reset()
    model = net(kind=kind).eval()
    batches = Minibatches.of(graphs())
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for chosen in ([0, 2, 3], [3, 5, 4, 1]):
        batch = batches.take(chosen)
        torch.testing.assert_close(compiled(batch), model(batch))


@both
def test_one_graph_of_one_node_trains(kind):
    model = net(kind=kind)
    batch = Batch.from_data_list([graphs()[1]])
    model.loss(model(batch), batch.y).backward()


@both
def test_reset_parameters_changes_all_weights(kind):
    model = net(kind=kind)
    before = {k: v.clone() for k, v in model.named_parameters()}
    torch.manual_seed(9)
    model.reset_parameters()
    for name, value in model.named_parameters():
        constant = "norm" in name or name.endswith("eps")
        assert constant or not torch.equal(before[name], value), name


# ---------------------------------------------------------------------- strings and errors


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("haarnet", (None, 5, 2, 2)),
        ("HaarNet:levels=0", (None, 5, 0, 2)),
        ("haarnet:width=32,depth=2,levels=3,coarse_depth=0", (32, 2, 3, 0)),
        ("haarsum", (None, 3, 2, 1)),
        ("haarsum:width=32,levels=0", (32, 3, 0, 1)),
    ],
)
def test_strings(text, sizes):
    arch = parse_architecture(text)
    is_sum = text.startswith("haarsum")
    assert arch == (HaarSumArchitecture if is_sum else HaarNetArchitecture)(*sizes)
    assert parse_architecture(str(arch)) == arch
    model = build_model(text, FEATURES, 2, width=8, edge_channels=EDGES, domain="vertex")
    assert isinstance(model, HaarSumNet if is_sum else HaarNet)
    assert model.embedding.out_features == (sizes[0] or 8)
    assert model.arch.levels == sizes[2]
    assert parse_architecture(str(model.arch)) == model.arch


NAMES = "NAME=NUMBER,... with names out of width, depth, levels, coarse_depth, got "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("haarsum:depth=0", "a number of 1 to 64 for depth, got haarsum:»depth=0«"),
        ("haarnet:levels=2,width=65537", "for width, got haarnet:levels=2,»width=65537«"),
        ("haarnet:width=x", NAMES + "haarnet:»width=x«"),
        ("haarsum:size=3", NAMES + "haarsum:»size=3«"),
        ("haarnet:depth=1,depth=1", "depth once, got haarnet:depth=1,»depth=1«"),
        ("haarnet:coarse_depth=0,depth=0", "for depth, got haarnet:coarse_depth=0,»depth=0«"),
        ("haarnet:width=1000000", "a number of 1 to 65536 for width, got haarnet:»width=1000000«"),
        ("haarnet:width=8,", NAMES + "haarnet:width=8,»«"),
        ("haarsum,levels=0", NAMES + "haarsum»,levels=0«"),
        ("haarnets", "parts [repeat]TOKEN[width]"),
    ],
)
def test_wrong_strings(text, expected):
    with pytest.raises(HaarPoolError, match=re.escape(expected)):
        parse_architecture(text)


def test_a_colon_without_sizes():
    assert parse_architecture("haarnet:") == HaarNetArchitecture()


def test_errors():
    batch = Batch.from_data_list(graphs())
    with pytest.raises(HaarPoolError, match="edge_attr"):
        net(edge_channels=3)(batch)
    del batch.edge_attr
    with pytest.raises(HaarPoolError, match="edge_attr"):
        net()(batch)
    with pytest.raises(HaarPoolError, match="at least 3 levels"):
        net(3, edge_channels=0)(batch)
    with pytest.raises(HaarPoolError, match="tied"):
        build_model("haarnet", 3, 2, tied=(0, 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_in_half_precision(dtype):
    """The bound of gradients must not exceed the largest number of the type."""
    model, batch = net(), Batch.from_data_list(graphs())
    with torch.autocast("cpu", dtype=dtype):
        loss = model(batch).float().square().mean()
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
