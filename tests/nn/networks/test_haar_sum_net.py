"""HaarSumNet: a sum over nodes, and the linear fit below it."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from haarpool.errors import HaarPoolError
from haarpool.nn import HaarSumNet
from haarpool.nn.networks.linear_fit import LinearFit
from haarpool.training.loop import Trainer


def molecule(seed, size=6):
    """A graph with distances as edge features, without a chain."""
    torch.manual_seed(seed)
    edges = torch.combinations(torch.arange(size)).T
    edges = torch.cat([edges, edges.flip(0)], 1)
    return Data(torch.rand(size, 3), edges, torch.rand(edges.shape[1], 2))


def test_values_add_up_over_the_parts_of_a_graph():
    parts = [molecule(0, 5), molecule(1, 8)]
    whole = Batch.from_data_list(parts)
    union = Data(whole.x, whole.edge_index, whole.edge_attr)
    torch.manual_seed(0)
    model = HaarSumNet(3, 2, edge_channels=2, levels=0, width=8)
    torch.testing.assert_close(model(Batch.from_data_list([union]))[0], model(whole).sum(0))


def test_weights_of_edges_do_not_count_beside_their_features():
    graph = molecule(0)
    model = HaarSumNet(3, 1, edge_channels=2, levels=0, width=8)
    before = model(Batch.from_data_list([graph]))
    graph.edge_weight = torch.rand(graph.num_edges)
    torch.testing.assert_close(before, model(Batch.from_data_list([graph])))


def test_the_fit_finds_a_value_that_is_a_sum_over_nodes():
    """Targets that are sums of node features are predicted before any training."""
    batch = Batch.from_data_list([molecule(seed, 4 + seed % 5) for seed in range(400)])
    weight = torch.tensor([[2.0], [-1.0], [0.5]])
    target = torch.zeros(400, 1).index_add(0, batch.batch, batch.x @ weight + 3)
    model = HaarSumNet(3, 1, edge_channels=2, levels=0, width=8)
    model.fit_baseline([(batch, target)])
    with torch.no_grad():
        error = (model(batch) - target).abs().mean()
    assert error < 0.02 * target.std()


def test_a_classifier_has_no_fit():
    model = HaarSumNet(3, 2, levels=0, task="classification")
    model.fit_baseline([(Batch.from_data_list([molecule(0)]), torch.tensor([1]))])
    assert not model.baseline.weight.any()


def test_linear_fit_of_several_targets_with_missing_values():
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 4))).float()
    targets = torch.stack([rows[:, 0] * 3 - 5, rows @ torch.arange(4.0)], 1)
    targets[::3, 0] = torch.nan
    fit = LinearFit(4, 2)
    fit.fit(rows, targets)
    expected = torch.tensor([[3.0, 0, 0, 0], [0, 1, 2, 3]]).T
    torch.testing.assert_close(fit.weight, expected, atol=0.02, rtol=0)
    torch.testing.assert_close(fit.bias, torch.tensor([-5.0, 0.0]), atol=0.02, rtol=0)


def test_linear_fit_of_few_graphs_and_constant_columns_stays_finite():
    fit = LinearFit(30, 1)
    rows = torch.cat([torch.rand(5, 20), torch.ones(5, 10)], 1)
    fit.fit(rows, torch.rand(5, 1))
    assert fit.weight.isfinite().all()
    assert fit.spread > 1e-3, "five graphs are not fitted perfectly"


def test_linear_fit_without_any_target_changes_nothing():
    fit = LinearFit(2, 1)
    fit.fit(torch.rand(5, 2), torch.full((5, 1), torch.nan))
    rest = torch.rand(5, 1)
    torch.testing.assert_close(fit(torch.rand(5, 2), rest), rest)


def test_training_starts_from_the_fit():
    """The trainer fits the baseline in the units in which it trains."""
    from haarpool.datasets.graphs import Graphs
    from haarpool.training.config import RunConfig
    from haarpool.training.devices import ProcessGroup
    from haarpool.training.run import start_run

    generator = np.random.default_rng(0)
    start = np.arange(0, 401, 4)
    edges = np.array([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    edges = np.concatenate([edges + 4 * g for g in range(100)], 1)
    x = generator.normal(size=(400, 2))
    targets = 1000 + 50 * x.sum(1).reshape(100, 4).sum(1, keepdims=True)
    graphs = Graphs("sums", start, edges, {"x": x}, task="regression", targets=targets,
                    target_names=("sum",))  # fmt: skip
    config = RunConfig(arch="haarsum:width=8,levels=1", epochs=2, batch_size=16)
    run = start_run(graphs, config, ProcessGroup(), progress=False)
    trainer = Trainer(run, 0)
    assert isinstance(trainer, Trainer)
    output = trainer.outputs(trainer.split.test)
    _, score = trainer.evaluate(output, trainer.split.test)
    assert score < 0.1 * targets.std()
    assert trainer.run_epoch(lambda: None).train_loss < 0.1


def fitted(scale=100.0):
    """A network, a batch, and targets that are a thousand times larger than what the fit leaves."""
    torch.manual_seed(0)
    batch = Batch.from_data_list([molecule(seed, 4 + seed % 5) for seed in range(200)])
    sums = torch.zeros(200, 3).index_add(0, batch.batch, batch.x)
    target = scale * sums.sum(1) + torch.randn(200) * scale / 1000
    model = HaarSumNet(3, 1, edge_channels=2, levels=0, width=8)
    model.fit_baseline([(batch, target)])  # (B,) as PyG's y
    return model, batch


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_fit_keeps_its_digits_in_half_precision(dtype):
    model, batch = fitted()
    with torch.autocast("cpu", dtype=dtype):
        half = model(batch)
    half.square().mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert (half - model(batch)).abs().max() < 0.05 < model.baseline.spread.item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_network_in_half_precision_runs(dtype):
    model, batch = fitted(scale=1.0)
    batch.x, batch.edge_attr = batch.x.to(dtype), batch.edge_attr.to(dtype)
    assert model.to(dtype)(batch).isfinite().all()


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        ([], "none"),
        ([(Batch.from_data_list([molecule(0)]), torch.zeros(1, 3))], r"shape \(1, 1\)"),
        ([(Batch.from_data_list([molecule(0)]), torch.zeros(2))], r"shape \(1, 1\)"),
    ],
)
def test_targets_of_another_shape(batches, text):
    with pytest.raises(HaarPoolError, match=text):
        HaarSumNet(3, 1, edge_channels=2, levels=0).fit_baseline(batches)
