"""Graphs drawn by target, prediction and error."""

import json
import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from matplotlib import rc_context

import haarpool.report.maps as maps
import haarpool.training.drawn_graphs as drawn_graphs
from haarpool.report import RunRecord, write_report
from haarpool.report.svg import STYLE
from haarpool.training.drawn_graphs import DrawnGraphs
from helpers.commands import run_main
from helpers.errors import error_with

SETTINGS = ("--epochs", 1, "--width", 4, "--quiet", "--out", "run")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def grid(**arrays):
    """Write a grid of 5 × 6 nodes."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6))
    edges = np.array(graph.edges).T
    np.savez("grid.npz", edge_index=np.concatenate([edges, edges[::-1]], 1), **arrays)


def trained():
    run_main("train", "grid.npz", *SETTINGS)
    return RunRecord.read("run")


def page_text():
    page = Path("run/report.html").read_text("utf-8")
    return page, " ".join(re.sub("<[^>]*>", " ", re.sub("(?s)<svg.*?</svg>", "", page)).split())


def test_signals_are_drawn_with_their_predictions(folder):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(40, 30))
    y[:, 3], y[0] = np.nan, np.nan
    pos = rng.random((30, 2))
    grid(x=rng.normal(size=(40, 30, 2)), y=y, pos=pos)
    run = trained()
    drawn, test = run.drawn, json.loads((folder / "run/split.json").read_text())[0]["test"]
    assert set(drawn.numbers) <= set(test)
    assert drawn.start.tolist() == [0, 30, 60, 90]
    assert drawn.num_edges.tolist() == [49] * 3
    np.testing.assert_allclose(drawn.target[:, 0], y[drawn.numbers].ravel(), rtol=1e-5)
    np.testing.assert_allclose(drawn.positions, np.tile(pos, (3, 1)), rtol=1e-5)
    assert drawn.is_test.all()
    # The same predictions as in the table.
    rows = [line.split(",") for line in (folder / "run/test.csv").read_text().splitlines()[1:]]
    table = {(int(g), int(n)): float(p) for _, g, n, _, p in rows}
    for i, g in enumerate(drawn.numbers):
        for n in set(range(30)) - {3}:
            assert drawn.prediction[30 * i + n, 0] == pytest.approx(table[g, n], rel=1e-4)
    page, text = page_text()
    assert run.parts_of == "signals"
    assert "on the test signals" in text
    assert "training signals validation signals test signals" in text
    assert f"Signal {drawn.numbers[0]} target prediction error" in text
    assert 'aria-label="Signal' in page
    assert "Chain of the graph" in text


def test_nodes_of_one_graph_are_all_drawn(folder):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    grid(x=np.eye(3)[y] + rng.normal(size=(30, 3)), y=y)
    run = trained()
    test = json.loads((folder / "run/split.json").read_text())[0]["test"]
    assert np.flatnonzero(run.drawn.is_test).tolist() == test
    assert run.drawn.target.tolist() == y.tolist()
    assert set(run.drawn.prediction) <= {0, 1, 2}
    page, text = page_text()
    assert "on the test nodes" in text
    assert "training nodes validation nodes test nodes" in text
    assert "The graph target prediction error 0 1 2 All nodes; errors are those of" in text
    assert [name for name, _ in maps.legend(run)] == ["0", "1", "2"]
    assert len({colour for _, colour in maps.legend(run)}) == 3
    assert page.count('aria-label="The graph, ') == 3


def test_the_first_three_of_several_targets(folder):
    rng = np.random.default_rng(0)
    names = np.array([f"target {t}" for t in range(4)])
    grid(x=rng.normal(size=(40, 30, 2)), y=rng.normal(size=(40, 30, 4)), target_names=names)
    run = trained()
    assert len(run.drawn.numbers) == 1
    with rc_context(STYLE):
        drawn = maps.draw_maps(run)
    assert [one.name.partition(": ")[2] for one in drawn] == names[:3].tolist()
    assert "The first 3 of 4 targets are drawn." in maps.caption(run)


def test_too_large_graphs_are_not_drawn(folder, monkeypatch):
    grid(x=np.ones((30, 1)), y=np.arange(30) / 7)
    monkeypatch.setattr(drawn_graphs, "MAX_EDGES", 40)
    run = trained()
    assert run.drawn.edges.shape == (2, 0)
    monkeypatch.setattr(maps, "MAX_EDGES", 40)
    assert "Edges are left out" in maps.caption(run)
    monkeypatch.setattr(drawn_graphs, "MAX_NODES", 20)
    run_main("train", "grid.npz", *SETTINGS[:-1], "other")
    assert not (folder / "other/drawn_graphs.npz").exists()
    page = (folder / "other/report.html").read_text("utf-8")
    assert "No graph is drawn" in page
    assert 'aria-label="The graph, ' not in page


def test_a_damaged_file_is_an_error(folder):
    grid(x=np.ones((30, 1)), y=np.arange(30) / 7)
    run = trained()
    path = folder / "run/drawn_graphs.npz"
    for damaged in (
        replace(run.drawn, positions=run.drawn.positions[:5]),
        replace(run.drawn, edges=run.drawn.edges + 30),
        replace(run.drawn, start=run.drawn.start[:1]),
    ):
        damaged.save(path)
        with error_with("graphs that the report draws", "damaged drawn_graphs.npz", "delete"):
            write_report("run")
    path.write_bytes(b"")
    with error_with("graphs that the report draws", "delete the file"):
        write_report("run")
    path.unlink()
    write_report("run")
    assert "No graph is drawn" in page_text()[1]


@pytest.mark.parametrize("classes", [False, True])
def test_ten_thousand_nodes_are_a_small_page(classes):
    rng, n = np.random.default_rng(0), 10_000
    target = rng.integers(9, size=n) if classes else rng.normal(size=(n, 1))
    prediction = np.roll(target, 1, axis=0)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)])
    drawn = DrawnGraphs(
        np.array([0]), np.array([0, n]), edges, rng.random((n, 2)), target, prediction,
        np.ones(n, bool), np.array([n - 1]),
    )  # fmt: skip
    data = {"classes": [str(c) for c in range(9)], "target_names": ["y"]}
    data["task"] = "node_classification" if classes else "node_regression"
    result = {"parts_of": "nodes", "repeats": 1}
    run = RunRecord({"data": data}, [], result, target, prediction, drawn=drawn)
    with rc_context(STYLE):
        (one,) = maps.draw_maps(run)
    assert all("<image" in svg and svg.count("<use") < 50 for svg in one.panels)
    assert sum(map(len, one.panels)) < 1_500_000
    if classes:
        assert maps.legend(run)[-1][0] == "3 other classes"


def directed_grid():
    """Write a grid whose edges go in one direction, half of them to a smaller number."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6))
    edges = np.array(graph.edges).T
    edges[:, ::2] = edges[::-1, ::2]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 30, 2))
    np.savez("grid.npz", edge_index=edges, x=x, y=x[..., 0])


@pytest.mark.parametrize("options", [("--symmetrize",), ("--arch", "haarunet:levels=0")])
def test_one_way_edges_are_drawn(folder, options):
    directed_grid()
    run_main("train", "grid.npz", *SETTINGS, *options)
    drawn = RunRecord.read("run").drawn
    assert drawn.num_edges.tolist() == [49] * 3
    assert np.isfinite(drawn.positions).all()
    assert (drawn.edges[0] < drawn.edges[1]).all()


def test_a_picture_cannot_lose_a_run(folder, monkeypatch):
    def fail(run):
        raise RuntimeError("no picture")

    monkeypatch.setattr(DrawnGraphs, "of_run", fail)
    grid(x=np.ones((30, 1)), y=np.arange(30) / 7)
    with pytest.raises(RuntimeError, match="no picture"):
        run_main("train", "grid.npz", *SETTINGS)
    write_report("run")
    assert "No graph is drawn" in page_text()[1]
