"""Networks from strings: every token, the paper's networks, what they ask of data, compilers."""

import copy

import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import erdos_renyi_graph

from haarpool import HaarPoolError
from haarpool.data import AddHaarChain
from haarpool.nn import Architecture, Network, build_model
from haarpool.nn.networks.sequential import AUTHORS
from haarpool.nn.networks.stages import Convolution
from haarpool.nn.strings.registry import find_layer, registered_layers
from helpers.gpu import never_waiting
from helpers.networks import taken, tokens
from helpers.tolerances import LOOSER, TOLERANCE

PAPER = [*AUTHORS, "GIN-HP-GIN-HP-GIN-MP", "GIN-HP-GIN-GIN-MP"]
FEATURES = 3


def graphs(sizes=(12, 1, 5, 30, 2, 8), seed=0):
    """Random graphs, one of a single node and one without edges among them."""
    torch.manual_seed(seed)
    result = []
    for i, n in enumerate(sizes):
        edges = erdos_renyi_graph(n, 0.3 if n > 2 else 0)
        result.append(Data(x=torch.randn(n, FEATURES), edge_index=edges, y=torch.tensor([i % 2])))
    return result


def batch_for(model, sizes=(12, 1, 5, 30, 2, 8), seed=0, **parameters):
    transform = model.transform(**parameters) or (lambda data: data)
    return Batch.from_data_list([transform(data) for data in graphs(sizes, seed)])


def total_loss(model, batch):
    output, auxiliary = model.output_and_auxiliary(batch)
    return model.loss(output, batch.y) + (0 if auxiliary is None else auxiliary)


EVERY_TOKEN = [
    *[f"{conv}8-HP-{conv}-HP-FC8" for conv in tokens("convolution")],
    *[f"GC8-{pool}-GC8-{pool}-GIN8-SUM-FC8" for pool in tokens("pooling")],
    *[f"GIN8-HP-GIN8-{readout}-FC16" for readout in tokens("readout")],
    "GC8-HP-EIG-GC8-HP-FC8",
    "GC8-HP-GC8-SP-MP",
    "SUM-2GIN8-JK-SUM-AP-HP-GC8-JK-MP-FC8",
    "SUM",
]


@pytest.mark.parametrize("text", [*PAPER, *EVERY_TOKEN])
def test_every_token_trains(text):
    model = build_model(text, FEATURES, 2, width=16, dropout=0.0, **taken(text, num_clusters=4))
    batch = batch_for(model)
    before = total_loss(model, batch)
    before.backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
        else:
            assert name.endswith("pool.select.weight"), name  # the fixed sign of SP and GP
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(10):
        optimizer.zero_grad()
        loss = total_loss(model, batch)
        loss.backward()
        optimizer.step()
    assert model(batch).shape == (batch.num_graphs, 2)
    assert loss < before


def depends_on_batch(text):
    layers = [block.layer.load() for block in Architecture.parse(text).blocks]
    return any(getattr(layer, "depends_on_batch", False) for layer in layers)


@pytest.mark.parametrize("text", [t for t in [*PAPER, *EVERY_TOKEN] if not depends_on_batch(t)])
def test_graphs_of_a_batch_do_not_mix(text):
    model = build_model(text, FEATURES, 2, width=16, **taken(text, num_clusters=4))
    model = model.double().eval()
    batch = batch_for(model)
    batch.x = batch.x.double()
    together = model(batch)
    for i, row in enumerate(together):
        torch.testing.assert_close(model(batch[i])[0], row)


# ---------------------------------------------------------------------- what FC means


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("GC60-HP-FC60-FC180-FC60", [(60, 180), (180, 60), (60, 2)]),
        ("3GC256-HP-2FC256-FC128", [(256, 256), (256, 128), (128, 2)]),
        ("GC60-HP", [(60, 2)]),
        ("GIN-HP-GIN-HP-GIN-MP", [(64, 2)]),
    ],
)
def test_the_number_of_a_linear_layer_is_its_input_width(text, shapes):
    model = build_model(text, FEATURES, 2)
    assert [(layer.in_features, layer.out_features) for layer in model.linear] == shapes
    assert model.adapter is None


def test_an_adapter_where_another_width_arrives():
    model = build_model("GC32-HP-FC16-FC8", FEATURES, 2)
    assert (model.adapter.in_features, model.adapter.out_features) == (32, 16)
    assert [(layer.in_features, layer.out_features) for layer in model.linear] == [(16, 8), (8, 2)]


