"""DiffPool: its formulas, PyG's function, padding."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Batch
from torch_geometric.nn import (
    dense_diff_pool,
)
from torch_geometric.utils import (
    to_dense_adj,
    to_dense_batch,
)

from haarpool import HaarPoolError
from haarpool.nn import DiffPool
from helpers.networks import FEATURES, GRAPH, ONES, SIZES, weighted_graphs


def assignment(pool: DiffPool, x: Tensor, A: Tensor) -> Tensor:
    """Scores by two layers of DenseSAGEConv, written out."""
    mean = A / A.sum(-1, keepdim=True).clamp(min=1)
    for layer, function in ((pool.hidden, torch.relu), (pool.assign, lambda h: h)):
        h = mean @ x @ layer.lin_rel.weight.T + x @ layer.lin_root.weight.T + layer.lin_root.bias
        x = function(h)
    return x


@pytest.mark.parametrize("weighted", [False, True])
def test_diffpool_by_its_formulas(weighted):
    torch.manual_seed(0)
    pool, data = DiffPool(FEATURES, num_clusters=4).double(), GRAPH
    weight = data.edge_weight if weighted else ONES
    out = pool(data.x, data.edge_index, weight if weighted else None)
    A = to_dense_adj(data.edge_index, None, weight, 15)[0]
    scores = assignment(pool, data.x, A)
    S = scores.softmax(-1)
    assert_close(out.x, S.T @ data.x)
    assert_close(to_dense_adj(out.edge_index, None, out.edge_weight, 4)[0], S.T @ A @ S)
    assert out.batch.tolist() == [0] * 4
    link, entropy = out.details
    assert_close(link, torch.linalg.matrix_norm(A - S @ S.T) / 15**2)
    assert_close(entropy, -(S * S.log()).sum(1).mean())
    pooled, _, *losses = dense_diff_pool(data.x, A, scores)
    assert_close(out.x, pooled[0])
    assert_close(out.details, torch.stack(losses))


def test_diffpool_of_a_batch_is_that_of_pyg():
    pool, batch = DiffPool(FEATURES, num_clusters=4), Batch.from_data_list(weighted_graphs())
    x, mask = to_dense_batch(batch.x, batch.batch)
    A = to_dense_adj(batch.edge_index, batch.batch, batch.edge_weight)
    pooled, coarse, *losses = dense_diff_pool(x, A, assignment(pool, x, A), mask)
    out = pool(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    assert_close(out.x, pooled.flatten(0, 1))
    assert_close(to_dense_adj(out.edge_index, out.batch, out.edge_weight), coarse)
    assert_close(out.details, torch.stack(losses))
    assert out.batch.bincount().tolist() == [4] * len(SIZES)


def test_padding_does_not_matter_to_diffpool():
    torch.manual_seed(0)
    pool = DiffPool(FEATURES, num_clusters=4)
    batch = Batch.from_data_list(weighted_graphs())
    out = pool(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
    whole = to_dense_adj(out.edge_index, out.batch, out.edge_weight)
    for number, data in enumerate(weighted_graphs()):
        alone = pool(data.x, data.edge_index, data.edge_weight)
        assert_close(out.x[out.batch == number], alone.x)
        assert_close(whole[number], to_dense_adj(alone.edge_index, None, alone.edge_weight, 4)[0])


def test_diffpool_repr_and_reset():
    text = "DiffPool(16, num_clusters=8)"
    pool = eval(text)
    assert repr(pool) == text
    assert pool.assign.lin_root.weight.shape == (8, 16)
    assert DiffPool(16).num_clusters == 16
    for parameter in pool.parameters():
        parameter.data.fill_(7)
    pool.reset_parameters()
    assert all((parameter != 7).all() for parameter in pool.parameters())


@pytest.mark.parametrize(
    ("bad", "got"),
    [
        (lambda: DiffPool(0), "0"),
        (lambda: DiffPool(4, num_clusters=0), "0"),
        (lambda: DiffPool(4, num_clusters=2.5), "2.5"),
        (lambda: DiffPool(4, num_clusters=True), "True"),
        (lambda: DiffPool(4)(torch.ones(3, 5), torch.ones(2, 0).long()), "(3, 5)"),
        (lambda: DiffPool(4)(torch.ones(4), torch.ones(2, 0).long()), "(4,)"),
    ],
)
def test_diffpool_errors(bad, got):
    with pytest.raises(HaarPoolError) as error:
        bad()
    assert error.value.got == got
