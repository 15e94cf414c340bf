"""`haarpool chain`, `methods` and `cache`."""

import json
import os
import signal

import networkx as nx
import numpy as np
import pytest

import haarpool as hp
from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.nn.strings.registry import registered_layers
from helpers.commands import HAARPOOL, run_in_terminal, run_main, run_until_signal
from helpers.files import write_tu
from helpers.graphs import random_graphs


def test_chains_into_the_cache_and_out_of_it(root, cache):
    out, err, _ = run_main("chain", "RANDOM", "--root", root, "--levels", 3, "--cache", cache)
    assert out.startswith("RANDOM, spectral: 30 graphs; 30 chains computed in ")
    assert out.endswith(f"cache: {cache}/chains.sqlite\n")
    assert err == ""
    out = run_main("chain", "RANDOM", "--levels", 3, HAARPOOL_DATA=root, HAARPOOL_CACHE=cache).out
    assert "0 chains computed" in out
    assert "30 from the cache" in out
    graphs = read_graphs("RANDOM", root).batch
    assert hp.precompute(graphs, 3, cache=cache).cached == 30
    out = run_main("chain", root / "RANDOM", "--levels", 3, "--no-cache", "--jobs", 2).out
    assert "30 chains computed" in out
    assert "cache:" not in out


def test_every_argument_reaches_the_chain(root, cache):
    graphs = read_graphs("RANDOM", root)
    run_main(
        *("chain", "RANDOM", "--root", root, "--cache", cache, "--method", "kmeans", "--open"),
        *("--ratio", "0.5,0.4", "--seed", 7, "--features", "--option", "n_init=3"),
    )
    chains = hp.precompute(
        graphs.batch, ratio=[0.5, 0.4], top=None, method="kmeans", seed=7, options={"n_init": 3},
        cache=cache,
        features=np.split(Encoding.fit(graphs, "labels").encode(graphs), graphs.start[1:-1]),
    )  # fmt: skip
    assert chains.cached == 30
    run_main("chain", "RANDOM", "--root", root, "--cache", cache, "--sizes", "9,3", "--symmetrize")
    assert hp.precompute(graphs.batch, sizes=[9, 3], cache=cache).cached == 30
    run_main("chain", "RANDOM", "--root", root, "--cache", cache, "--sizes", "paper", "--levels", 2)
    assert hp.precompute(graphs.batch, 2, sizes="paper", cache=cache).cached == 30


@pytest.mark.parametrize("value", ["False", "false", "0"])
def test_values_of_options_are_python_or_json(root, cache, value):
    run_main(
        *("chain", "RANDOM", "--root", root, "--cache", cache, "--levels", 2),
        *("--method", "metis", "--option", f"recursive={value}"),
    )
    graphs = read_graphs("RANDOM", root).batch
    wanted = 0 if value == "0" else False
    chains = hp.precompute(graphs, 2, method="metis", options={"recursive": wanted}, cache=cache)
    assert chains.cached == 30


def test_statistics(root, cache):
    arguments = ("chain", "RANDOM", "--root", root, "--cache", cache, "--levels", 2, "--stats")
    out = run_main(*arguments, "--method", "spectral,matching").out
    lines = out.splitlines()
    names = ["level", "nodes", "clusters", "edge", "cut", "balance", "singletons", "ms"]
    assert lines[1].split() == names
    assert [line.split()[0] for line in lines[2:4]] == ["0", "1"]
    assert lines[4].startswith("RANDOM, matching:")
    found = json.loads(run_main(*arguments, "--json").out)
    (result,) = found
    assert (result["cached"], result["graphs"]) == (30, 30)
    graphs = read_graphs("RANDOM", root).batch
    steps = [hp.step_quality(hp.build_chain(graph, 2), 0) for graph in graphs]
    assert np.isclose(result["levels"][0]["cut"], np.mean([s.cut for s in steps]))
    assert np.isclose(result["levels"][0]["balance"], np.mean([s.balance for s in steps]))
    assert np.isclose(result["levels"][0]["singletons"], np.mean([s.singletons for s in steps]))
    assert f"{result['levels'][0]['cut']:.1%}" == lines[2].split()[3]


