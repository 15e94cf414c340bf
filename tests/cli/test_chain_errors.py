"""Bad input to `chain` and `plot`: exit code 2 and one line."""

import pytest

from haarpool.datasets import read_graphs
from helpers.commands import run_main

BAD = {
    "no such dataset": (["chain", "RANDON"], "did you mean RANDOM?"),
    "unknown method": (["chain", "RANDOM", "--method", "magic"], '--method "'),
    "one of two methods": (["chain", "RANDOM", "--method", "metis,magic"], "'magic'"),
    "sizes that grow": (["chain", "RANDOM", "--sizes", "4,8"], "never grow"),
    "sizes as text": (["chain", "RANDOM", "--sizes", "few"], "--sizes as numbers"),
    "ratio as text": (["chain", "RANDOM", "--ratio", "half"], "--ratio as numbers"),
    "ratio of two": (["chain", "RANDOM", "--ratio", "2"], "ratio in (0, 1)"),
    "no levels": (["chain", "RANDOM", "--levels", "0"], "--levels in 1..1000"),
    "option without value": (["chain", "RANDOM", "--option", "eps"], "NAME=VALUE"),
    "unknown option": (["chain", "RANDOM", "--option", "eps=1"], "--option for method 'spectral'"),
    "option of wrong kind": (
        ["chain", "RANDOM", "--method", "louvain", "--option", "resolution=-1"], "resolution",
    ),
    "nobody at the address": (
        ["chain", "RANDOM", "--backend", "dask", "--address", "tcp://127.0.0.1:9"],
        "a Dask scheduler at tcp://127.0.0.1:9",
    ),
    "no such graph": (["plot", "chain", "RANDOM", "--graph", "30"], "0..29"),
    "no such kind of figure": (["plot", "chain", "RANDOM", "--out", "x.xyz"], ".png, .pdf or .svg"),
    "no jobs": (["chain", "RANDOM", "--jobs", "0"], "--jobs >= 1"),
    "an argument as an option": (
        ["chain", "RANDOM", "--option", "method=metis"], "an option of the clustering method",
    ),
    "an option of the second method": (
        ["chain", "RANDOM", "--method", "dbscan,optics", "--option", "eps=1"], "method 'optics'",
    ),
    "a misspelt method": (
        ["chain", "RANDOM", "--method", "matchin"], "did you mean --method matching?",
    ),
    "an option that is refused": (
        ["chain", "RANDOM", "--method", "kmeans", "--option", "n_init=abc"],
        "n_init of --option >= 1, got 'abc'; pass for example --option n_init=10",
    ),
    "address of no cluster": (["chain", "RANDOM", "--address", "tcp://x:1"], "--backend"),
    "endless levels": (["chain", "RANDOM", "--levels", "99999999999"], "--levels in 1..1000"),
    "a folder that is no dataset": (["chain", "EMPTY"], "EMPTY without NAME_A.txt"),
    "out into no folder": (
        ["plot", "chain", "RANDOM", "--out", "/nowhere/x.png"], "/nowhere/x.png",
    ),
    "seed": (["chain", "RANDOM", "--seed", "-1"], "seed in"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_code_2(name, root, cache, monkeypatch):
    monkeypatch.setattr("haarpool.chains.workers.CONNECT_SECONDS", 1)
    arguments, part = BAD[name]
    out, err, _ = run_main(*arguments, code=2, HAARPOOL_DATA=root, HAARPOOL_CACHE=cache)
    assert out == ""
    assert err.startswith("haarpool: ")
    assert part in err
    assert err.count("\n") == 1


def test_damaged_files_name_the_line(root):
    raw = root / "RANDOM" / "raw"
    edges = raw / "RANDOM_A.txt"
    whole = edges.read_text()
    cases = {
        "\n".join(whole.splitlines()[:50]) + "\n12,": "line 51",
        whole + "1, x\n": "1, x",
        whole + "1, 99999\n": "1, 99999",
        whole + f"1, {read_graphs('RANDOM', root).batch.start[-1]}\n": "in one graph",
    }
    for text, part in cases.items():
        edges.write_text(text)
        err = run_main("chain", "RANDOM", "--root", root, code=2).err
        assert part in err
        assert str(edges) in err
    edges.write_text(whole)
    (raw / "RANDOM_node_labels.txt").write_text("1\n2\n")
    assert "2 lines" in run_main("chain", "RANDOM", "--root", root, code=2).err
    (raw / "RANDOM_node_labels.txt").unlink()
    assert "leave --features out" in run_main(
        "chain", "RANDOM", "--root", root, "--features", "--method", "kmeans", code=2
    ).err  # fmt: skip
    (raw / "RANDOM_graph_indicator.txt").write_text("2\n1\n")
    assert "two nodes of 1..2" in run_main("chain", "RANDOM", "--root", root, code=2).err
    edges.unlink()
    assert "TU layout" in run_main("chain", root / "RANDOM", code=2, HAARPOOL_DATA="").err


def test_no_data_folder_at_all(tmp_path):
    nobody = {"HAARPOOL_TU_URL": "http://127.0.0.1:9", "HAARPOOL_CACHE": tmp_path / "cache"}
    err = run_main("chain", "NCI1", code=2, HAARPOOL_DATA="", **nobody).err
    assert "--root DIR or set HAARPOOL_DATA" in err
    assert err.count("\n") == 1
    err = run_main("chain", "NCI1", code=2, HAARPOOL_DATA=tmp_path / "nowhere", **nobody).err
    assert err.count("\n") == 1
    err = run_main("chain", "XYZ", code=2, HAARPOOL_DATA="").err
    assert "--root DIR or set HAARPOOL_DATA" in err


def test_cache_errors_are_one_line(root, tmp_path):
    (tmp_path / "file").write_text("no folder")
    out, err, _ = run_main("chain", "RANDOM", "--root", root, "--cache", tmp_path / "file")
    assert "30 chains computed" in out
    assert "cache:" not in out  # nothing is in it
    assert err.startswith("haarpool: the cache ")
    assert err.endswith(" cannot be used (File exists); continuing without it\n")
    assert err.count("\n") == 1
