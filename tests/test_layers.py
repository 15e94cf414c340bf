"""The layers against the reference, as parts of networks, under compilers, and with bad input."""

import contextlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import block_diag
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    ChebConv,
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    global_add_pool,
)
from torch_geometric.testing import assert_module

import haarpool as hp
from haarpool.data import ChainData
from haarpool.nn import HaarConv, HaarPooling, HaarReadout, HaarUnpooling
from haarpool.nn.readout import STATISTICS
from strategies import DEVICES, TOLERANCE, chains, close

DOMAINS = ["haar", "vertex"]
each_domain = pytest.mark.parametrize("domain", DOMAINS)
each_device = pytest.mark.parametrize("device", DEVICES)
each_details = pytest.mark.parametrize("details", [None, "energy", "full"])


# ------------------------------------------------------------------ data and reference


def carrier(chain, columns=2, domain="haar", dtype=torch.float64) -> ChainData:
    """The graph of a chain, with the chain and a signal."""
    whole = chain.adjacency(0).tocoo()
    x = np.random.default_rng(chain.sizes[0]).standard_normal((chain.sizes[0], columns))
    data = Data(
        x=torch.from_numpy(x).to(dtype),
        edge_index=torch.from_numpy(np.stack([whole.row, whole.col]).astype(np.int64)),
        edge_weight=torch.from_numpy(whole.data).to(dtype),
    )
    return ChainData.from_chain(data, chain, domain=domain)


def together(many, **options):
    return Batch.from_data_list([carrier(chain, **options) for chain in many])


@st.composite
def lists_of_chains(draw, max_size=4, **options):
    """Chains of equal depth."""
    each = chains(num_levels=draw(st.integers(1, 3)), max_nodes=10, **options)
    return draw(st.lists(each, min_size=1, max_size=max_size))


def signal(many, level, columns=2, seed=0, dtype=torch.float64):
    rows = sum(chain.sizes[level] for chain in many)
    x = np.random.default_rng(seed).standard_normal((rows, columns))
    return torch.from_numpy(x).to(dtype)


def whole(matrix, many, level):
    """One matrix for all graphs, as a tensor."""
    return torch.from_numpy(block_diag(*(matrix(chain, level) for chain in many)))


def U(chain, j):
    return hp.haar_basis(chain, j).toarray()


def Phi(chain, j):
    return hp.compressive_basis(chain, j).toarray()


def D(chain, j):
    """The details of a level: those columns of U_j that are not Φ_j."""
    return U(chain, j)[:, chain.sizes[j + 1] :]


def P(chain, j):
    """Cluster sums, by their definition."""
    parent, m = chain.parents[j], chain.measures(j)
    result = np.zeros(chain.sizes[j : j + 2])
    result[np.arange(len(parent)), parent] = np.sqrt(m / np.bincount(parent, m)[parent])
    return result


def owner(chain, j):
    """(details of level j, clusters) which detail is whose: it lives on one cluster alone."""
    nodes = np.abs(D(chain, j)).argmax(0)
    return np.eye(chain.sizes[j + 1])[chain.parents[j][nodes]]


def random_graph(nodes, degree=3.0, seed=0):
    rng = np.random.default_rng(seed)
    chosen = rng.random((nodes, nodes)) < degree / nodes
    upper = np.triu(chosen * rng.uniform(0.5, 2, (nodes, nodes)), 1)
    return sparse.csr_array(upper + upper.T)


def built(sizes, seed=0, **options):
    """Chains over random graphs of these sizes."""
    options = {"num_levels": 2, "method": "matching"} | options
    graphs = [random_graph(n, seed=seed + i) for i, n in enumerate(sizes)]
    return [hp.build_chain(graph, **options) for graph in graphs]


SMALL = built([1, 7, 2, 5])
BATCH = together(SMALL)
N = BATCH.chain_sizes


def test_the_reference_is_one():
    """P, D and Φ from their definitions fit together, or nothing below means anything."""
    for chain in SMALL:
        for j in (0, 1):
            assert close(Phi(chain, j), P(chain, j) @ U(chain, j + 1))
            assert close(
                P(chain, j) @ P(chain, j).T + D(chain, j) @ D(chain, j).T, np.eye(chain.sizes[j])
            )


# Each layer with every option as a function of one signal: (level of its rows, function). A new
# option joins the tests of gradients, determinism and synchronisation by standing here.
def _pooled(layer):
    def apply(x, data):
        out = layer(x, data)
        return out.x if out.details is None else torch.cat([out.x, out.details])

    return apply


