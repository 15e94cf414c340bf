"""The networks that HaarUNet is compared with: what holds for all, and what each computes."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Batch, Data

from haarpool import build_chain
from haarpool.comparison.processes import run_in_processes
from haarpool.comparison.table import Trial
from haarpool.comparison.trials import TrialRunner
from haarpool.data import AddHaarChain
from haarpool.datasets import read_graphs
from haarpool.errors import HaarPoolError, MissingExtraError
from haarpool.nn import HaarUNet, build_model, parse_architecture
from haarpool.training.minibatches import Minibatches
from helpers.networks import FEATURES, SIZES, weighted_graph
from paper.pooling.learners import StudyCell, StudyLearner
from paper.pooling.peers import torch_scatter_stand_in as stand_in
from paper.pooling.peers.edges import augmented
from paper.pooling.peers.kmis import kmis
from paper.pooling.peers.ndp_unet import Decimation, decimate
from paper.pooling.peers.sums import ScaledPooling
from paper.pooling.peers.variants import HaarUNetDetails, HaarUNetMean, HaarUNetSum

EDGES = 2
needs_tgp = pytest.mark.skipif(
    find_spec("tgp") is None, reason="torch-geometric-pool is not installed"
)
pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse CSR tensor support is in beta:UserWarning",  # a product of sparse matrices
    "ignore:Sparse invariant checks:UserWarning",
)


def strings(*names):
    marks = {"ndpunet:levels=3": needs_tgp}
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


VARIANTS = ["haarunetmean:levels=3", "haarunetsum:levels=3", "haarunetdetails:levels=3"]
FLAT = ["gcnii:depth=4"]
LEVELS = [
    "graphunet:levels=3", "graphunet:levels=2,normalized=false", "topkunet:levels=3",
    "sagunet:levels=2,depth=2,squared=false", "ndpunet:levels=3",
]  # fmt: skip
OF_GRAPHS = [
    "haarunetgraph:levels=3",
    "haarunetgraph:depth=3,levels=0,virtual_node=true",
    "graphunetgraph:levels=3",
]
SUMS = ["haarsummean", "haarsumsum", "haarsumshared:levels=3", "haarsumnodes", "haarnetmean"]
of_nodes = pytest.mark.parametrize("text", strings(*VARIANTS, *FLAT, *LEVELS))
of_graphs = pytest.mark.parametrize("text", [*OF_GRAPHS, *SUMS])
every = pytest.mark.parametrize("text", strings(*VARIANTS, *FLAT, *LEVELS, *OF_GRAPHS, *SUMS))


def graphs(sizes=SIZES):
    made = []
    for seed, size in enumerate(sizes):
        graph = weighted_graph(size, seed)
        graph.edge_attr = torch.randn(graph.edge_index.shape[1], EDGES).double()
        graph.x, graph.edge_weight = graph.x.double(), graph.edge_weight.double()
        made.append(graph)
    return made


def net(text, **options):
    torch.manual_seed(0)
    task = "node_regression" if parse_architecture(text).of_nodes else "regression"
    settings = {"width": 8, "edge_channels": EDGES, "task": task} | options
    return build_model(text, FEATURES, 2, **settings).double().eval()


def data_for(model, sizes=SIZES):
    transform = model.transform() or (lambda data: data)
    return [transform(graph) for graph in graphs(sizes)]


# ---------------------------------------------------------------------- all of them


@every
def test_a_batch_is_one_by_one(text):
    model = net(text)
    data = data_for(model)
    alone = torch.cat([model(one) for one in data])
    assert len(alone) == (sum(SIZES) if model.task.of_nodes else len(SIZES))
    torch.testing.assert_close(model(Batch.from_data_list(data)), alone)
    torch.testing.assert_close(model(Minibatches.of(data).take(range(len(data)))), alone)


@of_nodes
@pytest.mark.parametrize("batched", [False, True])
def test_signals_are_one_by_one(text, batched):
    model = net(text)
    data = data_for(model, [30])
    one = Minibatches.of(data * 2).take([0, 1]) if batched else data[0].to_dict()
    x = torch.randn(4, len(one["x"]), FEATURES).double()
    together = model({**one, "x": x})
    assert together.shape == (*x.shape[:2], 2)
    alone = torch.stack([model({**one, "x": signal}) for signal in x])
    torch.testing.assert_close(together, alone)


@every
def test_gradients_reach_all_weights(text):
    model = net(text)
    model(Batch.from_data_list(data_for(model))).square().sum().backward()
    assert [name for name, one in model.named_parameters() if not one.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("text", [*FLAT, *LEVELS[:-1]])
def test_numbering_does_not_matter(text):
    (data,), model = data_for(net(text), [25]), net(text)
    order = torch.randperm(25)
    other = data.clone()
    other.x, other.edge_index = data.x[order], order.argsort()[data.edge_index]
    torch.testing.assert_close(model(other), model(data)[order])


@pytest.mark.parametrize("text", [*OF_GRAPHS[:2], *SUMS])
def test_padded_minibatches_give_the_same_rows(text):
    model = net(text)
    batches = Minibatches.of(data_for(model))
    padded = batches.take_padded(torch.tensor([1, 3]), batches.capacity(2))
    torch.testing.assert_close(model(padded, padded=True), model(batches.take([1, 3])))


@pytest.mark.parametrize(("power", "total"), [(1, torch.mean), (-1, torch.sum)])
def test_means_and_sums_over_clusters(power, total):
    chain = build_chain(np.kron(np.eye(4), np.ones((3, 3))), 1, ratio=0.34, top=None)
    data = graphs([12])[0]
    data = AddHaarChain(chain=lambda _: chain)(data)
    pooled = ScaledPooling(0, "vertex", power)(data.x, data).x
    parent = torch.tensor(chain.parents[0])
    expected = [total(data.x[parent == p], 0) for p in range(chain.sizes[1])]
    torch.testing.assert_close(pooled, torch.stack(expected))


@pytest.mark.parametrize("text", strings(*VARIANTS, *FLAT, *LEVELS, *OF_GRAPHS))
def test_strings(text):
    model = net(text)
    assert parse_architecture(str(model.arch)) == model.arch
    assert str(model.arch) == text.replace(":", ":width=8,")


@pytest.mark.parametrize("text", ["graphunet", "topkunet", "sagunet", "ndpunet", "haarunetmean"])
def test_levels_are_those_of_haarunet(text):
    arch = parse_architecture(text)
    chosen = parse_architecture("haarunet").with_levels(400).levels
    assert arch.with_levels(400).levels == chosen
    assert arch.with_levels(400).with_levels(9).levels == chosen
    with pytest.raises(HaarPoolError, match="levels as a number"):
        build_model(text, 1, 1, task="node_regression")


# ---------------------------------------------------------------------- one by one


@pytest.mark.parametrize(
    ("kind", "expected"), [(HaarUNetMean, "mean"), (HaarUNetSum, "sum"), (HaarUNetDetails, None)]
)
def test_poolings_and_their_inverse(kind, expected):
    chain_data = AddHaarChain(3, top=None, method="matching", measure="mass")(graphs([30])[0])
    chain, x = chain_data.chain_tensors, torch.randn(30, 2).double()
    model = kind(FEATURES, 1, levels=3, width=8)
    below = np.arange(30)
    rows = x
    for j in range(3):
        parent = chain.trees[j][0].numpy()
        below = parent[below]
        coarse = model._pool(chain, rows, j)
        if expected:
            total = torch.zeros(len(coarse), 2).double().index_add(0, torch.tensor(below), x)
            number = torch.bincount(torch.tensor(below))[:, None]
            torch.testing.assert_close(coarse, total / (number if expected == "mean" else 1))
            spread = model._unpool(chain, coarse, torch.zeros_like(rows), j)
            torch.testing.assert_close(model._pool(chain, spread, j), coarse)
            if expected == "mean":
                torch.testing.assert_close(spread, coarse[parent])
        else:  # skips have no part in what is pooled
            y = torch.randn_like(coarse)
            torch.testing.assert_close(model._pool(chain, model._unpool(chain, y, rows, j), j), y)
        rows = coarse


def test_variants_have_the_weights_of_haarunet():
    expected = net("haarunet:levels=3").state_dict()
    for text in VARIANTS:
        assert {k: v.shape for k, v in net(text).state_dict().items()} == {
            k: v.shape for k, v in expected.items()
        }
    assert issubclass(HaarUNetMean, HaarUNet)


def test_edges_of_two_steps():
    graph = weighted_graph(15)
    matrix = torch.zeros(15, 15).index_put(tuple(graph.edge_index), graph.edge_weight)
    scale = matrix.sum(0).clamp(min=1e-9).rsqrt() * (matrix.sum(0) > 0)
    square = torch.linalg.matrix_power(torch.eye(15) + scale[:, None] * matrix * scale, 2)
    edges, weight = augmented(graph.edge_index, graph.edge_weight, 15)
    found = torch.zeros(15, 15).index_put(tuple(edges), weight)
    torch.testing.assert_close(found, square - square.diag().diag())


def test_graph_unet_is_finite_on_many_levels():
    ring = torch.stack([torch.arange(600), (torch.arange(600) + 1) % 600])
    edges = torch.cat([ring, ring.flip(0)], 1)
    data = Data(x=torch.randn(600, FEATURES).double(), edge_index=edges)
    for normalized in (True, False):
        text = f"graphunet:levels=12,normalized={normalized}".lower()
        model = net(text, edge_channels=0).float()
        output = model(data.clone().apply(lambda one: one.float(), "x"))
        assert bool(output.isfinite().all()) is normalized


def test_selections_change_with_the_signal():
    model = net("topkunet:levels=1", edge_channels=0)
    chosen = []
    select = model.select

    def spy(*arguments):
        chosen.append(select(*arguments))
        return chosen[-1]

    model.select = spy
    data = graphs([30])[0]
    model({**data.to_dict(), "x": torch.randn(2, 30, FEATURES).double()})
    first, second = chosen[0].nodes.split(15)
    assert set(first.tolist()) != set((second - 30).tolist())
    assert chosen[0].gate.abs().max() <= 1


# ---------------------------------------------------------------------- torch-geometric-pool


def test_an_error_without_tgp(monkeypatch):
    from paper.pooling.peers.tgp import import_tgp

    import_tgp.cache_clear()
    monkeypatch.setitem(sys.modules, "tgp", None)
    monkeypatch.setitem(sys.modules, "tgp.select", None)
    with pytest.raises(MissingExtraError, match="--no-deps torch-geometric-pool"):
        import_tgp("select")
    assert "torch_scatter" not in sys.modules
    import_tgp.cache_clear()


def test_stand_in_for_torch_scatter():
    src, index = torch.tensor([3, 1, 2]), torch.tensor([0, 0, 2])
    for name, empty, given in (
        ("add", [4, 0, 2], [9, 5, 7]),
        ("mul", [3, 1, 2], [15, 5, 10]),
        ("max", [3, 0, 2], [5, 5, 5]),
        ("min", [1, 0, 2], [1, 5, 2]),
    ):
        function, out = getattr(stand_in, f"scatter_{name}"), torch.full((3,), 5)
        result = function(src, index, dim_size=3)
        assert (result if name in ("add", "mul") else result[0]).tolist() == empty
        function(src, index, out=out)
        assert out.tolist() == given


@needs_tgp
@pytest.mark.parametrize("hops", [1, 2])
def test_kmis_clusters(hops):
    graph = weighted_graph(60, density=0.05)
    ends = tuple(graph.edge_index.numpy())
    matrix = sparse.csr_array((graph.edge_weight.numpy(), ends), shape=(60, 60))
    cluster = kmis(matrix + sparse.eye_array(60), 30, seed=0, hops=hops)
    near = np.linalg.matrix_power((matrix != 0).toarray() + np.eye(60), hops) > 0
    centers = 0
    for number in range(cluster.max() + 1):
        members = np.flatnonzero(cluster == number)
        centers += near[np.ix_(members, members)].all(1).any()
    assert centers == cluster.max() + 1 < 40
    sizes = build_chain(matrix, num_levels=3, top=None, method="kmis").sizes
    assert sizes[0] > sizes[1] > sizes[2]


@needs_tgp
def test_decimation_of_components():
    """Every component keeps a node, and nodes without edges stay."""
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    path = path[:, path[0] != 4]  # two paths of five nodes, interleaved, and two single nodes
    names = torch.tensor([0, 2, 4, 6, 8, 1, 3, 5, 7, 11])
    edges = names[torch.cat([path, path.flip(0)], 1)]
    made = decimate(Decimation(torch.arange(12), edges, torch.ones(edges.shape[1])))
    kept = made.nodes.tolist()
    assert {9, 10} <= set(kept) < set(range(12))
    assert len(set(kept)) == len(kept)
    for component in ({0, 2, 4, 6, 8}, {1, 3, 5, 7, 11}):
        assert 0 < len(component & set(kept)) < 5
        inside = torch.tensor([node in component for node in kept])
        assert torch.equal(inside[made.edge_index[0]], inside[made.edge_index[1]])
    assert made.edge_weight.isfinite().all()
    assert made.edge_index.max() < len(kept)
    alone = Decimation(torch.arange(3), torch.empty(2, 0, dtype=torch.int64), torch.empty(0))
    assert decimate(alone).nodes.tolist() == [0, 1, 2]


# ---------------------------------------------------------------------- training


def cell(path, text, chain=None):
    settings = {"arch": text, "epochs": 2, "width": 8, "batch_size": 8, "threads": 1}
    settings |= {"chain": chain} if chain else {}
    return StudyCell(str(path), text, "random", settings, StudyLearner)


@pytest.fixture
def signals(workplace, tmp_path):
    """A file of signals on a graph."""
    graph, rng = weighted_graph(40, density=0.1), np.random.default_rng(0)
    x = rng.normal(size=(30, 40, 1))
    path = tmp_path / "signals.npz"
    np.savez(path, edge_index=graph.edge_index, edge_weight=graph.edge_weight, x=x, y=x[..., 0])
    return path


@of_nodes
def test_training(signals, text):
    line = TrialRunner(read_graphs, "cpu")(Trial(cell(signals, text), 0))
    assert line["status"] == "ok", line["reason"]
    assert line["num_parameters"] > 0


@needs_tgp
def test_training_on_kmis(signals):
    line = TrialRunner(read_graphs, "cpu")(
        Trial(cell(signals, "haarunet", {"method": "kmis", "ratio": 0.3}), 0)
    )
    assert line["status"] == "ok", line["reason"]


@pytest.mark.slow
def test_workers_know_the_peers(signals):
    trials = [Trial(cell(signals, text), 0) for text in ("gcnii", "topkunet")]
    lines = [line for _, line in run_in_processes(TrialRunner(read_graphs, "cpu"), trials, 2)]
    assert [line["status"] for line in lines] == ["ok", "ok"]
    assert {line["config"]["arch"] for line in lines} == {"gcnii", "topkunet"}
