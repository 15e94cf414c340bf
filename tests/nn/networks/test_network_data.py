"""What a network needs of its data: chains, bases, batch vectors."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from haarpool import Chain, HaarPoolError
from haarpool.data import AddHaarChain
from haarpool.nn import AddEigenModes, build_model
from helpers.networks import (
    FEATURES,
    NETWORK,
    SIZES,
    batch_for,
    weighted_graphs,
)

DATA = {
    "whole numbers as features": ({"x": torch.ones(3, FEATURES, dtype=int)}, "x.float()"),
    "no edges": ({"edge_index": None}, "ToSparseTensor"),
    "weights as a column": ({"edge_weight": torch.ones(2, 1)}, "squeeze"),
}


@pytest.mark.parametrize("case", DATA)
def test_data_that_a_network_cannot_read(case):
    changed, remedy = DATA[case]
    good = {"x": torch.ones(3, FEATURES), "edge_index": torch.tensor([[0, 1], [1, 0]])}
    model = build_model("GC8-SUM", FEATURES, 2)
    assert model(good).shape == (1, 2)
    with pytest.raises(HaarPoolError) as caught:
        model(good | changed)
    assert remedy in caught.value.remedy


def in_one_step(data: Data) -> Chain:
    return Chain.from_parents([np.zeros(data.num_nodes, int)])


@pytest.mark.parametrize("text", ["GC8-HP-FC8", "GC8-EIG-SUM"])
def test_a_chain_of_your_own(text):
    model = build_model(text, FEATURES, 2)
    batch = batch_for(model, chain=in_one_step)
    assert batch.chain_sizes == (sum(SIZES), len(SIZES))
    assert model(batch).shape == (len(SIZES), 2)
    assert "in_one_step" in repr(model.transform(chain=in_one_step))


@pytest.mark.parametrize("own", [{"num_levels": 1}, {"top": None}, {"num_levels": 2, "top": 1}])
def test_num_levels_and_top_are_set_by_the_network(own):
    with pytest.raises(HaarPoolError, match="besides those of the network") as error:
        build_model("GC8-HP-GC8-HP-FC8", FEATURES, 2).transform(**own)
    assert error.value.got == ", ".join(own)


# case: (network, transform of the data, what is missing, what to do)
LACKING = {
    "modes": (
        NETWORK | {"arch": "GC8-EIG-SUM"}, AddHaarChain(num_levels=1, top=None),
        "2 rows haar_modes_0", "AddEigenModes(num_modes=2, num_levels=1, top=None)",
    ),
    "more modes": (
        NETWORK | {"arch": "GC8-EIG-SUM", "num_modes": 3}, AddEigenModes(2, num_levels=1),
        "3 rows haar_modes_0", "AddEigenModes(num_modes=3, num_levels=1, top=None)",
    ),
    "edges": (
        NETWORK | {"arch": "GC8-SUM"}, T.ToSparseTensor(layout=torch.sparse_coo),
        "edge_index", "ToSparseTensor",
    ),
    "edges beside a chain": (
        NETWORK, T.Compose([AddHaarChain(num_levels=2), T.ToSparseTensor(layout=torch.sparse_coo)]),
        "edge_index", "ToSparseTensor",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch, once
@pytest.mark.parametrize("case", LACKING)
@pytest.mark.parametrize("batched", [False, True])
def test_check_says_what_is_missing(case, batched):
    arguments, transform, missing, remedy = LACKING[case]
    model = build_model(**arguments)
    data = transform(weighted_graphs()[3])
    if batched:
        # Two sparse matrices of PyG batch to one; all else as ever.
        data = Batch.from_data_list([data, transform(weighted_graphs()[0])])
    for ask in (model.check, model):  # forward asks before it computes
        with pytest.raises(HaarPoolError) as error:
            ask(data)
        assert missing in error.value.expected
        assert remedy in error.value.remedy


def test_the_suggested_transform_works():
    for arguments, *_ in LACKING.values():
        model = build_model(**arguments)
        model.check(batch_for(model))
        model(batch_for(model))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("text", ["GC8-DP-GC8-SUM-FC8", "GC8-HP-GC8-DP-SUM"])
def test_a_copy_after_training_gives_the_same(text, copied):
    model = build_model(text, FEATURES, 2, num_clusters=4)
    batch = batch_for(model)
    output, auxiliary = model.output_and_auxiliary(batch)
    (model.loss(output, batch.y) + auxiliary).backward()
    twin = copied(model)
    results = [one.eval().output_and_auxiliary(batch) for one in (twin, model)]
    assert all(map(torch.equal, *results))
    for (name, one), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert one is not other, name
        assert torch.equal(one, other), name


@pytest.mark.parametrize("form", [lambda data: data, Data.to_dict])
def test_a_batch_vector_made_by_hand(form):
    model = build_model("GC8-SUM", FEATURES, 2).eval()
    batch = batch_for(model)
    by_hand = Data(
        x=batch.x, edge_index=batch.edge_index, edge_weight=batch.edge_weight, batch=batch.batch
    )
    assert "ptr" not in by_hand
    assert_close(model(form(by_hand)), model(batch))