def test_the_network_is_what_the_string_says():
    """The paper's network on MUTAG written by hand, with the same weights."""
    model = build_model("GC60-HP-FC60-FC180-FC60", FEATURES, 2).eval()
    batch = batch_for(model)
    conv = GCNConv(FEATURES, 60)
    conv.load_state_dict(model.stages[0].conv.state_dict())
    rows = []
    for data in graphs():
        h = conv(data.x, data.edge_index).relu()
        h = h.sum(0) / len(h) ** 0.5
        for layer in model.linear[:-1]:
            h = layer(h).relu()
        rows.append(model.linear[-1](h))
    torch.testing.assert_close(model(batch), torch.stack(rows))


def test_dropout_follows_the_first_linear_layer():
    model = build_model("GC8-HP-FC8-FC512-FC8", FEATURES, 2, dropout=0.9)
    seen = []
    model.linear[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    batch = batch_for(model)
    model(batch)
    model.eval()
    model(batch)
    zeros = [(x == 0).float().mean() for x in seen]
    assert zeros[0] > 0.85
    assert zeros[1] < 0.85


def test_width_for_parts_that_name_none():
    model = build_model("GIN-HP-GIN-MP-FC", FEATURES, 2, width=24)
    assert model.linear[0].in_features == 24
    assert model.adapter is None


# ---------------------------------------------------------------------- shared weights


@pytest.mark.parametrize("text", AUTHORS)
def test_weights_tied_as_in_the_authors_code(text):
    model = build_model(text, FEATURES, 2, tied="authors")
    convolutions = [stage for stage in model.stages if isinstance(stage, Convolution)]
    distinct = []
    for conv in convolutions:
        if not any(conv is other for other in distinct):
            distinct.append(conv)
    places = [next(i for i, o in enumerate(distinct) if o is conv) for conv in convolutions]
    assert tuple(places) == AUTHORS[text]
    assert len({id(conv) for conv in build_model(text, FEATURES, 2).stages}) == len(model.stages)
    model(batch_for(model))


def test_custom_tied_weights():
    model = build_model("3GC8-HP-FC8", 8, 2, tied=(0, 0, 1))
    assert model.stages[0] is model.stages[1]
    assert model.stages[2] is not model.stages[1]


# ---------------------------------------------------------------------- what it asks for


def test_chain_parameters_of_a_network():
    assert build_model("GC8-HP-GC8-HP-FC8", 3, 2).chain_parameters == {"num_levels": 2, "top": 1}
    assert build_model("GC8-HP-MP", 3, 2).chain_parameters == {"num_levels": 1, "top": None}
    flat = build_model("GC8-TP-MP", 3, 2)
    assert flat.chain_parameters == {}
    assert flat.transform() is None
    assert flat(Batch.from_data_list(graphs())).shape == (6, 2)
    assert flat(graphs()[0]).shape == (1, 2)
    eigen = build_model("GC8-EIG-MP", 3, 2, num_modes=3).transform(method="matching")
    assert "num_modes=3" in repr(eigen)
    assert "matching" in repr(eigen)


def chained(**parameters):
    return AddHaarChain(**parameters)(graphs()[3])


DEEP = "GC8-HP-GC8-HP-FC8"
# case: (what is done, part of expected, part of got, part of the remedy)
BAD = {
    "no chain": (
        lambda: build_model(DEEP, 3, 2).check(graphs()[0]),
        "at least 2 levels", "without a chain", "AddHaarChain(num_levels=2)",
    ),
    "too few levels": (
        lambda: build_model(DEEP, 3, 2).check(chained(num_levels=1)),
        "at least 2 levels", "a chain of 1", "AddHaarChain(num_levels=2)",
    ),
    "in forward as well": (
        lambda: build_model(DEEP, 3, 2)(chained(num_levels=1)),
        "at least 2 levels", "a chain of 1", "AddHaarChain(num_levels=2)",
    ),
    "an open top without a readout": (
        lambda: build_model(DEEP, 3, 2).check(chained(num_levels=2, top=None)),
        "end in one node", "nodes on level 2", "AddHaarChain(num_levels=2)",
    ),
    "no features": (
        lambda: build_model(DEEP, 3, 2).check(Data(edge_index=torch.empty(2, 0, dtype=int))),
        "features x", "none", "T.OneHotDegree(max_degree) or T.Constant()",
    ),
    "other features": (
        lambda: build_model(DEEP, 5, 2).check(chained(num_levels=2)),
        "5 columns", "(30, 3)", "data.num_features",
    ),
    "task": (lambda: build_model(DEEP, 3, 2, task="x"), "classification", "'x'", "choose"),
    "domain": (lambda: build_model(DEEP, 3, 2, domain="x"), "vertex", "'x'", "choose"),
    "dropout": (lambda: build_model(DEEP, 3, 2, dropout=1.0), "[0, 1)", "1.0", "dropout=0.5"),
    "no input": (lambda: build_model(DEEP, 0, 2), "in_channels", "0", "num_features"),
    "no output": (lambda: build_model(DEEP, 3, None), "out_channels", "None", "classes"),
    "authors of what": (
        lambda: build_model(DEEP, 3, 2, tied="authors"), "authors", DEEP, "tied=(0, 1, 1)",
    ),
    "ties too few": (lambda: build_model(DEEP, 3, 2, tied=(0,)), "2 whole numbers", "[0]", "same"),
    "ties of unequal widths": (
        lambda: build_model(DEEP, 3, 2, tied=(0, 0)), "of the same kind", "('GC', 8, 8)", "equal",
    ),
    "eigenvectors missing": (
        lambda: build_model("GC8-EIG-MP", 3, 2)(chained(num_levels=1, top=None)),
        "2 rows haar_modes_0", "without", "AddEigenModes(num_modes=2, num_levels=1, top=None)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    action, expected, got, remedy = BAD[case]
    with pytest.raises(HaarPoolError) as caught:
        action()
    assert expected in caught.value.expected
    assert got in caught.value.got
    assert remedy in caught.value.remedy


def test_constant_features_replace_missing_ones():
    model = build_model("GC8-HP-FC8", 1, 2)
    bare = [Data(edge_index=data.edge_index, num_nodes=data.num_nodes) for data in graphs()]
    transform = T.Compose([T.Constant(), model.transform()])
    assert model(Batch.from_data_list([transform(data) for data in bare])).shape == (6, 2)


# ---------------------------------------------------------------------- domains, tasks, copies


def test_domain_reaches_the_poolings():
    text = "GC8-HP-GC8-HP-GC8-FC8"
    haar, vertex = (build_model(text, FEATURES, 2, domain=d).eval() for d in ("haar", "vertex"))
    vertex.load_state_dict(haar.state_dict())
    batch = batch_for(haar)
    assert not torch.allclose(haar(batch), vertex(batch))


def test_regression():
    model = build_model("GC8-HP-FC8", FEATURES, 1, task="regression").eval()
    batch = batch_for(model)
    target = torch.randn(6)
    expected = (model(batch)[:, 0] - target).square().mean()
    torch.testing.assert_close(model.loss(model(batch), target), expected)


def test_losses_of_the_poolings_are_added():
    model = build_model("GC8-DP-GC8-DP-SUM", FEATURES, 2, num_clusters=4).eval()
    batch = batch_for(model)
    losses = []
    for stage in (model.stages[1], model.stages[3]):
        stage.pool.register_forward_hook(lambda _, __, out: losses.append(out.details.sum()))
    output, auxiliary = model.output_and_auxiliary(batch)
    torch.testing.assert_close(auxiliary, sum(losses))
    assert auxiliary > 0
    assert torch.equal(model(batch), output)
    plain = torch.nn.functional.cross_entropy(output, batch.y)
    torch.testing.assert_close(model.loss(output, batch.y), plain)


def test_networks_without_such_poolings_have_no_further_loss():
    for text in ("GC8-HP-FC8", "haarnet:levels=1"):
        model = build_model(text, FEATURES, 2, width=8).eval()
        output, auxiliary = model.output_and_auxiliary(batch_for(model))
        assert auxiliary is None
        assert torch.equal(output, model(batch_for(model)))


def test_reset_parameters_gives_fresh_weights():
    model = build_model("GIN8-HP-GAT8-DP-STRUCT-LAP-S2S-FC4", FEATURES, 2, num_clusters=4)
    before = copy.deepcopy(model.state_dict())
    torch.manual_seed(1)
    model.reset_parameters()
    changed = {
        name for name, value in model.named_parameters() if not torch.equal(value, before[name])
    }
    fixed = {name for name in before if name.endswith(("bias", "eps", "compatibility"))}
    norms = {name for name in before if ".norms." in name}
    assert changed | fixed | norms >= dict(model.named_parameters()).keys()


def test_it_prints_its_architecture():
    text = "GC8-HP-FC8"
    assert f"'{text}', 3 -> 2, classification" in str(build_model(text, 3, 2))
    assert build_model(Architecture.parse(text), 3, 2).arch == Architecture.parse(text)


@pytest.mark.gpu
@pytest.mark.parametrize("text", PAPER)
def test_the_host_never_waits_for_the_device(text):
    model = build_model(text, FEATURES, 2).cuda()
    batch = batch_for(model).to("cuda")
    model.loss(model(batch), batch.y).backward()  # whatever is set up once
    with never_waiting():
        model.loss(model(batch), batch.y).backward()


# ---------------------------------------------------------------------- compilers


@pytest.fixture
def compiler():
    """Without the memory of other tests, which would count as recompiling the same function."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield torch._dynamo.utils.counters
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("text", PAPER)
def test_the_papers_networks_compile_into_one_graph(text, compiler):
    """Graph breaks are allowed, and there are none: one graph to train, one to evaluate."""
    model = build_model(text, FEATURES, 2, dropout=0.0)
    compiled = torch.compile(model, dynamic=True, backend="aot_eager")
    # The compiler takes equal sizes for one number, so not 5 graphs: K + 2 for three levels.
    for sizes in ((12, 5, 30, 6, 7, 4), (7, 3, 9, 1, 2, 25, 8)):
        batch = batch_for(model, sizes)
        model.train()
        eager = torch.autograd.grad(model.loss(model(batch), batch.y), list(model.parameters()))
        loss = model.loss(compiled(batch), batch.y)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        tolerance = {"atol": TOLERANCE[torch.float32], "rtol": LOOSER["training"]}
        torch.testing.assert_close(gradients, eager, **tolerance)
        model.eval()
        torch.testing.assert_close(compiled(batch), model(batch))
        assert not compiler["graph_break"]
        assert compiler["stats"]["unique_graphs"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("text", PAPER)
def test_a_trained_network_exports_over_plain_tensors(text):
    model: Network = build_model(text, FEATURES, 2)
    batch, other = batch_for(model), batch_for(model, (7, 3, 9), seed=1)
    model.loss(model(batch), batch.y).backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    model.eval()
    tensors, others = (dict(b.to_dict()) for b in (batch, other))
    dynamic = {key: [torch.export.Dim.AUTO] * value.ndim for key, value in tensors.items()}
    program = torch.export.export(model, (tensors,), dynamic_shapes=(dynamic,))
    torch.testing.assert_close(program.module()(tensors), model(batch))
    torch.testing.assert_close(program.module()(others), model(other))


# The smallest network of each token; those that do not compile into one graph have graph breaks.
TOKEN_NETWORKS = {
    **{token: f"{token}4-SUM" for token in tokens("convolution")},
    **{token: f"GC4-{token}-SUM" for token in tokens("join")},
    **{token: f"{token}-SUM" for token in tokens("pooling")},
    **{token: token for token in tokens("readout")},
    **{token: f"SUM-{token}4" for token in tokens("linear")},
}
NOT_CAPTURED = (
    torch._dynamo.exc.TorchDynamoException, RuntimeError, IndexError, AssertionError,
)  # fmt: skip


def capture(function, token, declared, name):
    """What a compiler makes of a network; `None` if its layer says that it does not capture it."""
    try:
        result = function()
    except NOT_CAPTURED as error:
        if declared:
            pytest.fail(f"leave {name}=True out of @layer({token!r}): {error}")
        return None
    assert declared, f"write {name}=True, or static=True, in @layer({token!r})"
    return result


@pytest.mark.parametrize("declared", [False, True])
def test_a_wrong_declaration_says_what_to_write(declared):
    def fails():
        raise AssertionError("Guard failed")

    assert capture(fails, "OWN", False, "exports") is None
    assert capture(lambda: 3, "OWN", True, "exports") == 3
    words = r"leave exports=True out of @layer\('OWN'\)" if declared else "write exports=True"
    with pytest.raises((pytest.fail.Exception, AssertionError), match=words):
        capture(fails if declared else lambda: 3, "OWN", declared, "exports")


def small_network(token):
    text = TOKEN_NETWORKS[token]
    return build_model(text, FEATURES, 2, **taken(text, num_clusters=4)).eval()


def test_every_token_has_a_network():
    assert TOKEN_NETWORKS.keys() == registered_layers().keys()


@pytest.mark.slow
@pytest.mark.parametrize("token", TOKEN_NETWORKS)
def test_which_tokens_compile_into_one_graph(token, compiler):
    model = small_network(token)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    batches = [batch_for(model, sizes) for sizes in ((5, 3), (7, 4, 6))]
    declared = find_layer(token).compiles
    outputs = capture(lambda: [compiled(one) for one in batches], token, declared, "compiles")
    for output, batch in zip(outputs or (), batches, strict=False):
        torch.testing.assert_close(output, model(batch))


@pytest.mark.slow
@pytest.mark.parametrize("token", TOKEN_NETWORKS)
@pytest.mark.filterwarnings("ignore:The tensor attributes.*lstm:UserWarning")
def test_which_tokens_export(token):
    model = small_network(token)
    batch, other = batch_for(model), batch_for(model, (7, 3, 9), seed=1)
    tensors = dict(batch.to_dict())
    dynamic = {key: [torch.export.Dim.AUTO] * value.ndim for key, value in tensors.items()}
    program = capture(
        lambda: torch.export.export(model, (tensors,), dynamic_shapes=(dynamic,)),
        token, find_layer(token).exports, "exports",
    )  # fmt: skip
    if program is not None:
        torch.testing.assert_close(program.module()(dict(other.to_dict())), model(other))
