"""What the layers refuse: one error each that names the way out."""

import pytest
import torch
from torch_geometric.data import Batch, Data

import haarpool as hp
from haarpool.nn import HaarConv, HaarPooling, HaarReadout, HaarUnpooling, build_model
from helpers.layers import BATCH, N


@pytest.fixture(autouse=True)
def seeded():
    """Layers have random weights."""
    torch.manual_seed(0)


PLAIN = Batch.from_data_list([Data(x=torch.zeros(3, 2), edge_index=torch.zeros(2, 0).long())])
X0, X1 = torch.zeros(N[0], 2), torch.zeros(N[1], 2)
NO_CHAIN = "data without one; add AddHaarChain(num_levels=...)"
ROWS, COARSE_ROWS = (f"a signal of shape ({n}, d)" for n in N[:2])

BAD_CALLS = {
    "pool: no chain": (lambda: HaarPooling(0)(PLAIN.x, PLAIN), NO_CHAIN),
    "pool: no chain, a level above": (lambda: HaarPooling(3)(PLAIN.x, PLAIN), NO_CHAIN),
    "pool: no chain, a dict": (lambda: HaarPooling(0)(PLAIN.x, {}), NO_CHAIN),
    "unpool: no chain": (lambda: HaarUnpooling(0)(PLAIN.x, PLAIN), NO_CHAIN),
    "readout: no chain": (lambda: HaarReadout()(PLAIN.x, PLAIN), NO_CHAIN),
    "conv: no chain": (lambda: HaarConv(2, 2, 2)(PLAIN.x, PLAIN), NO_CHAIN),
    "pool: level": (lambda: HaarPooling(2)(X0, BATCH), "at least 3 levels, got one of 2"),
    "pool: level far above": (lambda: HaarPooling(9)(X0, BATCH), "num_levels=10), or a level"),
    "pool: level, vertex": (lambda: HaarPooling(2, "vertex")(X0, BATCH), "a level below 2"),
    "unpool: level": (lambda: HaarUnpooling(2)(X0, BATCH), "at least 3 levels"),
    "readout: level": (lambda: HaarReadout(3, "mean")(X0, BATCH), "at least 3 levels"),
    "readout: no energy on top": (
        lambda: HaarReadout(2, "energy")(torch.zeros(N[2], 2), BATCH), "at least 3 levels",
    ),
    "conv: shallow chain": (lambda: HaarConv(2, 2, 3)(X0, BATCH), "at least 3 levels"),
    "conv: deep chain": (
        lambda: HaarConv(2, 2, 1)(X0, BATCH), "1 levels, got one of more",
    ),
    "pool: rows": (lambda: HaarPooling(0)(X1, BATCH), ROWS),
    "pool: rows, vertex": (lambda: HaarPooling(0, "vertex")(X1, BATCH), ROWS),
    "pool: rows of another level": (
        lambda: HaarPooling(1)(X0, BATCH), COARSE_ROWS,
    ),
    "pool: rows, energy": (lambda: HaarPooling(0, details="energy")(X1, BATCH), ROWS),
    "pool: rows, full": (lambda: HaarPooling(0, details="full")(X1, BATCH), ROWS),
    "unpool: rows": (lambda: HaarUnpooling(0)(X0, BATCH), COARSE_ROWS),
    "readout: rows": (lambda: HaarReadout()(X1, BATCH), ROWS),
    "conv: rows": (lambda: HaarConv(2, 2, 2)(X1, BATCH), ROWS),
    "pool: one dimension": (lambda: HaarPooling(0)(X0[:, 0], BATCH), f"shape ({N[0]},)"),
    "pool: four dimensions": (
        lambda: HaarPooling(0)(X0[None, None], BATCH), f"shape (1, 1, {N[0]}, 2)",
    ),
    "readout: one dimension": (lambda: HaarReadout()(X0[:, 0], BATCH), ROWS),
    "conv: one dimension": (lambda: HaarConv(2, 2, 2)(X0[:, 0], BATCH), ROWS),
    "unpool: one dimension": (lambda: HaarUnpooling(0)(X1[:, 0], BATCH), "a signal"),
    "unpool: nothing, with details": (
        lambda: HaarUnpooling(0)(None, BATCH, X0[N[1] :]), "node features x, got none",
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


SUBGRAPH = Batch.from_data_list([BATCH[3].subgraph(torch.arange(2))] * 2)


@pytest.mark.parametrize(
    "call",
    [
        HaarPooling(0),
        HaarReadout(),
        HaarConv(2, 2, 2),
        lambda x, data: build_model("GC8-HP-GC8-HP-FC8", 2, 2)(data),
        lambda x, data: build_model("haarnet:width=8,levels=2", 2, 2)(data),
        lambda x, data: build_model("haarsum:width=8,levels=2", 2, 2)(data),
    ],
    ids=["pool", "readout", "conv", "sequence", "haarnet", "haarsum"],
)
def test_nodes_that_change_after_the_chain_was_added(call):
    with pytest.raises(hp.HaarPoolError, match=r"got shape \(4, .*; apply AddHaarChain last"):
        call(SUBGRAPH.x.float(), SUBGRAPH)


def test_energies_have_another_shape_than_details():
    """What the last case above relies on."""
    assert N[1] - N[2] != N[2]


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
    with pytest.raises(hp.HaarPoolError, match="level >= 0"):
        make(level)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HaarPooling(0, "foo"), "'foo'; choose one of these"),
        (lambda: HaarPooling(0, None), "None; choose one of these"),
        (lambda: HaarUnpooling(0, "foo"), "'foo'; choose one of these"),
        (lambda: HaarPooling(0, details="all"), "'all'; choose one of these"),
        (lambda: HaarPooling(0, details=True), "True; choose one of these"),
        (lambda: HaarReadout(statistics="median"), "got 'median'"),
        (lambda: HaarReadout(statistics=["mean", "max", "min"]), "got 'max'"),
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
