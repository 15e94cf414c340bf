"""HaarUNet: what it computes, on which data, and how it runs."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from haarpool.data import AddHaarChain
from haarpool.errors import HaarPoolError
from haarpool.nn import HaarUNet, HaarUNetArchitecture, build_model, parse_architecture
from haarpool.training.minibatches import Minibatches
from helpers.networks import FEATURES, SIZES, weighted_graph

EDGES = 2
KINDS = {
    "levels": {"levels": 3},
    "shared": {"levels": 3, "shared": True},
    "any levels": {"levels": None, "shared": True},
    "flat": {"levels": 0, "depth": 3},
    "virtual node": {"levels": 2, "virtual_node": True},
    "no coarse edges": {"levels": 3, "coarse_edges": False},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def graphs(sizes=SIZES, levels=3, **parameters):
    made = []
    for seed, size in enumerate(sizes):
        graph = weighted_graph(size, seed)
        torch.manual_seed(seed)
        graph.edge_attr = torch.randn(graph.edge_index.shape[1], EDGES).double()
        graph.x, graph.edge_weight = graph.x.double(), graph.edge_weight.double()
        made.append(graph)
    parameters = {"top": None, "method": "matching", "edge_attr": "mean"} | parameters
    return [AddHaarChain(levels, **parameters)(g) for g in made]


def net(kind="levels", **options):
    torch.manual_seed(0)
    settings = {"width": 8, "edge_channels": EDGES} | KINDS[kind] | options
    return HaarUNet(FEATURES, 2, **settings).double().eval()


def by_hand(model, data):
    """The network with dense matrices and one graph, line by line from its docstring."""
    chain = data.chain_tensors
    levels = model.arch.num_levels

    def dense(level):
        if level == 0:
            (source, target), weight = data.edge_index, data.edge_weight
        else:
            (source, target), weight, _ = chain.coarse_graph(level, torch.float64)
        matrix = torch.zeros(chain.size(level), chain.size(level)).double()
        return matrix.index_put((target, source), weight)

    def coarse_edges(level):
        edges, features = chain.coarse_graph(level, torch.float64)[0], data[f"haar_attr_{level}"].T
        columns = torch.zeros(len(features), EDGES + 1).double()
        for e, (*means, number) in enumerate(features):
            if number > 0:
                columns[e, :EDGES] = model.standardize_edges(torch.stack(means)[None])[0]
                columns[e, EDGES] = torch.log(1 + number)
        return edges, columns

    def mean(matrix, x):
        total = matrix.abs().sum(1, keepdim=True)
        return torch.where(total > 0, matrix @ x / total.clamp(min=1e-30), 0)

    def convolve(convolution, x, level):
        matrix, h = dense(level), convolution.norm(x)
        parts = [h, mean(matrix, h), mean((matrix != 0).double(), h)]
        if convolution.edge is not None:
            (source, target), features = data.edge_index, data.edge_attr
            features = model.standardize_edges(features)
            if level > 0:
                (source, target), features = coarse_edges(level)
            messages = (h[source] + convolution.edge(features)).relu()
            total = torch.zeros_like(h).index_add(0, target, messages)
            degree = torch.bincount(target, minlength=len(h))[:, None]
            parts.append(total / degree.clamp(min=1))
        return x + convolution.second(convolution.first(torch.cat(parts, 1)).relu())

    def P(level):
        from haarpool.haar.operators import synthesis

        eye = torch.eye(chain.size(level + 1)).double()
        return synthesis(chain, eye, level, skip=True, single=True)

    signals = [convolve(model.down[0][0], model.embedding(data.x), 0)]
    for j in range(levels):
        signals.append(convolve(model.down[j + 1][0], P(j).T @ signals[-1], j + 1))
    x = signals[-1]
    for j in reversed(range(levels)):
        x = signals[j] + P(j) @ model.corrections[j](x)
        x = convolve(model.up[j][0], x, j)
    return model.output(model.norm(x))


@pytest.mark.parametrize("measure", ["mass", "children"])
@pytest.mark.parametrize("kind", ["levels", "no coarse edges"])
def test_formula(measure, kind):
    data, model = graphs([20], measure=measure)[0], net(kind, standardize_edges=[1])
    model.fit_inputs([data])
    assert_same_as_by_hand(model, data)


def assert_same_as_by_hand(model, data):
    """Outputs and gradients of all weights and of x."""
    weights = list(model.parameters())
    x = data.x.clone().requires_grad_()
    data = data.clone()
    data.x = x
    results = [
        (output, *torch.autograd.grad(output.square().sum(), [x, *weights]))
        for output in (model(data), by_hand(model, data))
    ]
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("reduction", ["mean", "sum", "max", "min"])
def test_coarse_edges_with_a_direction(reduction):
    """An edge has other features in each direction, and some are in one direction only."""
    (data,), model = graphs([30]), net(standardize_edges=[0, 1])
    kept = torch.rand(data.num_edges) < 0.5
    plain = {k: v for k, v in data.to_dict().items() if not k.startswith("haar")}
    plain["edge_weight"] = torch.ones_like(data.edge_weight)
    chain = AddHaarChain(3, top=None, method="matching").build(data)
    plain |= {key: plain[key][..., kept] for key in ("edge_index", "edge_weight")}
    directed = Data(**plain | {"edge_attr": data.edge_attr[kept]})
    made = AddHaarChain(chain=lambda data: chain, edge_attr=reduction)(directed)
    number = made.haar_attr_1[-1]
    assert (number == 0).any()
    assert (number != number[made.haar_reverse_1[0]]).any()
    model.fit_inputs([made])
    assert_same_as_by_hand(model, made)
    store = Minibatches.of([made, made])
    torch.testing.assert_close(model(store.take([0, 1])), torch.cat([model(made)] * 2))


def test_the_transform_of_a_network_adds_what_it_reads():
    assert net().transform().edge_attr == "mean"
    assert net().transform(edge_attr="max", seed=1).edge_attr == "max"
    assert net().transform(chain=lambda data: None).edge_attr == "mean"
    for model in (net(edge_channels=0), net("no coarse edges")):
        assert model.transform().edge_attr is None
    assert net("flat").transform() is None
    plain = graphs([20], edge_attr=None)[0]
    with pytest.raises(HaarPoolError, match=r"data without haar_attr_1; add .*edge_attr='mean'"):
        net()(plain)
    with pytest.raises(HaarPoolError, match="with 1 features and their number, got 3 rows"):
        net(edge_channels=1)({**graphs([20])[0].tensors, "edge_attr": plain.edge_attr[:, :1]})
    assert net("no coarse edges")(plain).shape == (20, 2)


def test_features_of_coarse_edges_change_the_output():
    data, model = graphs([20])[0], net()
    before = model(data)
    for level in (1, 2):
        changed = data.clone()
        changed[f"haar_attr_{level}"] = -changed[f"haar_attr_{level}"].abs()
        changed[f"haar_attr_{level}"][-1] *= -1
        assert not torch.allclose(model(changed), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_large_numbers_of_edges_in_short_types(dtype):
    data, model = graphs([20])[0], net().to(dtype)
    data.x = data.x.to(dtype)
    data.haar_attr_1[-1] = 1e6
    assert model(data).isfinite().all()


@kinds
def test_a_batch_is_one_by_one(kind):
    data, model = graphs(), net(kind)
    alone = torch.cat([model(one) for one in data])
    torch.testing.assert_close(model(Batch.from_data_list(data)), alone)
    torch.testing.assert_close(model(Minibatches.of(data).take(range(len(data)))), alone)


@kinds
def test_signals_are_one_by_one(kind):
    data, model = graphs([30])[0], net(kind)
    x = torch.randn(4, 30, FEATURES).double()
    tensors = data.tensors
    together = model({**tensors, "x": x})
    assert together.shape == (4, 30, 2)
    alone = torch.stack([model({**tensors, "x": one}) for one in x])
    torch.testing.assert_close(together, alone)


@kinds
def test_numbering_does_not_matter(kind):
    from haarpool import Chain

    graph, model = graphs([25])[0], net(kind)
    order = torch.randperm(25)
    position = order.argsort()
    chain = AddHaarChain(3, top=None, method="matching").build(
        Data(edge_index=graph.edge_index, edge_weight=graph.edge_weight, num_nodes=25)
    )
    parents = [chain.parents[0][order.numpy()], *chain.parents[1:]]
    plain = {k: v for k, v in graph.to_dict().items() if not k.startswith("haar")}
    other = Data(**plain | {"x": graph.x[order], "edge_index": position[graph.edge_index]})

    def with_parents(parents):
        return AddHaarChain(
            chain=lambda data: Chain.from_parents(parents, adjacency=data), edge_attr="sum"
        )

    expected = model(with_parents(chain.parents)(Data(**plain)))[order]
    torch.testing.assert_close(model(with_parents(parents)(other)), expected)


def test_one_network_for_any_number_of_levels():
    model = net("any levels")
    outputs = [model(graphs([40], levels)[0]) for levels in (1, 3, 5)]
    assert all(output.shape == (40, 2) for output in outputs)
    assert not torch.equal(outputs[0], outputs[1])


@pytest.mark.parametrize("kind", ["levels", "shared", "virtual node"])
def test_every_node_sees_the_whole_graph(kind):
    """On a path, pooled networks carry a change to the other end; flat ones do not."""
    path = torch.stack([torch.arange(39), torch.arange(1, 40)])
    edges = torch.cat([path, path.flip(0)], 1)
    plain = Data(x=torch.randn(40, FEATURES).double(), edge_index=edges)
    data = AddHaarChain(5, top=None, method="matching")(plain)
    for model, reaches in (
        (net(kind, edge_channels=0, levels=KINDS[kind]["levels"] + 2), True),
        (net("flat", edge_channels=0), False),
    ):
        x = data.x.clone().requires_grad_()
        model({**data.tensors, "x": x})[0].sum().backward()
        assert bool(x.grad[-1].abs().sum() > 0) is reaches


@kinds
def test_gradients(kind):
    data, model = graphs([7])[0], net(kind)
    x = data.x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model({**data.tensors, "x": x}), x)
    model(data).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_padded_minibatches_give_the_same_rows():
    data, model = graphs(), net()
    batches = Minibatches.of(data)
    numbers, capacity = torch.tensor([1, 3]), batches.capacity(2)
    rows = sum(data[i].num_nodes for i in (1, 3))
    padded = model(batches.take_padded(numbers, capacity), padded=True)
    assert len(padded) > rows
    torch.testing.assert_close(padded[:rows], model(batches.take([1, 3])))


@pytest.mark.gpu
@kinds
def test_a_gpu_gives_the_same(kind):
    data, model = graphs([30])[0], net(kind)
    expected = model(data)
    x = torch.randn(4, 30, FEATURES).double()
    signals = model({**data.tensors, "x": x})
    model, data = model.cuda(), data.to("cuda")
    batch = Minibatches.of([data], "cuda").take([0])  # with lists of neighbours
    for one in (data, batch):
        torch.testing.assert_close(model(one).cpu(), expected)
    output = model({**batch, "x": x.cuda()})
    torch.testing.assert_close(output.cpu(), signals)
    first, again = (torch.autograd.grad(output.square().sum(), model.embedding.weight,
                                        retain_graph=True)[0] for _ in range(2))  # fmt: skip
    assert torch.equal(first, again)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["levels", "flat"])
def test_compiles(kind):
    data, model = graphs([20])[0], net(kind)
    compiled = torch.compile(model, dynamic=True)
    torch.testing.assert_close(compiled(dict(data.tensors)), model(data))


def test_strings():
    arch = parse_architecture("haarunet:depth=2,levels=auto,shared=true")
    assert arch == HaarUNetArchitecture(depth=2, shared=True)
    assert str(arch) == "haarunet:depth=2,shared=true"
    assert str(HaarUNetArchitecture(virtual_node=True)) == "haarunet:virtual_node=true"
    assert arch.with_levels(10**6) is arch
    assert arch.levels_of(10**6) == 17
    assert [HaarUNetArchitecture().levels_of(n) for n in (1, 10, 20, 2869)] == [1, 1, 1, 9]
    assert arch.levels_of(10) == 2
    assert HaarUNetArchitecture(levels=4).levels_of(10**6) is None
    assert {text for text, _ in HaarUNetArchitecture(levels=0).parts()} == {"1 MEAN", "FC"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("haarunet:levels=yes", "names out of width, depth, levels, shared, virtual_node"),
        ("haarunet:levels=65", "0 to 64 for levels"),
        ("haarunet:shared=1", "true or false for shared"),
        ("haarunet:width=auto", "NAME=NUMBER"),
    ],
)
def test_wrong_strings(text, message):
    with pytest.raises(HaarPoolError) as caught:
        parse_architecture(text)
    assert message in str(caught.value)


def test_errors():
    with pytest.raises(HaarPoolError, match="levels as a number, if each level has its own"):
        HaarUNet(3, 1)
    with pytest.raises(HaarPoolError, match='domain "vertex", got'):
        HaarUNet(3, 1, levels=1, domain="haar")
    with pytest.raises(HaarPoolError, match="an output for graphs, for the task 'regression'"):
        HaarUNet(3, 1, levels=1, task="regression")
    with pytest.raises(HaarPoolError, match="an output for nodes, for the task 'node_regr"):
        build_model("haarnet", 3, 1, task="node_regression")
    data = graphs([20])[0]
    with pytest.raises(HaarPoolError, match="a chain of at least 4 levels"):
        net(levels=4)(data)
    with pytest.raises(HaarPoolError, match="x with 3 columns" if FEATURES == 3 else "x with"):
        net()({**data.tensors, "x": data.x[:, :1]})
    with pytest.raises(HaarPoolError, match=r"a signal of shape \(20, d\)"):
        net()({**data.tensors, "x": data.x[None, :10].expand(3, -1, -1)})
