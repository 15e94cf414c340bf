"""Bad chains, batches and parameters of `AddHaarChain`."""

import pytest
import torch
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.loader import DataLoader

import haarpool as hp
from haarpool import HaarPoolError
from haarpool.data import AddHaarChain, ChainData, MissingChainError
from haarpool.nn import HaarPooling
from helpers.chain_data import CHAINED, MIXED, merge_all

SHALLOW, DEEP = (AddHaarChain(num_levels=K, method="matching")(MIXED[4]) for K in (2, 4))


BATCHERS = {
    "Batch": Batch.from_data_list,
    "DataLoader": lambda graphs: next(iter(DataLoader(graphs, batch_size=len(graphs)))),
}


ALL_BATCHERS = BATCHERS | {
    "dataset": InMemoryDataset.collate,
    "batches": lambda graphs: Batch.from_data_list([Batch.from_data_list([g, g]) for g in graphs]),
}


@pytest.mark.parametrize("batcher", ALL_BATCHERS)
def test_a_chain_that_is_shallower_than_the_first(batcher):
    with pytest.raises(MissingChainError, match="same kind of chain") as caught:
        ALL_BATCHERS[batcher]([DEEP, SHALLOW])
    assert isinstance(caught.value, hp.HaarPoolError)
    assert "haar_tree_3" in caught.value.expected
    assert caught.value.got == "a graph with a chain of 2 levels"
    assert "the same AddHaarChain, with num_levels= set" in caught.value.remedy


@pytest.mark.parametrize("batcher", ALL_BATCHERS)
def test_a_first_chain_that_is_the_shallowest(batcher):
    """PyG asks for its keys only; the rows of haar_start do not fit, which torch says."""
    with pytest.raises(RuntimeError, match=r"equal size|must match"):
        ALL_BATCHERS[batcher]([SHALLOW, DEEP])


WITHOUT_CHAIN = {"Data": MIXED[4], "ChainData": ChainData(**MIXED[4].to_dict())}


@pytest.mark.parametrize("batcher", BATCHERS)
def test_a_graph_without_a_chain_after_one_with_a_chain(batcher):
    with pytest.raises(MissingChainError, match="same kind of chain") as caught:
        BATCHERS[batcher]([SHALLOW, WITHOUT_CHAIN["ChainData"]])
    assert caught.value.got == "a graph without a chain"
    with pytest.raises(KeyError, match="haar_tree_0"):  # of PyG: a Data has its own storage
        BATCHERS[batcher]([SHALLOW, WITHOUT_CHAIN["Data"]])


@pytest.mark.parametrize("batcher", BATCHERS)
@pytest.mark.parametrize("kind", WITHOUT_CHAIN)
def test_a_first_graph_without_a_chain_drops_the_chains_and_layers_say_so(batcher, kind):
    batch = BATCHERS[batcher]([WITHOUT_CHAIN[kind], SHALLOW])
    assert not any("haar" in key for key in batch.to_dict())
    with pytest.raises(hp.HaarPoolError, match="data without one; add AddHaarChain"):
        HaarPooling(0)(batch.x, batch)


@pytest.mark.parametrize("batcher", BATCHERS)
def test_graphs_without_chains_batch_as_before(batcher):
    batch = BATCHERS[batcher]([MIXED[4], MIXED[3]])
    assert batch.num_graphs == 2
    assert not isinstance(batch, ChainData)
    with pytest.raises(hp.HaarPoolError, match="data without one; add AddHaarChain"):
        HaarPooling(0)(batch.x, batch)


def test_the_message_arrives_from_a_worker():
    with pytest.raises(Exception, match="the same AddHaarChain, with num_levels= set"):
        list(DataLoader([DEEP, SHALLOW], batch_size=2, num_workers=2))


def test_other_missing_keys_stay_key_errors():
    with pytest.raises(KeyError) as caught:
        SHALLOW["nothing"]
    assert not isinstance(caught.value, hp.HaarPoolError)
    assert not hasattr(SHALLOW, "haar_tree_9")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AddHaarChain(0), "num_levels in 1.."),
        (lambda: AddHaarChain(2, ratio=1.5), "ratio in"),
        (lambda: AddHaarChain(2, method="nothing"), "nothing"),
        (lambda: AddHaarChain(2, options={"speed": 3}), "speed"),
        (lambda: AddHaarChain(2, sizes=[4, 8]), "never grow"),
        (lambda: AddHaarChain(2, order="random"), "order"),
        (lambda: AddHaarChain(2, measure="area"), "measure"),
        (lambda: AddHaarChain(2, seed=-1), "seed"),
        (lambda: AddHaarChain(2, top=3), "top"),
        (lambda: AddHaarChain(chain=[0, 0]), "chain as a function"),
        (lambda: AddHaarChain(2, chain=merge_all), "num_levels"),
        (lambda: AddHaarChain(2, edge_attr="median"), 'edge_attr None, "mean", "sum"'),
        (lambda: AddHaarChain(chain=merge_all, ratio=0.4), "ratio"),
        (lambda: AddHaarChain(chain=merge_all, features="x"), "features"),
    ],
)
def test_bad_parameters_are_errors_at_once(make, message):
    """When the transform is made, not hours later at a graph."""
    with pytest.raises(hp.HaarPoolError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("unknown", [{"domain": "vertex"}, {"details": True}, {"speed": 3}])
def test_parameters_that_it_does_not_have(unknown):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{next(iter(unknown))}'"):
        AddHaarChain(2, **unknown)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda data: hp.Chain.from_parents([[0, 0, 1]]), "over the 30 nodes of the graph"),
        (
            lambda data: [[0] * 30],
            "chain as a function that returns a Chain, got one that returns list",
        ),
        (lambda data: None, "returns NoneType"),
    ],
)
def test_a_function_that_gives_no_chain_of_this_graph(function, message):
    with pytest.raises(hp.HaarPoolError) as caught:
        AddHaarChain(chain=function)(MIXED[4])
    assert message in str(caught.value)


@pytest.mark.parametrize("pos", [None, torch.ones(29, 2), torch.ones(30), "here"])
def test_positions_of_other_shapes(pos):
    data = SHALLOW.clone()
    data.pos = pos
    with pytest.raises(HaarPoolError, match=r"data with pos of shape \(30, columns\)"):
        data.coarse_pos(1)
    with pytest.raises(HaarPoolError, match="at least 3 levels"):
        data.coarse_pos(3)


def test_errors_of_a_chain_function_are_not_wrapped():
    def broken(data):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        AddHaarChain(chain=broken)(MIXED[4])


def test_a_chain_of_another_graph():
    with pytest.raises(hp.HaarPoolError, match="build the chain from this graph"):
        ChainData.from_chain(MIXED[4], hp.build_chain(MIXED[5], 2))


def test_the_chain_of_a_batch_is_an_error():
    with pytest.raises(hp.HaarPoolError, match="to_data_list"):
        CHAINED(Batch.from_data_list(MIXED))


def test_chains_of_an_earlier_version():
    """Saved datasets have them; the error says what to do."""
    data = ChainData(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    data["haar_growth"], data["haar_tree_0"] = torch.zeros(20, 1), torch.zeros(8, 3)
    with pytest.raises(HaarPoolError, match=r"an earlier version.*process the dataset again"):
        Batch.from_data_list([data, data])
    with pytest.raises(HaarPoolError, match="an earlier version"):
        HaarPooling(0)(data.x, data)