def _restored(layer):
    def apply(c, data):
        coarse = data[f"haar_tree_{layer.level + 1}"].shape[-1]
        return layer(c[:coarse], data, c[coarse:])

    return apply


CASES = {
    **{
        f"pool-{domain}-{details}-{level}": (level, HaarPooling(level, domain, details), _pooled)
        for domain in DOMAINS
        for details in (None, "energy", "full")
        for level in (0, 1)
    },
    **{
        f"unpool-{domain}-{level}": (level + 1, HaarUnpooling(level, domain), None)
        for domain in DOMAINS
        for level in (0, 1)
    },
    **{
        f"restore-{domain}-{level}": (level, HaarUnpooling(level, domain), _restored)
        for domain in DOMAINS
        for level in (0, 1)
    },
    **{f"readout-{level}": (level, HaarReadout(level, STATISTICS), None) for level in (0, 1)},
    **{f"conv-{level}": (level, HaarConv(2, 3, 2, level), None) for level in (0, 1, 2)},
}
each_case = pytest.mark.parametrize("name", CASES)


def case(name):
    """(level of the rows, the layer, a function (x, data) -> tensor)."""
    level, layer, wrap = CASES[name]
    return level, layer, layer if wrap is None else wrap(layer)


@pytest.fixture(autouse=True)
def seeded():
    """Layers have random weights."""
    torch.manual_seed(0)


# ------------------------------------------------------------------ pooling


@each_domain
@each_details
@pytest.mark.parametrize("dtype", TOLERANCE)
@settings(max_examples=15)
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


@settings(max_examples=20)
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
@given(many=lists_of_chains())
def test_unpooling_restores(domain, many):
    data = together(many)
    for j in range(many[0].num_levels):
        x = signal(many, j)
        out = HaarPooling(j, domain, details="full")(x, data)
        assert close(HaarUnpooling(j, domain)(out.x, data, out.details), x)


@each_domain
@given(many=lists_of_chains())
def test_unpooling_is_the_transpose(domain, many):
    data = together(many)
    for j in range(many[0].num_levels):
        x, z = signal(many, j), signal(many, j + 1, seed=1)
        pooled, back = HaarPooling(j, domain)(x, data).x, HaarUnpooling(j, domain)(z, data)
        assert close((pooled * z).sum(), (x * back).sum())


@each_domain
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
    assert energy.max() < 1e-6 * x.square().max()


# ------------------------------------------------------------------ readout


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
def test_statistics_stand_in_the_order_given(statistics):
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
@settings(max_examples=30)
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


@settings(max_examples=20)
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


# ------------------------------------------------------------------ bad input


BARE = together(SMALL, domain="vertex")
PLAIN = Batch.from_data_list([Data(x=torch.zeros(3, 2), edge_index=torch.zeros(2, 0).long())])
X0, X1 = torch.zeros(N[0], 2), torch.zeros(N[1], 2)
NO_CHAIN = "data without one; add AddHaarChain(num_levels=...)"
ROWS = f"a signal ({N[0]}, d)"
NO_BASES = 'use AddHaarChain without domain="vertex"'

