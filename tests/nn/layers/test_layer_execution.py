"""How the layers run: bit for bit the same, without waiting, compiled and exported."""

import contextlib

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch_geometric.nn import (
    GCNConv,
    GraphConv,
)

from haarpool.haar import operators
from haarpool.nn import HaarConv, HaarPooling, HaarReadout, HaarUnpooling
from helpers.gpu import never_waiting
from helpers.layers import (
    BATCH,
    CASES,
    SMALL,
    built,
    carrier,
    case,
    each_case,
    signal,
    together,
)
from helpers.strategies import each_device
from helpers.tolerances import LOOSER, close


@pytest.fixture(autouse=True)
def seeded():
    """Layers have random weights."""
    torch.manual_seed(0)


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


def zeros_for(name, x, arguments):
    return x.new_zeros(operators._num_rows(name, arguments), x.shape[1])


@each_case
def test_nothing_is_read_back(name, monkeypatch):
    """Not by layers; that kernels do not wait is a test for GPUs, below."""
    monkeypatch.setattr(operators, "_run", zeros_for)
    level, layer, apply = case(name)
    layer.double()
    x = signal(SMALL, level)
    with Refusing():
        results(apply, layer, x, BATCH)


@pytest.mark.gpu
@each_case
def test_no_host_synchronisation(name):
    level, layer, apply = case(name)
    layer = layer.to("cuda", torch.float32)
    data, x = together(BIG).to("cuda"), signal(BIG, level, dtype=torch.float32).to("cuda")
    results(apply, layer, x, data)  # whatever waits once, to load a kernel
    with never_waiting():
        out = results(apply, layer, x, data)
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
    assert (out - expected).abs().max() < 2 * LOOSER["deep bfloat16"] * expected.abs().max()


# In the first one no two sizes are equal by chance: torch.compile would expect the same of others.
BATCHES = [[19, 14, 26, 1, 2], [30, 1, 2, 17], [5, 8, 3, 3, 3, 9]]
FORMS = {"batch": lambda data: data, "dict": lambda data: data.to_dict()}
each_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def backend(fresh_compiler):
    """Quick, and it counts how often something is compiled."""
    return CompileCounterWithBackend("aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [True, False], ids=["gradient", "no gradient"])
@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("0")])
def test_each_layer_compiles_once(name, gradient, backend):
    level, layer, apply = case(name)
    layer.double()
    compiled = torch.compile(apply, fullgraph=True, dynamic=True, backend=backend)
    for sizes in BATCHES:
        many = built(sizes)
        data, x = together(many), signal(many, level)
        if gradient:
            pairs = zip(*(results(f, layer, x, data) for f in (compiled, apply)), strict=True)
        else:
            with torch.no_grad():
                pairs = [(compiled(x, data), apply(x, data))]
        assert all(close(actual, expected) for actual, expected in pairs)
    assert backend.frame_count == 1


def assert_same_outcome(compiled, net, sizes, form):
    *tensors, data = inputs(sizes)
    data = FORMS[form](data)
    expected = outcome(net, *tensors, data)
    for actual, value in zip(outcome(compiled, *tensors, data), expected, strict=True):
        assert close(actual, value, torch.float32)


@pytest.mark.slow
@each_form
def test_compiled_whole(form, backend):
    net = Net()
    compiled = torch.compile(net, fullgraph=True, dynamic=True, backend=backend)
    for sizes in BATCHES:
        assert_same_outcome(compiled, net, sizes, form)
    assert backend.frame_count == 1


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [*BATCHES, [5, 8]], ids=str)
def test_exported(sizes, exported):
    """The program runs on batches of other sizes than that it was exported with."""
    net, program = exported
    assert close(program(*flat(sizes)), net(*flat(sizes)), torch.float32)
