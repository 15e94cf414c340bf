"""Table 1 as data: every cell can be built, and peers have the networks that the table promises."""

import math

import numpy as np
import pytest

from haarpool.comparison.learners import NetworkLearner, network_config
from haarpool.datasets import read_graphs
from haarpool.errors import HaarPoolError
from haarpool.nn import build_model
from haarpool.nn.strings.architecture import parse_architecture
from haarpool.training.presets import preset
from helpers.files import needs_data
from paper import table1
from paper.learners import MixtureLearner, kinds_of
from paper.published import TABLE1
from paper.tables import NO_POOLING, TABLES, find_table

TABLE = find_table("table1")
CELLS = {cell.key: cell for cell in TABLE.cells}
SAME = ("sortpool", "diffpool", "gpool", "sagpool", "eigenpool")


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_valid_settings(name):
    cells = find_table(name).cells
    mixtures = [cell for cell in cells if issubclass(cell.learner, MixtureLearner)]
    networks = [cell for cell in cells if issubclass(cell.learner, NetworkLearner)]
    networks += [one for cell in mixtures for one in kinds_of(cell).values()]
    assert networks
    for cell in networks:
        assert network_config(cell).threads == 1
    for cell in mixtures:
        assert len(kinds_of(cell)) >= 2
        for one in kinds_of(cell).values():
            levels = parse_architecture(one.settings["arch"]).num_levels
            assert (levels == 0) == cell.method.endswith(NO_POOLING)


@pytest.mark.parametrize("dataset", table1.DATASETS)
def test_haarpool_has_the_settings_of_the_paper(dataset):
    settings = CELLS[dataset, "haarpool", "random"].settings
    assert {**preset("paper", dataset), "tied": "authors"}.items() <= settings.items()
    assert CELLS[dataset, "haarpool-untied", "random"].settings["tied"] is None


@pytest.mark.parametrize("dataset", table1.DATASETS)
def test_peers_have_the_same_budget_convolutions_and_linear_layers(dataset):
    ours = CELLS[dataset, "haarpool", "random"].settings
    for method in SAME:
        theirs = CELLS[dataset, method, "random"].settings
        others = {"arch", "tied", "pooling"}
        assert {k: v for k, v in theirs.items() if k not in others} == {
            k: v for k, v in ours.items() if k not in others
        }
        for token in ("FC", "GC"):
            layers = [
                [block for block in parse_architecture(s["arch"]).layers() if block.token == token]
                for s in (ours, theirs)
            ]
            assert layers[0] == layers[1]


def readout_of(cell):
    blocks = parse_architecture(cell.settings["arch"]).blocks
    return next((block.token for block in blocks if block.token in ("AP", "SUM")), None)


def test_peers_have_a_sum_readout_and_some_a_mean_on_three_datasets():
    summed = ("gpool", "sagpool", "edgepool", "lapool")
    means = ("gpool-mean", "sagpool-mean")
    for dataset in table1.CONTEXT:
        for method in summed:
            assert readout_of(CELLS[dataset, method, "random"]) == "SUM"
        for method in means:
            mean = CELLS[dataset, method, "random"].settings
            other = CELLS[dataset, method.removesuffix("-mean"), "random"].settings
            assert mean == other | {"arch": other["arch"].replace("-SUM-", "-AP-")} != other
    assert {c.dataset for c in TABLE.cells if c.method in means} == set(table1.CONTEXT)
    assert tuple(method.name for method in TABLE.rows[-2:]) == means


def test_all_methods_of_the_paper_are_there_and_linked():
    linked = {method.published for method in TABLE.rows} - {""}
    assert linked == set(TABLE1) == set(TABLE.published)
    assert str(TABLE1["DiffPool"]["NCI1"]) == "76.0*"
    assert str(TABLE1["HaarPool"]["MUTAG"]) == "90.0 ± 3.6"
    counts = {row: len(numbers) for row, numbers in TABLE1.items()}
    assert counts == {
        "CSM": 1, "GIN": 3, "SortPool": 5, "DiffPool": 4, "gPool": 1, "SAGPool": 3,
        "EigenPool": 4, "HaarPool": 5,
    }  # fmt: skip


@needs_data
def test_sizes_of_mutag_are_those_of_the_data():
    sizes = np.sort(read_graphs("MUTAG").sizes)
    assert table1.SIZE_60["MUTAG"] == sizes[math.ceil(0.6 * len(sizes)) - 1]
    assert table1.CLUSTERS["MUTAG"] == sizes[-1] // 4
    assert table1.NUM_GRAPHS["MUTAG"] == len(sizes)


def test_poolings_with_clusters_by_the_rule_of_diffpool():
    """The share of the next pooling is a setting only where there is a next one."""
    ratios = {
        (dataset, method): cell.settings["pooling"].get("cluster_ratio")
        for (dataset, method, _), cell in CELLS.items()
        if method in ("diffpool", "structpool")
    }
    assert {key for key, ratio in ratios.items() if ratio} == {
        ("PROTEINS", "diffpool"), ("PROTEINS", "structpool"),
    }  # fmt: skip
    assert set(ratios.values()) == {None, 0.25}


OWN = [method.name for method in TABLE.rows if method.name.endswith("-own")]


def test_all_peers_of_the_paper_have_their_own_recipe():
    peers = {row for row in TABLE1 if row not in ("HaarPool", "CSM")}
    assert {one.published for one in TABLE.rows if one.name in OWN} == peers


@pytest.mark.parametrize("method", OWN)
def test_recipes_of_peers_are_run_on_all_datasets_with_a_limit_of_steps(method):
    cells = [cell for cell in TABLE.cells if cell.method == method]
    assert {cell.dataset for cell in cells} == set(table1.DATASETS)
    for cell in cells:
        config = network_config(cell)
        graphs = math.ceil(0.8 * table1.NUM_GRAPHS[cell.dataset])
        assert config.epochs * math.ceil(graphs / config.batch_size) <= table1.MAX_STEPS
        network = build_model(config.arch, 3, 2, **(config.pooling or {}))
        # Exact widths: no layer between the readouts and the linear layers of the authors.
        assert (network.adapter is None) == (method != "sortpool-own")


def test_selection_by_name_in_any_case():
    small = TABLE.select(["mutag"], ["GIN"], ["10-fold"])
    assert [cell.key for cell in small.cells] == [("MUTAG", "gin", "10-fold")]
    assert [method.name for method in small.rows] == ["gin"]
    with pytest.raises(HaarPoolError, match=r"a dataset of table1: MUTAG, .*, got ENZYMES"):
        TABLE.select(["ENZYMES"])
    with pytest.raises(HaarPoolError, match="a cell of table1, got none with these"):
        TABLE.select(["MUTAG"], ["csm"], ["10-fold"])
