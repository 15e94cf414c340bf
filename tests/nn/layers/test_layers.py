"""The layers against the reference, and as parts of networks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn import (
    ChebConv,
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    global_add_pool,
)
from torch_geometric.testing import assert_module

import haarpool as hp
from haarpool.nn import HaarConv, HaarPooling, HaarReadout, HaarUnpooling
from haarpool.nn import __all__ as PUBLIC
from haarpool.nn.layers.readout import STATISTICS
from helpers.layers import (
    BATCH,
    CASES,
    SMALL,
    D,
    N,
    P,
    Phi,
    U,
    built,
    carrier,
    case,
    each_case,
    each_details,
    each_domain,
    lists_of_chains,
    owner,
    random_graph,
    signal,
    together,
    whole,
)
from helpers.strategies import at_most, chains
from helpers.tolerances import LOOSER, TOLERANCE, close


@pytest.fixture(autouse=True)
def seeded():
    """Layers have random weights."""
    torch.manual_seed(0)


def test_the_reference_is_one():
    """P, D and Φ from their definitions fit together, or nothing below means anything."""
    for chain in SMALL:
        for j in (0, 1):
            assert close(Phi(chain, j), P(chain, j) @ U(chain, j + 1))
            assert close(
                P(chain, j) @ P(chain, j).T + D(chain, j) @ D(chain, j).T, np.eye(chain.sizes[j])
            )


# ------------------------------------------------------------------ pooling


@each_domain
@each_details
@pytest.mark.parametrize("dtype", TOLERANCE)
@at_most(15)
@given(many=lists_of_chains())
def test_pooling_equals_the_reference(domain, details, dtype, many):
    data = together(many)
    for j in range(many[0].num_levels):
        x = signal(many, j, dtype=dtype)
        exact = x.double()  # what the layer really receives
        out = HaarPooling(j, domain, details)(x, data)
        assert out.x.dtype == dtype
        assert close(out.x, whole(Phi if domain == "haar" else P, many, j).T @ exact, dtype)
        dropped = whole(D, many, j).T @ exact
        if details is None:
            assert out.details is None
        elif details == "full":
            assert close(out.details, dropped, dtype)
        else:
            assert close(out.details, whole(owner, many, j).T @ dropped.square(), dtype)


@at_most(20)
@given(lists_of_chains())
def test_the_coarse_graph_is_that_of_the_chain(many):
    data = together(many)
    for j in range(many[0].num_levels):
        out = HaarPooling(j)(signal(many, j), data)
        size = len(out.x)
        dense = torch.zeros(size, size, dtype=torch.float64)
        dense[out.edge_index[0], out.edge_index[1]] = out.edge_weight
        expected = block_diag(*(chain.adjacency(j + 1).toarray() for chain in many))
        assert close(dense, expected)
        assert out.edge_index.shape == (2, np.count_nonzero(expected))
        counts = [chain.sizes[j + 1] for chain in many]
        assert out.batch.tolist() == np.repeat(np.arange(len(many)), counts).tolist()


@each_domain
@pytest.mark.parametrize("measure", ["children", "mass"])
def test_one_pooling_to_one_node_is_the_scaled_sum(domain, measure):
    many = built([9, 1, 30], num_levels=1, measure=measure)
    data = together(many)
    out = HaarPooling(0, domain)(data.x, data)
    rows = [d.x.sum(0) / np.sqrt(len(d.x)) for d in data.to_data_list()]
    assert close(out.x, torch.stack(rows))
    assert out.edge_index.shape == (2, 0)


@each_domain
@at_most(30)
@given(many=lists_of_chains())
def test_unpooling_restores(domain, many):
    data = together(many)
    for j in range(many[0].num_levels):
        x = signal(many, j)
        out = HaarPooling(j, domain, details="full")(x, data)
        assert close(HaarUnpooling(j, domain)(out.x, data, out.details), x)


@each_domain
@at_most(30)
@given(many=lists_of_chains())
def test_unpooling_is_the_transpose(domain, many):
    data = together(many)
    for j in range(many[0].num_levels):
        x, z = signal(many, j), signal(many, j + 1, seed=1)
        pooled, back = HaarPooling(j, domain)(x, data).x, HaarUnpooling(j, domain)(z, data)
        assert close((pooled * z).sum(), (x * back).sum())


@each_domain
@at_most(30)
@given(many=lists_of_chains())
def test_parseval(domain, many):
    data = together(many)
    for j in range(many[0].num_levels):
        x = signal(many, j)
        full = HaarPooling(j, domain, details="full")(x, data)
        energy = HaarPooling(j, domain, details="energy")(x, data)
        kept = full.x.square().sum(0)
        assert close(kept + full.details.square().sum(0), x.square().sum(0))
        assert close(kept + energy.details.sum(0), x.square().sum(0))


def test_energies_of_a_constant_are_never_negative():
    data = together(SMALL, dtype=torch.float32)
    x = torch.full((N[0], 3), 1e4 + 1 / 3)
    energy = HaarPooling(0, details="energy")(x, data).details
    assert (energy >= 0).all()
    assert energy.max() < LOOSER["energy of a constant"] * x.square().max()


# ------------------------------------------------------------------ readout


@at_most(30)
@given(many=lists_of_chains())
def test_readout_equals_the_formulas_graph_by_graph(many):
    data, K = together(many), many[0].num_levels
    for j in range(K):
        x = signal(many, j)
        sizes = [chain.sizes[j] for chain in many]
        rows = []
        for chain, own in zip(many, x.split(sizes), strict=True):
            n, own = len(own), own.numpy()
            columns = [own.sum(0) / np.sqrt(n), own.mean(0), own.sum(0)]
            for i in range(j, K):
                columns.append(np.sqrt(((D(chain, i).T @ own) ** 2).sum(0) / n))
                own = P(chain, i).T @ own
            rows.append(np.concatenate(columns))
        layer = HaarReadout(j, STATISTICS)
        result = layer(x, data)
        assert close(result, np.stack(rows))
        assert result.shape[1] == layer.out_channels(2, K)


@at_most(30)
@given(many=lists_of_chains())
def test_energies_and_the_top_add_up(many):
    """n · energy² over all levels, and the square of what is left on top: Σ x² of each graph."""
    data, K = together(many), many[0].num_levels
    n = torch.tensor([chain.sizes[0] for chain in many], dtype=torch.float64)[:, None]
    x = top = signal(many, 0)
    for j in range(K):
        top = HaarPooling(j, "vertex")(top, data).x
    energies = HaarReadout(0, "energy")(x, data).view(len(many), K, 2).square().sum(1) * n
    batch_top = data[f"haar_tree_{K}"][2]
    total = energies + global_add_pool(top.square(), batch_top)
    assert close(total, global_add_pool(x.square(), data.batch))


@pytest.mark.parametrize("statistics", [[name] for name in STATISTICS] + [["energy", "mean"]])
def test_statistics_keep_their_order(statistics):
    every = dict(
        zip(
            STATISTICS,
            HaarReadout(0, STATISTICS)(BATCH.x, BATCH).split([2, 2, 2, 4], 1),
            strict=True,
        )
    )
    expected = torch.cat([every[name] for name in statistics], 1)
    assert torch.equal(HaarReadout(0, statistics)(BATCH.x, BATCH), expected)
    if len(statistics) == 1:  # a name alone will do
        assert torch.equal(HaarReadout(0, *statistics)(BATCH.x, BATCH), expected)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_readout_of_other_types(dtype):
    x = BATCH.x.to(dtype)
    result = HaarReadout(0, STATISTICS)(x, BATCH)
    assert result.dtype == dtype
    assert close(result, HaarReadout(0, STATISTICS)(x.double(), BATCH), dtype)


@pytest.mark.parametrize("value", [0.0, 1.0, 1 / 3, -1e6])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_are_finite_where_there_is_no_energy(value, dtype):
    x = torch.full((N[0], 2), value, dtype=dtype, requires_grad=True)
    HaarReadout(0, "energy")(x, BATCH).sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad.abs().max() <= 10


def relabelled(chain, seed):
    """The same chain with other numbers for nodes and clusters, and new -> old ids of a level."""
    rng = np.random.default_rng(seed)
    old = [rng.permutation(size) for size in chain.sizes]
    new = [np.argsort(p) for p in old]
    graph = chain.adjacency(0, self_loops=True)[old[0]][:, old[0]]
    parents = [new[j + 1][p[old[j]]] for j, p in enumerate(chain.parents)]
    return hp.Chain.from_parents(
        parents, adjacency=graph, order=chain.order, measure=chain.measure
    ), old


@given(chains(), st.integers(0, 2**32 - 1))
def test_readout_does_not_depend_on_numbers(chain, seed):
    renamed, old = relabelled(chain, seed)
    for j in range(chain.num_levels):
        x, layer = signal([chain], j), HaarReadout(j, STATISTICS)
        assert close(layer(x[old[j]], carrier(renamed)), layer(x, carrier(chain)))


# ------------------------------------------------------------------ convolution


def filter_by_coefficient(conv, chain):
    """(N_j, in_channels) the value of the filter for each column of U_j."""
    K, j, sizes = chain.num_levels, conv.level, chain.sizes
    values = [conv.filter[-1:], conv.filter[-2:-1].expand(sizes[K] - 1, -1)]
    details = range(K - 1, j - 1, -1)
    values += [conv.filter[i - j].expand(sizes[i] - sizes[i + 1], -1) for i in details]
    return torch.cat(values)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@at_most(30)
@given(many=lists_of_chains())
def test_convolution_equals_the_reference(dtype, many):
    data, K = together(many), many[0].num_levels
    for j in range(K + 1):
        conv = HaarConv(2, 3, K, level=j).to(dtype)
        nn.init.normal_(conv.filter)
        x, basis = signal(many, j, dtype=dtype), whole(U, many, j)
        theta = torch.cat([filter_by_coefficient(conv, chain) for chain in many]).double()
        filtered = basis @ (theta * (basis.T @ x.double()))
        expected = filtered @ conv.lin.weight.double().T + conv.lin.bias.double()
        assert close(conv(x, data), expected, dtype)


def test_the_filter_changes_nothing_at_first():
    conv = HaarConv(2, 3, 2).double()
    assert close(conv(BATCH.x, BATCH), conv.lin(BATCH.x))


@at_most(20)
@given(chains(), st.integers(0, 2**32 - 1))
def test_convolution_follows_the_numbers_of_nodes(chain, seed):
    """Equivariant: relabelled nodes have the same rows in another order."""
    renamed, old = relabelled(chain, seed)
    conv = HaarConv(2, 3, chain.num_levels).double()
    nn.init.normal_(conv.filter)
    x = signal([chain], 0)
    assert close(conv(x[old[0]], carrier(renamed)), conv(x, carrier(chain))[old[0]])


# ------------------------------------------------------------------ gradients


@each_case
def test_gradients(name):
    level, layer, apply = case(name)
    layer.double()
    x = signal(SMALL, level).requires_grad_()
    assert gradcheck(lambda v: apply(v, BATCH), x)
    assert gradgradcheck(lambda v: apply(v, BATCH), x)
    # Most are linear, and only their square has a second derivative.
    assert gradgradcheck(lambda v: apply(v, BATCH).square().sum(), x)


def test_gradients_of_parameters():
    conv = HaarConv(2, 3, 2).double()
    names, values = zip(*conv.named_parameters(), strict=True)

    def apply(x, *values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, BATCH))

    inputs = [t.detach().requires_grad_() for t in (BATCH.x, *values)]
    assert gradcheck(apply, inputs)
    assert gradgradcheck(apply, inputs)


@each_case
def test_function_transforms(name):
    """torch.func on each layer: values, not only that it runs."""
    level, layer, apply = case(name)
    layer.double()
    x, v = signal(SMALL, level), signal(SMALL, level, seed=1)

    def of_batch(values):
        return apply(values, BATCH)

    def loss(values):
        return of_batch(values).square().sum()

    leaf = x.clone().requires_grad_()
    gradient = torch.autograd.grad(loss(leaf), leaf)[0]
    assert close(torch.func.grad(loss)(x), gradient)
    value, tangent = torch.func.jvp(of_batch, (x,), (v,))
    assert close(value, of_batch(x))
    w = torch.randn_like(value)
    pulled = torch.func.vjp(of_batch, x)[1](w)[0]
    assert close((tangent * w).sum(), (v * pulled).sum())
    assert close(2 * (value * tangent).sum(), (gradient * v).sum())  # of another rule
    pair = torch.stack([x, v])
    assert close(torch.func.vmap(of_batch)(pair), torch.stack([of_batch(x), of_batch(v)]))
    both = torch.func.vmap(torch.func.grad(loss))(pair)
    assert close(both, torch.stack([torch.func.grad(loss)(one) for one in pair]))
    nested = torch.func.vmap(torch.func.vmap(of_batch))(torch.stack([pair, 2 * pair]))
    assert close(nested[1, 0], of_batch(2 * x))


def test_functional_call():
    conv = HaarConv(2, 3, 2).double()
    values = {key: torch.randn_like(value) for key, value in conv.named_parameters()}
    x = torch.stack([BATCH.x, -BATCH.x.exp()])

    def loss(values, x):
        return torch.func.functional_call(conv, values, (x, BATCH)).square().sum()

    twin = HaarConv(2, 3, 2).double()
    twin.load_state_dict(values)
    each = [twin(one, BATCH).square().sum() for one in x]
    expected = [torch.autograd.grad(one, list(twin.parameters())) for one in each]
    assert close(loss(values, x[0]), each[0])
    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(values, x)
    for key, *gradients in zip(values, *expected, strict=True):
        assert close(per_sample[key], torch.stack(gradients))


# ------------------------------------------------------------------ inside networks


class TwoConvolutions(nn.Module):
    """Convolution, pooling, convolution, sum over each graph."""

    def __init__(self, first, second, domain="vertex", second_pool=False):
        super().__init__()
        self.first, self.second = first, second
        self.pool = HaarPooling(0, domain)
        self.last = HaarPooling(1, domain) if second_pool else None

    def forward(self, data):
        x = _convolved(self.first, data.x, data.edge_index, data.edge_weight).tanh()
        out = self.pool(x, data)
        x = _convolved(self.second, out.x, out.edge_index, out.edge_weight).tanh()
        return global_add_pool(x, out.batch) if self.last is None else self.last(x, data).x


def _convolved(conv, x, edge_index, edge_weight):
    takes_weights = isinstance(conv, GCNConv | ChebConv)
    return conv(x, edge_index, edge_weight) if takes_weights else conv(x, edge_index)


@each_domain
@pytest.mark.parametrize(("num_levels", "second_pool"), [(1, False), (2, False), (2, True)])
def test_what_renumbering_changes(domain, second_pool, num_levels):
    """Nothing in the vertex domain; in the Haar domain what a convolution does behind pooling,
    unless one row alone is left there."""
    (chain,) = built([20], seed=3, num_levels=num_levels, order="index")
    data = carrier(chain)
    net = TwoConvolutions(GCNConv(2, 8), GCNConv(8, 4), domain, second_pool).double()
    expected, equal = net(data), []
    for seed in range(5):
        renamed, old = relabelled(chain, seed)
        other = carrier(renamed)
        other.x = data.x[old[0]]
        equal.append(close(net(other), expected))
    if domain == "vertex" or num_levels == 1:
        assert all(equal)
    else:
        assert not any(equal)


@each_domain
def test_renumbering_permutes_the_rows_of_the_vertex_domain(domain):
    (chain,) = built([20], seed=3, order="index")
    renamed, old = relabelled(chain, 0)
    x = signal([chain], 0)
    before = HaarPooling(0, domain)(x, carrier(chain)).x
    after = HaarPooling(0, domain)(x[old[0]], carrier(renamed)).x
    assert close(after, before[old[1]]) == (domain == "vertex")


def test_the_chain_itself_may_depend_on_numbering():
    """For most graphs with "matching", if edges have equal weights."""
    rng, changed = np.random.default_rng(0), 0
    for seed in range(10):
        graph, order = random_graph(30, seed=seed).sign(), rng.permutation(30)
        renumbered = graph[order][:, order]
        parents, new_parents = (
            hp.build_chain(each, num_levels=1, sizes=[15], method="matching").parents[0]
            for each in (graph, renumbered)
        )
        same_cluster = parents[order][:, None] == parents[order]
        changed += not np.array_equal(same_cluster, new_parents[:, None] == new_parents)
    assert changed > 5


CONVOLUTIONS = {
    "gcn": GCNConv,
    "gin": lambda a, b: GINConv(nn.Linear(a, b)),
    "sage": SAGEConv,
    "gat": GATConv,
    "cheb": lambda a, b: ChebConv(a, b, K=2),
}


@each_domain
@pytest.mark.parametrize("first", CONVOLUTIONS)
@pytest.mark.parametrize("second", CONVOLUTIONS)
def test_any_convolution_before_and_after(first, second, domain):
    make = CONVOLUTIONS
    net = TwoConvolutions(make[first](2, 4), make[second](4, 3), domain).double()
    data = BATCH.clone()
    data.x.requires_grad_()
    out = net(data)
    assert out.shape == (len(SMALL), 3)
    out.square().sum().backward()
    assert data.x.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    assert all(p.grad.abs().sum() > 0 for p in net.second.parameters())


@pytest.mark.parametrize("kind", ["gcn", "cheb"])
def test_weights_of_edges_reach_the_convolution_behind(kind):
    """The first layer takes no weights, so only those of the coarse graph can matter."""
    net = TwoConvolutions(SAGEConv(2, 2), CONVOLUTIONS[kind](2, 3)).double()
    (light,) = built([12], seed=1, order="index")
    graph = light.adjacency(0)
    graph.data = graph.data * np.where(graph.data > np.median(graph.data), 5, 1)
    heavy = hp.Chain.from_parents(light.parents, adjacency=graph)
    assert torch.equal(carrier(light).x, carrier(heavy).x)
    assert not close(net(carrier(heavy)), net(carrier(light)))


class Wrapped(nn.Module):
    def __init__(self, conv, layer):
        super().__init__()
        self.conv, self.layer = conv, layer

    def forward(self, x, edge_index, data=None):
        result = self.layer(self.conv(x, edge_index), data)
        return result if isinstance(result, torch.Tensor) else result.x


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # CSR and CSC, which torch calls beta
@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (HaarPooling(0), (N[1], 4)),
        (HaarPooling(0, "vertex", "energy"), (N[1], 4)),
        (HaarConv(4, 5, num_levels=2), (N[0], 5)),
        (HaarReadout(0), (len(SMALL), 16)),
    ],
    ids=["haar", "vertex", "conv", "readout"],
)
@pytest.mark.parametrize("conv", [GCNConv, SAGEConv])
def test_as_pyg_tests_its_modules(conv, layer, size):
    data = together(SMALL, dtype=torch.float32)
    module = Wrapped(conv(2, 4), layer.float())
    assert_module(module, data.x, data.edge_index, expected_size=size, data=data, atol=1e-6)


# ------------------------------------------------------------------ as modules


EVERY = {
    "HaarPooling(level=0, domain='haar')": lambda: HaarPooling(0),
    "HaarPooling(level=2, domain='vertex', details='full')": lambda: HaarPooling(
        2, "vertex", "full"
    ),
    "HaarPooling(level=1, domain='haar', details='energy')": lambda: HaarPooling(
        1, details="energy"
    ),
    "HaarUnpooling(level=0, domain='haar')": lambda: HaarUnpooling(0),
    "HaarUnpooling(level=3, domain='vertex')": lambda: HaarUnpooling(3, domain="vertex"),
    "HaarReadout(level=0, statistics=['scaled_sum', 'mean', 'energy'])": lambda: HaarReadout(),
    "HaarReadout(level=1, statistics=['sum'])": lambda: HaarReadout(1, "sum"),
    "HaarConv(16, 32, num_levels=3, level=0)": lambda: HaarConv(16, 32, 3),
    "HaarConv(4, 2, num_levels=3, level=1, bias=False)": lambda: HaarConv(4, 2, 3, 1, bias=False),
}


def test_every_layer_is_tested():
    # See test_haar_net.py and test_haar_unet.py.
    networks = {"HaarNet", "HaarNetArchitecture", "HaarSumNet", "HaarSumArchitecture"}
    networks |= {"HaarUNet", "HaarUNetArchitecture"}
    layers = {name for name in PUBLIC if name.startswith("Haar")} - networks
    assert {type(layer).__name__ for _, layer, _ in CASES.values()} == layers
    assert {type(make()).__name__ for make in EVERY.values()} == layers


@pytest.mark.parametrize("text", EVERY)
def test_repr(text):
    assert repr(EVERY[text]()) == text


@pytest.mark.parametrize("text", EVERY)
def test_parameters_and_how_they_are_reset(text):
    layer = EVERY[text]()
    if not isinstance(layer, HaarConv):
        assert layer.state_dict() == {}
        assert sum(p.numel() for p in layer.parameters()) == 0
        assert layer.reset_parameters() is None
        return
    rows = layer.num_levels - layer.level + 2
    assert layer.filter.shape == (rows, layer.in_channels)
    weight = layer.lin.weight.detach().clone()
    nn.init.zeros_(layer.filter)
    layer.reset_parameters()
    assert (layer.filter == 1).all()
    assert not torch.equal(layer.lin.weight, weight)
    assert ("lin.bias" in layer.state_dict()) == ("bias=False" not in text)
    twin = EVERY[text]()
    twin.load_state_dict(layer.state_dict())
    assert torch.equal(twin.lin.weight, layer.lin.weight)


def test_a_dict_of_tensors_is_data_too():
    for name in CASES:
        level, layer, apply = case(name)
        layer.double()
        x = signal(SMALL, level)
        assert torch.equal(apply(x, BATCH.to_dict()), apply(x, BATCH)), name


def test_no_columns():
    x = torch.zeros(N[0], 0)
    assert HaarPooling(0)(x, BATCH).x.shape == (N[1], 0)
    assert HaarReadout()(x, BATCH).shape == (len(SMALL), 0)
