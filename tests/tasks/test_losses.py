"""Losses of the tasks against their formulas."""

import numpy as np
import pytest
import torch

from haarpool.nn import build_model
from haarpool.tasks import find_task
from helpers.tolerances import TOLERANCE

NAN = float("nan")
LABELS = [[1, 0, NAN], [NAN, 1, NAN], [0, 0, 1], [1, NAN, 0]]


def by_hand(output, labels, weight, smoothing=0.0):
    """Return the weighted mean of -y log p - (1 - y) log(1 - p) over the known labels."""
    total = mass = 0.0
    for values, row in zip(output.tolist(), labels, strict=True):
        for t, (value, label) in enumerate(zip(values, row, strict=True)):
            if np.isfinite(label):
                p, y = 1 / (1 + np.exp(-value)), label * (1 - smoothing) + smoothing / 2
                w = weight[int(label)][t]
                total -= w * (y * np.log(p) + (1 - y) * np.log(1 - p))
                mass += w
    return total / mass


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, [[0.5, 2.0, 1.0], [3.0, 0.25, 7.0]]])
def test_binary_cross_entropy_is_the_mean_over_known_labels(weight, smoothing):
    output = torch.randn(4, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    weights = None if weight is None else torch.tensor(weight, dtype=torch.double)
    loss = find_task("multilabel").loss(output, torch.tensor(LABELS), weights, smoothing)
    expected = by_hand(output, LABELS, weight or np.ones((2, 3)), smoothing)
    assert loss.item() == pytest.approx(expected, rel=TOLERANCE[torch.float64])


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_missing_labels_have_no_gradient(task):
    output = torch.full((4, 3), 100.0, requires_grad=True)
    loss = find_task(task).loss(output, torch.tensor(LABELS))
    loss.backward()
    missing = torch.tensor(LABELS).isnan()
    assert (output.grad[missing] == 0).all()
    assert output.grad.isfinite().all()
    nothing = find_task(task).loss(output, torch.full((4, 3), NAN))
    assert nothing.item() == 0
    assert torch.autograd.grad(nothing, output)[0].isfinite().all()


def test_a_network_has_the_loss_of_its_task():
    network = build_model("GC8-HP-FC8", 3, 2, task="multilabel")
    output, target = torch.zeros(5, 2), torch.ones(5, 2)
    torch.testing.assert_close(network.loss(output, target), torch.tensor(2.0).log())