def test_methods_are_listed():
    out = run_main("methods", COLUMNS=100).out
    for name, summary in hp.clusterings().items():
        assert f"{name}  " in out
        assert summary in out
    assert max(map(len, out.splitlines())) <= 100
    narrow = run_main("methods").out
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.split() == out.split()
    assert set(json.loads(run_main("methods", "--json").out)) == set(hp.clusterings())


def test_layers_are_listed_with_their_options():
    out = run_main("methods", "--layers").out
    assert max(map(len, out.splitlines())) <= 80
    words = " ".join(out.split())
    found = json.loads(run_main("methods", "--layers", "--json").out)
    assert set(found) == set(registered_layers())
    for token, layer in registered_layers().items():
        assert f"{token} {layer.kind}: {layer.summary}" in words
    assert found["STRUCT"]["options"] == {"num_clusters": 16, "num_iterations": 5, "hops": None}
    assert "options: num_clusters=16, num_iterations=5, hops=None" in words
    assert found["HP"]["options"] == {}  # the domain is a setting


def test_cache_info_and_clear(root, cache):
    assert run_main("cache", "--info", "--cache", cache).out.startswith("0 chains")
    assert not cache.exists()
    run_main("chain", "RANDOM", "--root", root, "--cache", cache)
    info = json.loads(run_main("cache", "--info", "--json", "--cache", cache).out)
    assert info["chains"] == 30
    assert info["bytes"] == (cache / "chains.sqlite").stat().st_size
    assert run_main("cache", "--clear", HAARPOOL_CACHE=cache).out.startswith("removed 30 chains")
    assert list(cache.iterdir()) == []


def test_lines_fit_the_terminal(root, cache):
    """Graphs that are equal make the line on a dataset longer."""
    folder = write_tu(root, "EQUAL", random_graphs(5) * 30)
    arguments = ("chain", folder, "--stats", "--cache", cache)
    wide = run_main(*arguments, COLUMNS=130).out
    assert wide.startswith(
        "EQUAL, spectral: 150 graphs, 5 different (equal graphs share a chain); 5 chains computed"
    )
    for columns in (80, 73):
        *lines, path = run_main(*arguments, COLUMNS=columns).out.splitlines()
        assert max(map(len, lines)) <= columns
        assert lines[0] == "EQUAL, spectral: 150 graphs, 5 different (equal graphs share a chain);"
        assert lines[1].endswith("5 from the cache")
        assert path == f"cache: {cache}/chains.sqlite"


@pytest.mark.slow
def test_a_bar_on_a_terminal(cache, tmp_path):
    """Progress goes to stderr, and only if that is a terminal."""
    folder = write_tu(tmp_path, "RANDOM", random_graphs(80))
    arguments = ("chain", folder, "--method", "metis", "--cache", cache)
    shown = run_in_terminal(HAARPOOL, *arguments, TQDM_MININTERVAL="0")
    assert "chains:" in shown
    assert "graphs/s" in shown
    assert "0/80" in shown
    assert "32/80" in shown


def test_a_real_dataset(tmp_path):
    root = os.environ.get("HAARPOOL_DATA")
    if not root:
        pytest.skip("HAARPOOL_DATA is not set: no real datasets here")
    out = run_main("chain", "MUTAG", "--levels", 3, "--cache", tmp_path, "--stats", "--json").out
    (result,) = json.loads(out)
    assert result["graphs"] == 188
    assert result["levels"][0]["nodes"] == pytest.approx(17.93, abs=0.005)
    assert len(nx.from_scipy_sparse_array(read_graphs("MUTAG").batch[0])) == 17


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed(number, tmp_path, cache):
    folder = write_tu(tmp_path, "RANDOM", random_graphs(80))
    arguments = ("chain", folder, "--method", "metis", "--levels", 3, "--cache", cache)
    second_chunk = ("haarpool.chains.cache:ChainCache", "write", "", 2)
    err = run_until_signal(number, second_chunk, *arguments).err
    assert "run the command again" in err
    assert "Traceback" not in err
    (again,) = json.loads(run_main(*arguments, "--json").out)
    assert again["cached"] == 32
    assert again["computed"] == 80 - 32
