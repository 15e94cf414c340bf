"""Bad chains, batches and parameters of `AddHaarChain`."""

import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.nn import HaarPooling, HaarReadout
from helpers.chain_data import CHAINED, MIXED, merge_all, same_data
from helpers.tolerances import close

SHALLOW, DEEP = (AddHaarChain(num_levels=K, method="matching")(MIXED[4]) for K in (2, 4))


@pytest.mark.parametrize(
    ("pair", "got"), [((SHALLOW, DEEP), "of 4 levels"), ((DEEP, SHALLOW), "of 2 levels")]
)
def test_chains_of_different_depth_in_one_batch(pair, got):
    with pytest.raises(hp.HaarPoolError, match="same kind of chain") as caught:
        Batch.from_data_list(list(pair))
    assert got in caught.value.got
    assert "num_levels=" in caught.value.remedy


def test_bases_in_some_graphs_only():
    bare = AddHaarChain(num_levels=2, method="matching", domain="vertex")(MIXED[4])
    with pytest.raises(hp.HaarPoolError, match="haar_basis_0"):
        Batch.from_data_list([SHALLOW, bare])


BATCHERS = {
    "Batch": Batch.from_data_list,
    "DataLoader": lambda graphs: next(iter(DataLoader(graphs, batch_size=len(graphs)))),
}
WITHOUT_CHAIN = {"Data": MIXED[4], "ChainData": ChainData(**MIXED[4].to_dict())}


@pytest.mark.parametrize("batcher", BATCHERS)
@pytest.mark.parametrize("kind", WITHOUT_CHAIN)
@pytest.mark.parametrize("chain_first", [True, False])
def test_graphs_with_and_without_a_chain_in_one_batch(batcher, kind, chain_first):
    graphs = [SHALLOW, WITHOUT_CHAIN[kind]]
    with pytest.raises(hp.HaarPoolError, match="same kind of chain") as caught:
        BATCHERS[batcher](graphs if chain_first else graphs[::-1])
    assert caught.value.got == "graphs with and without a chain"
    assert "the same AddHaarChain, with num_levels= set" in caught.value.remedy


@pytest.mark.parametrize("batcher", BATCHERS)
def test_graphs_without_chains_batch_as_before(batcher):
    batch = BATCHERS[batcher]([MIXED[4], MIXED[3]])
    assert batch.num_graphs == 2
    assert not isinstance(batch, ChainData)
    with pytest.raises(hp.HaarPoolError, match="data without one; add AddHaarChain"):
        HaarPooling(0)(batch.x, batch)


@pytest.mark.parametrize("pair", [(SHALLOW, DEEP), (DEEP, SHALLOW)])
def test_the_message_arrives_from_a_worker(pair):
    with pytest.raises(Exception, match="the same AddHaarChain, with num_levels= set"):
        list(DataLoader(list(pair), batch_size=2, num_workers=2))


def test_other_missing_keys_stay_key_errors():
    with pytest.raises(KeyError) as caught:
        SHALLOW["nothing"]
    assert not isinstance(caught.value, hp.HaarPoolError)
    assert not hasattr(SHALLOW, "haar_tree_9")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AddHaarChain(2, domain="node"), 'domain "haar" or "vertex", got \'node\''),
        (lambda: AddHaarChain(0), "num_levels in 1.."),
        (lambda: AddHaarChain(2, ratio=1.5), "ratio in"),
        (lambda: AddHaarChain(2, method="nothing"), "nothing"),
        (lambda: AddHaarChain(2, speed=3), "speed"),
        (lambda: AddHaarChain(2, sizes=[4, 8]), "never grow"),
        (lambda: AddHaarChain(2, order="random"), "order"),
        (lambda: AddHaarChain(2, measure="area"), "measure"),
        (lambda: AddHaarChain(2, seed=-1), "seed"),
        (lambda: AddHaarChain(2, top=3), "top"),
        (lambda: AddHaarChain(chain=[0, 0]), "chain= as a function"),
        (lambda: AddHaarChain(2, chain=merge_all), "num_levels"),
        (lambda: AddHaarChain(chain=merge_all, ratio=0.5), "ratio"),
        (lambda: AddHaarChain(chain=merge_all, features="x"), "features"),
    ],
)
def test_bad_parameters_are_errors_at_once(make, message):
    """When the transform is made, not hours later at a graph."""
    with pytest.raises(hp.HaarPoolError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda data: hp.Chain.from_parents([[0, 0, 1]]), "over the 30 nodes of the graph"),
        (lambda data: [[0] * 30], "a Chain from the function chain=, got list"),
        (lambda data: None, "got NoneType"),
    ],
)
def test_a_function_that_gives_no_chain_of_this_graph(function, message):
    with pytest.raises(hp.HaarPoolError) as caught:
        AddHaarChain(chain=function)(MIXED[4])
    assert message in str(caught.value)


def test_errors_of_a_chain_function_are_not_wrapped():
    def broken(data):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        AddHaarChain(chain=broken)(MIXED[4])


def test_a_chain_of_another_graph():
    with pytest.raises(hp.HaarPoolError, match="build the chain from this graph"):
        ChainData.from_chain(MIXED[4], hp.build_chain(MIXED[5], 2))
    with pytest.raises(hp.HaarPoolError, match="domain"):
        ChainData.from_chain(MIXED[4], hp.build_chain(MIXED[4], 2), domain="both")


def test_the_chain_of_a_batch_is_an_error():
    with pytest.raises(hp.HaarPoolError, match="to_data_list"):
        CHAINED(Batch.from_data_list(MIXED))


def test_bases_that_are_too_dense(monkeypatch):
    monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", 100)
    with pytest.raises(hp.HaarPoolError) as caught:
        CHAINED(MIXED[4])
    assert "num_levels=None" in caught.value.remedy
    assert 'domain="vertex"' in caught.value.remedy
    data = AddHaarChain(num_levels=3, method="matching", domain="vertex")(MIXED[4])
    out = HaarPooling(0, "vertex")(data.x, data)
    sums = torch.zeros(15, 3, dtype=torch.float64)
    sums.index_add_(0, data.haar_tree_0[0], data.x)
    assert close(out.x, sums / data.haar_tree_0[0].bincount()[:, None].double().sqrt())
    assert close(HaarReadout(statistics="mean")(data.x, data), data.x.mean(0, keepdim=True))


def test_the_limit_is_the_number_of_entries(monkeypatch):
    bare = AddHaarChain(num_levels=3, method="matching", details=False)
    for transform, lowest in ((CHAINED, 0), (bare, 1)):
        data = transform(MIXED[4])
        entries = sum(data[f"haar_basis_{j}"].shape[1] for j in range(lowest, 4))
        monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", entries)
        assert same_data(transform(MIXED[4]), data)
        monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", entries - 1)
        with pytest.raises(hp.HaarPoolError, match="non-zeros"):
            transform(MIXED[4])
        monkeypatch.undo()


def test_the_limit_counts_details(monkeypatch):
    """One cluster of n nodes has n² / 2 entries in its details."""
    monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", 2_000)
    with pytest.raises(hp.HaarPoolError, match="non-zeros"):
        AddHaarChain(chain=merge_all)(MIXED[1])
    bare = AddHaarChain(chain=merge_all, details=False)(MIXED[1])
    assert bare.haar_basis_1.shape[1] == MIXED[1].num_nodes
