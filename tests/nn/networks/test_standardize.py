"""Standardised columns have mean 0 and standard deviation 1; the others do not change."""

import copy

import pytest
import torch
from torch_geometric.loader import DataLoader

from haarpool.nn import build_model
from haarpool.nn.networks.standardize import Standardize, fit_standardize
from helpers.errors import error_with
from helpers.networks import NETWORK, batch_for, inputs_of, weighted_graphs
from helpers.tolerances import close


def fitted(parts, columns=(0, 2)) -> Standardize:
    module = Standardize(3, columns).to(parts[0].dtype)
    fit_standardize({"x": module}, [{"x": part} for part in parts])
    return module


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_chosen_columns_are_standardised(dtype, mean):
    x = torch.randn(1000, 3, generator=torch.manual_seed(0)).to(dtype) * 5 + mean
    module = fitted(x.split([1, 600, 0, 399]))
    result = module(x)
    assert result.dtype == dtype
    assert torch.equal(result[:, 1], x[:, 1])
    exact = x[:, [0, 2]].double()
    assert close(module.mean[[0, 2]], exact.mean(0), dtype)
    assert close(module.std[[0, 2]], exact.std(0, correction=0), dtype)
    assert close(result[:, [0, 2]], (x - module.mean)[:, [0, 2]] / module.std[[0, 2]], dtype)


def test_constant_columns_are_not_divided_by_rounding_errors():
    x = torch.full((1001, 3), 0.1)
    module = fitted(x.split(7))
    assert module.std.tolist() == [1, 1, 1]
    assert close(module(x)[:, [0, 2]], torch.zeros(1001, 2), torch.float32)


def test_without_rows_or_columns_nothing_changes():
    x = torch.randn(4, 3)
    assert torch.equal(fitted([torch.zeros(0, 3)])(x), x)
    nothing = fitted([x], columns=())
    assert nothing(x) is x
    assert not nothing.state_dict()
    fit_standardize({"x": nothing}, iter([None]))  # batches are not read


def test_columns_must_exist():
    with error_with("standardize in 0..2", "got 3"):
        Standardize(3, [3])


def test_a_network_reads_standardised_columns():
    model = build_model(**NETWORK, standardize=[1])
    batch = batch_for(model)
    model.fit_inputs(DataLoader(weighted_graphs(), batch_size=4))
    seen = inputs_of(model.stages[0].conv)
    model(batch)
    x = seen[0][0]
    assert torch.equal(x[:, [0, 2]], batch.x[:, [0, 2]])
    assert abs(float(x[:, 1].mean())) < 1e-5
    assert abs(float(x[:, 1].std(correction=0)) - 1) < 1e-5
    again = build_model(**NETWORK, standardize=[1])
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(batch), model.eval()(batch))
    double = copy.deepcopy(model).double()
    batch.x = batch.x.double()
    assert double(batch).dtype == torch.float64


def test_without_columns_a_network_is_the_one_that_it_was():
    model = build_model(**NETWORK)
    assert not [name for name in model.state_dict() if "standardize" in name]


@pytest.mark.slow
def test_compiled():
    model = build_model(**NETWORK, standardize=[0, 1]).eval()
    batch = batch_for(model)
    model.fit_inputs([batch])
    compiled = torch.compile(model, dynamic=True, fullgraph=False)
    with torch.no_grad():
        assert close(compiled(batch), model(batch), torch.float32)
