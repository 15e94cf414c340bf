"""The shell command, run as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time

import networkx as nx
import numpy as np
import pytest

import haarpool as hp
from haarpool import cli
from haarpool.datasets import read_graphs
from haarpool.datasets.encoding import Encoding
from helpers.commands import HAARPOOL, cached_chains, on_a_terminal, run
from helpers.files import write_tu
from helpers.graphs import random_graphs


@pytest.fixture
def data(tmp_path):
    """A folder of datasets, with one in it."""
    folder = write_tu(tmp_path / "data", "RANDOM", random_graphs(30))
    size = len((folder / "RANDOM_graph_indicator.txt").read_text().splitlines())
    labels = "\n".join(str(i % 3) for i in range(size))
    (folder / "RANDOM_node_labels.txt").write_text(labels)
    (tmp_path / "data" / "EMPTY").mkdir()
    return tmp_path / "data"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def test_help_fits_a_screen_and_loads_nothing_heavy():
    out, _ = run("--help")
    assert len(out.splitlines()) <= 24
    assert "haarpool train MUTAG" in out
    assert max(map(len, out.splitlines())) <= 80
    for command in (
        ["chain"],
        ["plot", "chain"],
        ["cache"],
        ["methods"],
        ["plot"],
        ["train"],
        ["predict"],
        ["info"],
        ["completion"],
    ):
        out, _ = run(*command, "--help")
        assert "example:\n  haarpool " in out
    code = (
        "import sys, contextlib\n"
        "from haarpool.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['train', '--help'])\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'rdkit', 'torch', 'torch_geometric', 'joblib'}\n"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


def test_version_and_no_command():
    assert run("--version")[0] == f"haarpool {hp.__version__}\n"
    assert "usage: haarpool" in run(code=2)[0]
    done = subprocess.run([sys.executable, "-m", "haarpool", "--version"], capture_output=True)
    assert done.stdout.startswith(b"haarpool ")


def test_chains_into_the_cache_and_out_of_it(data, cache):
    out, err = run("chain", "RANDOM", "--root", data, "--levels", 3, "--cache", cache)
    assert out.startswith("RANDOM, spectral: 30 graphs; 30 chains computed in ")
    assert out.endswith(f"cache: {cache}/chains.sqlite\n")
    assert err == ""
    out, _ = run("chain", "RANDOM", "--levels", 3, HAARPOOL_DATA=data, HAARPOOL_CACHE=cache)
    assert "0 chains computed" in out
    assert "30 from the cache" in out
    graphs = read_graphs("RANDOM", data).batch
    assert hp.precompute(graphs, 3, cache=cache).cached == 30
    out, _ = run("chain", data / "RANDOM", "--levels", 3, "--no-cache", "--jobs", 2)
    assert "30 chains computed" in out
    assert "cache:" not in out


def test_every_argument_reaches_the_chain(data, cache):
    graphs = read_graphs("RANDOM", data)
    run(
        *("chain", "RANDOM", "--root", data, "--cache", cache, "--method", "kmeans", "--open"),
        *("--ratio", "0.5,0.4", "--seed", 7, "--features", "--option", "n_init=3"),
    )
    chains = hp.precompute(
        graphs.batch, ratio=[0.5, 0.4], top=None, method="kmeans", seed=7, n_init=3, cache=cache,
        features=np.split(Encoding.fit(graphs).encode(graphs), graphs.start[1:-1]),
    )  # fmt: skip
    assert chains.cached == 30
    run("chain", "RANDOM", "--root", data, "--cache", cache, "--sizes", "9,3", "--symmetrize")
    assert hp.precompute(graphs.batch, sizes=[9, 3], cache=cache).cached == 30
    run("chain", "RANDOM", "--root", data, "--cache", cache, "--sizes", "paper", "--levels", 2)
    assert hp.precompute(graphs.batch, 2, sizes="paper", cache=cache).cached == 30


@pytest.mark.parametrize("value", ["False", "false", "0"])
def test_values_of_options_are_python_or_json(data, cache, value):
    run(
        *("chain", "RANDOM", "--root", data, "--cache", cache, "--levels", 2),
        *("--method", "metis", "--option", f"recursive={value}"),
    )
    graphs = read_graphs("RANDOM", data).batch
    wanted = 0 if value == "0" else False
    chains = hp.precompute(graphs, 2, method="metis", recursive=wanted, cache=cache)
    assert chains.cached == 30


def test_statistics(data, cache):
    arguments = ("chain", "RANDOM", "--root", data, "--cache", cache, "--levels", 2, "--stats")
    out, _ = run(*arguments, "--method", "spectral,matching")
    lines = out.splitlines()
    names = ["level", "nodes", "clusters", "edge", "cut", "balance", "singletons", "ms"]
    assert lines[1].split() == names
    assert [line.split()[0] for line in lines[2:4]] == ["0", "1"]
    assert lines[4].startswith("RANDOM, matching:")
    found = json.loads(run(*arguments, "--json")[0])
    (result,) = found
    assert (result["cached"], result["graphs"]) == (30, 30)
    graphs = read_graphs("RANDOM", data).batch
    steps = [hp.step_quality(hp.build_chain(graph, 2), 0) for graph in graphs]
    assert np.isclose(result["levels"][0]["cut"], np.mean([s.cut for s in steps]))
    assert np.isclose(result["levels"][0]["balance"], np.mean([s.balance for s in steps]))
    assert np.isclose(result["levels"][0]["singletons"], np.mean([s.singletons for s in steps]))
    assert f"{result['levels'][0]['cut']:.1%}" == lines[2].split()[3]


def test_methods_are_listed():
    out, _ = run("methods")
    for name, summary in hp.clusterings().items():
        assert f"{name}  " in out
        assert summary in out
    assert max(map(len, out.splitlines())) <= 100
    assert set(json.loads(run("methods", "--json")[0])) == set(hp.clusterings())


def test_cache_info_and_clear(data, cache):
    assert run("cache", "--info", "--cache", cache)[0].startswith("0 chains")
    assert not cache.exists()
    run("chain", "RANDOM", "--root", data, "--cache", cache)
    info = json.loads(run("cache", "--info", "--json", "--cache", cache)[0])
    assert info["chains"] == 30
    assert info["bytes"] == (cache / "chains.sqlite").stat().st_size
    assert run("cache", "--clear", HAARPOOL_CACHE=cache)[0].startswith("removed 30 chains")
    assert list(cache.iterdir()) == []


def test_plot(data, tmp_path):
    for name in ("one.png", "two.pdf", "three.svg"):
        out, _ = run(
            *("plot", "chain", "RANDOM", "--root", data, "--graph", 3, "--levels", 3),
            *("--method", "spectral,metis,dbscan", "--out", tmp_path / name),
        )
        assert out == f"{tmp_path / name}\n"
        assert (tmp_path / name).stat().st_size > 5000


def test_a_bar_on_a_terminal(cache, tmp_path):
    """Progress goes to the error stream, and only where somebody sees it."""
    folder = write_tu(tmp_path, "SLOW", random_graphs(80, size=40))
    shown = on_a_terminal(
        *("chain", folder, "--method", "spectral-kmeans", "--cache", cache, "--levels", "3")
    )
    assert "chains:" in shown
    assert "graphs/s" in shown
    assert "0/80" in shown
    assert "32/80" in shown


BAD = {
    "no such dataset": (["chain", "RANDON"], "did you mean RANDOM?"),
    "unknown method": (["chain", "RANDOM", "--method", "magic"], "'spectral', 'spectral-kmeans']"),
    "one of two methods": (["chain", "RANDOM", "--method", "metis,magic"], "'magic'"),
    "sizes that grow": (["chain", "RANDOM", "--sizes", "4,8"], "never grow"),
    "sizes as text": (["chain", "RANDOM", "--sizes", "few"], "numbers for --sizes"),
    "ratio as text": (["chain", "RANDOM", "--ratio", "half"], "numbers for --ratio"),
    "ratio of two": (["chain", "RANDOM", "--ratio", "2"], "a ratio in (0, 1)"),
    "no levels": (["chain", "RANDOM", "--levels", "0"], "num_levels >= 1"),
    "option without value": (["chain", "RANDOM", "--option", "eps"], "NAME=VALUE"),
    "unknown option": (["chain", "RANDOM", "--option", "eps=1"], "options of method 'spectral'"),
    "option of wrong kind": (
        ["chain", "RANDOM", "--method", "louvain", "--option", "resolution=-1"], "resolution",
    ),
    "nobody at the address": (
        ["chain", "RANDOM", "--backend", "dask", "--address", "tcp://127.0.0.1:9"],
        "a Dask scheduler at tcp://127.0.0.1:9",
    ),
    "no such graph": (["plot", "chain", "RANDOM", "--graph", "30"], "0..29"),
    "no such kind of figure": (["plot", "chain", "RANDOM", "--out", "x.xyz"], ".png, .pdf or .svg"),
    "no jobs": (["chain", "RANDOM", "--jobs", "0"], "n_jobs >= 1"),
    "an argument as an option": (
        ["chain", "RANDOM", "--option", "method=metis"], "options of method 'spectral'",
    ),
    "an option of the second method": (
        ["chain", "RANDOM", "--method", "dbscan,optics", "--option", "eps=1"], "method 'optics'",
    ),
    "an option that is refused": (
        ["chain", "RANDOM", "--method", "kmeans", "--option", "n_init=abc"], "'n_init': 'abc'",
    ),
    "address of no cluster": (["chain", "RANDOM", "--address", "tcp://x:1"], "--backend"),
    "endless levels": (["chain", "RANDOM", "--levels", "99999999999"], "num_levels"),
    "a folder that is no dataset": (["chain", "EMPTY"], "EMPTY without NAME_A.txt"),
    "out into no folder": (
        ["plot", "chain", "RANDOM", "--out", "/nowhere/x.png"], "/nowhere/x.png",
    ),
    "seed": (["chain", "RANDOM", "--seed", "-1"], "a seed in"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_code_2(name, data, cache):
    arguments, part = BAD[name]
    out, err = run(*arguments, code=2, HAARPOOL_DATA=data, HAARPOOL_CACHE=cache)
    assert out == ""
    assert err.startswith("haarpool: ")
    assert part in err
    assert err.count("\n") == 1


def test_arguments_that_argparse_refuses(data):
    for arguments in (["chain"], ["chain", "X", "--jobs", "two"], ["cache"], ["plot"], ["fly"]):
        _, err = run(*arguments, code=2)
        assert "usage: haarpool" in err


def test_debug_shows_where(data):
    _, err = run("chain", "NOTHING", "--debug", code=1, HAARPOOL_DATA=data)
    assert "Traceback" in err
    assert "HaarPoolError" in err


def test_trouble_with_files_is_one_line(cache, monkeypatch, capsys):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "chains.sqlite")

    monkeypatch.setattr("haarpool.chains.cache.ChainCache.info", refuse)
    assert cli.main(["cache", "--info", "--cache", str(cache)]) == 2
    assert capsys.readouterr().err == ("haarpool: [Errno 13] Permission denied: 'chains.sqlite'\n")


def test_damaged_files_name_the_line(data):
    raw = data / "RANDOM" / "raw"
    edges = raw / "RANDOM_A.txt"
    whole = edges.read_text()
    cases = {
        "\n".join(whole.splitlines()[:50]) + "\n12,": "line 51",
        whole + "1, x\n": "1, x",
        whole + "1, 99999\n": "1, 99999",
        whole + f"1, {read_graphs('RANDOM', data).batch.start[-1]}\n": "in one graph",
    }
    for text, part in cases.items():
        edges.write_text(text)
        _, err = run("chain", "RANDOM", "--root", data, code=2)
        assert part in err
        assert str(edges) in err
    edges.write_text(whole)
    (raw / "RANDOM_node_labels.txt").write_text("1\n2\n")
    assert "2 lines" in run("chain", "RANDOM", "--root", data, code=2)[1]
    (raw / "RANDOM_node_labels.txt").unlink()
    assert "leave --features out" in run(
        "chain", "RANDOM", "--root", data, "--features", "--method", "kmeans", code=2
    )[1]  # fmt: skip
    (raw / "RANDOM_graph_indicator.txt").write_text("2\n1\n")
    assert "never fall" in run("chain", "RANDOM", "--root", data, code=2)[1]
    edges.unlink()
    assert "TU layout" in run("chain", data / "RANDOM", code=2, HAARPOOL_DATA="")[1]


def test_no_data_folder_at_all(tmp_path):
    nobody = {"HAARPOOL_TU_URL": "http://127.0.0.1:9", "HAARPOOL_CACHE": tmp_path / "cache"}
    _, err = run("chain", "NCI1", code=2, HAARPOOL_DATA="", **nobody)
    assert "--root DIR or set HAARPOOL_DATA" in err
    assert err.count("\n") == 1
    _, err = run("chain", "NCI1", code=2, HAARPOOL_DATA=tmp_path / "nowhere", **nobody)
    assert err.count("\n") == 1
    _, err = run("chain", "XYZ", code=2, HAARPOOL_DATA="")
    assert "--root DIR or set HAARPOOL_DATA" in err


def test_trouble_with_the_cache_is_said_in_one_line(data, tmp_path):
    (tmp_path / "file").write_text("no folder")
    out, err = run("chain", "RANDOM", "--root", data, "--cache", tmp_path / "file")
    assert "30 chains computed" in out
    assert err.startswith("haarpool: the cache ")
    assert err.count("\n") == 1


def test_interrupted_and_resumed(tmp_path, cache):
    folder = write_tu(tmp_path, "SLOW", random_graphs(150, size=40))
    arguments = [HAARPOOL, "chain", folder, "--method", "spectral-kmeans", "--levels", "3"]
    process = subprocess.Popen(
        [*arguments, "--cache", cache], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while cached_chains(cache) == 0:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run it again to go on" in err
    assert "Traceback" not in err
    again = json.loads(run(*arguments[1:], "--cache", cache, "--json")[0])[0]
    assert again["cached"] > 0
    assert again["cached"] + again["computed"] == 150


def test_a_closed_pipe_is_no_error():
    shell = f"{HAARPOOL} methods | head -1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("dbscan")
    assert done.stderr == ""


def test_main_can_be_called(capsys, data, cache):
    code = cli.main(["chain", "RANDOM", "--root", str(data), "--cache", str(cache), "--quiet"])
    assert code == 0
    assert "30 graphs" in capsys.readouterr().out


def test_a_real_dataset(tmp_path):
    root = os.environ.get("HAARPOOL_DATA")
    if not root:
        pytest.skip("HAARPOOL_DATA is not set: no real datasets here")
    out, _ = run("chain", "MUTAG", "--levels", 3, "--cache", tmp_path, "--stats", "--json")
    (result,) = json.loads(out)
    assert result["graphs"] == 188
    assert result["levels"][0]["nodes"] == pytest.approx(17.93, abs=0.005)
    assert len(nx.from_scipy_sparse_array(read_graphs("MUTAG").batch[0])) == 17


def test_info_of_the_installation(data, cache):
    out, _ = run("info", HAARPOOL_DATA=data, HAARPOOL_CACHE=cache)
    for part in (f"haarpool         {hp.__version__}", "cpu, ", str(cache), f"RANDOM: {data}"):
        assert part in out
    assert max(map(len, out.splitlines())) <= 100 + len(str(data))
    found = json.loads(run("info", "--json", HAARPOOL_DATA=data)[0])
    assert found["datasets"]["RANDOM"] == str(data / "RANDOM")
    assert "COLLAB" in found["to download"]


def test_info_of_a_dataset(data):
    out, _ = run("info", "RANDOM", "--root", data)
    graphs = read_graphs("RANDOM", data)
    assert f"nodes                       mean: {graphs.sizes.mean():.2f}, min: " in out
    assert json.loads(run("info", "RANDOM", "--root", data, "--json")[0])["graphs"] == 30


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell):
    out, _ = run("completion", shell)
    assert "predict" in out
    assert "--class-weights" in out
    if shell == "bash":
        asked = 'COMP_WORDS=(haarpool tr); COMP_CWORD=1; _shtab_haarpool; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", out + asked], capture_output=True, text=True)
        assert done.stdout.split() == ["train"], done.stderr