BAD_CALLS = {
    "pool: no chain": (lambda: HaarPooling(0)(PLAIN.x, PLAIN), NO_CHAIN),
    "pool: no chain, a level above": (lambda: HaarPooling(3)(PLAIN.x, PLAIN), NO_CHAIN),
    "pool: no chain, a dict": (lambda: HaarPooling(0)(PLAIN.x, {}), NO_CHAIN),
    "unpool: no chain": (lambda: HaarUnpooling(0)(PLAIN.x, PLAIN), NO_CHAIN),
    "readout: no chain": (lambda: HaarReadout()(PLAIN.x, PLAIN), NO_CHAIN),
    "conv: no chain": (lambda: HaarConv(2, 2, 2)(PLAIN.x, PLAIN), NO_CHAIN),
    "pool: level": (lambda: HaarPooling(2)(X0, BATCH), "at least 3 levels, got one of 2"),
    "pool: level far above": (lambda: HaarPooling(9)(X0, BATCH), "a level below 2 in the layer"),
    "pool: level, vertex": (lambda: HaarPooling(2, "vertex")(X0, BATCH), "a level below 2"),
    "unpool: level": (lambda: HaarUnpooling(2)(X0, BATCH), "at least 3 levels"),
    "readout: level": (lambda: HaarReadout(3, "mean")(X0, BATCH), "at least 3 levels"),
    "readout: no energy on top": (
        lambda: HaarReadout(2, "energy")(torch.zeros(N[2], 2), BATCH), "at least 3 levels",
    ),
    "conv: shallow chain": (lambda: HaarConv(2, 2, 3)(X0, BATCH), "at least 3 levels"),
    "conv: deep chain": (lambda: HaarConv(2, 2, 1)(X0, BATCH), "a chain of 1 levels, got one of"),
    "pool: rows": (lambda: HaarPooling(0)(X1, BATCH), ROWS),
    "pool: rows, vertex": (lambda: HaarPooling(0, "vertex")(X1, BATCH), ROWS),
    "pool: rows of another level": (lambda: HaarPooling(1)(X0, BATCH), f"a signal ({N[1]}, d)"),
    "pool: rows, energy": (lambda: HaarPooling(0, details="energy")(X1, BATCH), ROWS),
    "pool: rows, full": (lambda: HaarPooling(0, details="full")(X1, BATCH), ROWS),
    "unpool: rows": (lambda: HaarUnpooling(0)(X0, BATCH), f"a signal ({N[1]}, d)"),
    "readout: rows": (lambda: HaarReadout()(X1, BATCH), ROWS),
    "conv: rows": (lambda: HaarConv(2, 2, 2)(X1, BATCH), ROWS),
    "pool: one dimension": (lambda: HaarPooling(0)(X0[:, 0], BATCH), f"shape ({N[0]},)"),
    "pool: three dimensions": (lambda: HaarPooling(0)(X0[None], BATCH), f"shape (1, {N[0]}, 2)"),
    "readout: one dimension": (lambda: HaarReadout()(X0[:, 0], BATCH), ROWS),
    "conv: one dimension": (lambda: HaarConv(2, 2, 2)(X0[:, 0], BATCH), ROWS),
    "unpool: one dimension": (lambda: HaarUnpooling(0)(X1[:, 0], BATCH), "a signal"),
    "pool: no bases": (lambda: HaarPooling(0)(X0, BARE), NO_BASES),
    "pool: no bases for details": (lambda: HaarPooling(0, "vertex", "full")(X0, BARE), NO_BASES),
    "unpool: no bases": (lambda: HaarUnpooling(0)(X1, BARE), NO_BASES),
    "unpool: no bases for details": (
        lambda: HaarUnpooling(0, "vertex")(X1, BARE, X0[N[1] :]), NO_BASES,
    ),
    "unpool: details": (
        lambda: HaarUnpooling(0)(X1, BATCH, X0), f"details of shape ({N[0] - N[1]}, 2)",
    ),
    "unpool: columns of details": (
        lambda: HaarUnpooling(0, "vertex")(X1, BATCH, X0[N[1] :, :1]), 'pool with details="full"',
    ),
    "unpool: energies for details": (
        lambda: HaarUnpooling(1)(
            torch.zeros(N[2], 2), BATCH, HaarPooling(1, details="energy")(X1, BATCH).details
        ),
        'pool with details="full"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input(name):
    call, message = BAD_CALLS[name]
    with pytest.raises(hp.HaarPoolError) as caught:
        call()
    assert message in str(caught.value)


def test_energies_have_another_shape_than_details():
    """What the last case above relies on."""
    assert N[1] - N[2] != N[2]


def test_what_needs_no_bases():
    assert torch.equal(HaarPooling(0, "vertex", "energy")(X0, BARE).x, X1)
    assert torch.equal(HaarUnpooling(0, "vertex")(X1, BARE), X0)
    assert HaarReadout()(X0, BARE).shape == (len(SMALL), 8)
    assert HaarConv(2, 5, 2)(X0, BARE).shape == (N[0], 5)


@pytest.mark.xfail(strict=True, reason="one column is spread over all in_channels of the filter")
def test_convolution_refuses_another_number_of_columns():
    with pytest.raises(hp.HaarPoolError):
        HaarConv(2, 3, 2)(X0[:, :1], BATCH)


@pytest.mark.parametrize(
    "make",
    [HaarPooling, HaarUnpooling, HaarReadout, lambda level: HaarConv(2, 2, 3, level)],
    ids=["pool", "unpool", "readout", "conv"],
)
@pytest.mark.parametrize("level", [-1, 1.5, True, None, "0"])
def test_bad_levels(make, level):
    with pytest.raises(hp.HaarPoolError, match="a level 0, 1, 2"):
        make(level)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HaarPooling(0, "foo"), "'foo'; choose one of the two"),
        (lambda: HaarPooling(0, None), "None; choose one of the two"),
        (lambda: HaarUnpooling(0, "foo"), "'foo'; choose one of the two"),
        (lambda: HaarPooling(0, details="all"), "'all'; choose one of the three"),
        (lambda: HaarPooling(0, details=True), "True; choose one of the three"),
        (lambda: HaarReadout(statistics="median"), "['median']"),
        (lambda: HaarReadout(statistics=["mean", "max", "min"]), "['max', 'min']"),
        (lambda: HaarReadout(statistics=[]), "got none"),
        (lambda: HaarConv(2, 2, num_levels=1, level=2), "num_levels >= 2"),
        (lambda: HaarConv(2, 2, num_levels=0), "num_levels >= 1"),
        (lambda: HaarConv(2, 2, num_levels=2.0), "got 2.0"),
        (lambda: HaarConv(2, 2, num_levels=None), "got None"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(hp.HaarPoolError) as caught:
        make()
    assert message in str(caught.value)


# ------------------------------------------------------------------ how it runs


@contextlib.contextmanager
def deterministic_algorithms():
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def results(apply, layer, x, data):
    """The result, and all gradients."""
    x = x.detach().requires_grad_()
    out = apply(x, data)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), [x, *layer.parameters()])]


BIG = built([300, 1, 40, 150, 2], method="matching")


@each_device
@each_case
def test_bit_for_bit_the_same(name, device):
    level, layer, apply = case(name)
    layer = layer.to(device, torch.float32)
    data, x = together(BIG).to(device), signal(BIG, level, dtype=torch.float32).to(device)
    with deterministic_algorithms():
        first, second = (results(apply, layer, x, data) for _ in range(2))
    layer.to("cpu")
    assert all(map(torch.equal, first, second))


@pytest.mark.parametrize(
    "name",
    [name for name in CASES if "full" not in name and "restore" not in name],  # the reference does
)
def test_a_batch_gives_what_its_graphs_give(name):
    level, layer, apply = case(name)
    layer.double()
    x = signal(BIG, level)
    alone = [
        apply(own, carrier(chain))
        for chain, own in zip(BIG, x.split([c.sizes[level] for c in BIG]), strict=True)
    ]
    data = together(BIG)
    if "energy" in name:  # coarse rows of all graphs first, then energies of all
        alone = [part for half in zip(*(a.chunk(2) for a in alone), strict=True) for part in half]
    assert close(apply(x, data), torch.cat(alone))


class Refusing(TorchDispatchMode):
    """An error for whatever reads a value or makes a shape depend on one."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "unique", "masked_select", "bincount")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not any(name in str(func) for name in self.FORBIDDEN), func
        if func is torch.ops.aten.index.Tensor:  # by a mask: nonzero inside
            assert not any(i is not None and i.dtype == torch.bool for i in args[1])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).all()),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x.unique(),
        lambda x: x.masked_select(x > 0),
    ],
)
def test_refusing_refuses(read):
    with Refusing(), pytest.raises(AssertionError):
        read(torch.ones(3))


@each_case
def test_nothing_is_read_back(name):
    level, layer, apply = case(name)
    layer.double()
    x = signal(SMALL, level)
    with Refusing():
        results(apply, layer, x, BATCH)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU to wait for")
@each_case
def test_no_host_synchronisation(name):
    level, layer, apply = case(name)
    layer = layer.to("cuda", torch.float32)
    data, x = together(BIG).to("cuda"), signal(BIG, level, dtype=torch.float32).to("cuda")
    results(apply, layer, x, data)  # whatever waits once, to load a kernel
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        out = results(apply, layer, x, data)
    finally:
        torch.cuda.set_sync_debug_mode(mode)
        layer.to("cpu")
    assert all(t.isfinite().all() for t in out)


class Net(nn.Module):
    """All layers, both domains, all details.

    By default with GraphConv, which compiles: GCNConv asks for self-loops of the data (nonzero).
    """

    def __init__(self, convolution=GraphConv):
        super().__init__()
        self.first, self.second = convolution(2, 4), convolution(4, 4)
        self.pool, self.up = HaarPooling(0, "vertex", "energy"), HaarUnpooling(0, "vertex")
        self.haar_pool, self.haar_up = HaarPooling(0, details="full"), HaarUnpooling(0)
        self.conv = HaarConv(4, 4, num_levels=2)
        self.readout, self.top = HaarReadout(0), HaarReadout(1, ["sum", "energy"])
        self.out = nn.Linear(4 * 4 + 2 * 4 + 4, 3)

    def forward(self, x, edge_index, edge_weight, data):
        x = self.first(x, edge_index, edge_weight).relu()
        coarse = self.pool(x, data)
        h = self.second(coarse.x, coarse.edge_index, coarse.edge_weight).relu()
        x = self.conv(x + self.up(h, data), data)
        kept = self.haar_pool(x, data)
        x = self.haar_up(kept.x, data, kept.details.tanh())
        ends = [
            self.readout(x, data),
            self.top(h, data),
            HaarPooling(1)(coarse.details.add(1).log(), data).x,
        ]
        return self.out(torch.cat(ends, 1))


def inputs(sizes, seed=0, dtype=torch.float32):
    """x, edge_index, edge_weight, data for graphs of these sizes."""
    data = together(built(sizes, seed), dtype=dtype)
    return data.x, data.edge_index, data.edge_weight, data


def outcome(net, *arguments):
    """The result and the gradients of the parameters."""
    net.zero_grad()
    out = net(*arguments)
    out.square().sum().backward()
    return [out.detach().clone(), *(p.grad.clone() for p in net.parameters())]


def test_autocast():
    net, arguments = Net(GCNConv), inputs([9, 30, 4])
    expected = outcome(net, *arguments)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(*arguments)
    assert out.dtype == torch.bfloat16
    net.zero_grad()
    out.float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())
    # A dozen layers deep each rounds to 8 bits.
    assert (out - expected).abs().max() < 5 * TOLERANCE[torch.bfloat16] * expected.abs().max()


BATCHES = [[9, 4, 6], [30, 1, 2, 17], [5, 8, 3, 3, 3]]
FORMS = {"batch": lambda data: data, "dict": lambda data: data.to_dict()}
each_form = pytest.mark.parametrize("form", FORMS)
# Dynamo itself makes an instance of the Function that it traces.
quiet_dynamo = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@pytest.fixture
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def assert_same_outcome(compiled, net, sizes, form):
    *tensors, data = inputs(sizes)
    data = FORMS[form](data)
    expected = outcome(net, *tensors, data)
    for actual, value in zip(outcome(compiled, *tensors, data), expected, strict=True):
        assert close(actual, value, torch.float32)


@quiet_dynamo
@each_form
def test_compiled_whole(form, fresh_compiler):
    net = Net()
    compiled = torch.compile(net, fullgraph=True, dynamic=True, backend="aot_eager")
    for sizes in BATCHES:
        assert_same_outcome(compiled, net, sizes, form)


@quiet_dynamo
@each_form
def test_no_graph_breaks(form, fresh_compiler):
    *tensors, data = inputs(BATCHES[0])
    explained = torch._dynamo.explain(Net())(*tensors, FORMS[form](data))
    assert explained.graph_break_count == 0, explained
    assert explained.graph_count == 1


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.pool, self.readout = GraphConv(2, 4), HaarPooling(0), HaarReadout(1)

    def forward(self, x, edge_index, edge_weight, data):
        out = self.pool(self.conv(x, edge_index, edge_weight), data)
        return self.readout(out.x, data)


@quiet_dynamo
def test_compiled_for_real(fresh_compiler):
    """With the default backend, which writes C++ and compiles it."""
    net = SmallNet()
    compiled = torch.compile(net, fullgraph=True, dynamic=True)
    for sizes in BATCHES:
        assert_same_outcome(compiled, net, sizes, "batch")


class Flat(nn.Module):
    """The network over plain tensors, as export wants it."""

    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, edge_index, edge_weight, chain: dict[str, torch.Tensor]):
        return self.net(x, edge_index, edge_weight, chain)


def flat(sizes):
    *tensors, data = inputs(sizes)
    chain = {key: data[key] for key in sorted(data.keys()) if key.startswith("haar_")}
    return (*tensors, chain)


@pytest.fixture(scope="module")
def exported():
    """A network, and what export made of it."""
    torch.manual_seed(0)
    net, example = Flat().eval(), flat(BATCHES[0])
    shapes = tree_map(lambda t: [torch.export.Dim.AUTO] * t.dim(), example)
    return net, torch.export.export(net, example, dynamic_shapes=shapes).module()


@quiet_dynamo
@pytest.mark.parametrize(
    "sizes",
    [
        *BATCHES,
        pytest.param(
            [5, 8],
            marks=pytest.mark.xfail(
                strict=True, reason="starts[1:] makes export ask for three graphs or more"
            ),
        ),
    ],
    ids=str,
)
def test_exported(sizes, exported):
    """The program runs on batches of other sizes than that it was exported with."""
    net, program = exported
    assert close(program(*flat(sizes)), net(*flat(sizes)), torch.float32)
