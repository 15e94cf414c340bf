"""Running chosen parts and layers, and the figure."""

import json

import pytest
import torch
from matplotlib.figure import Figure

from benchmarks.figure import _draw_memory
from benchmarks.measure import BenchOptions
from benchmarks.runner import run_parts
from haarpool.errors import HaarPoolError

CPU = torch.device("cpu")


def quiet(text):
    """Show nothing."""


def test_layers_are_added_to_a_file(tmp_path):
    path = tmp_path / "bench-cpu-quick.json"
    chosen = ("TopKPooling", "HaarPooling, vertex")
    assert run_parts(BenchOptions(CPU, quick=True, layers=chosen), tmp_path, ["timing"], quiet)
    before = json.loads(path.read_text())["lines"]
    assert run_parts(
        BenchOptions(CPU, quick=True, layers=("SortAggregation",)), tmp_path, [], quiet
    )
    after = json.loads(path.read_text())["lines"]
    assert after[: len(before)] == before
    added = [(line["part"], line["case"]["layer"]) for line in after[len(before) :]]
    assert added == [("timing", "SortAggregation")] * 2 + [("memory", "SortAggregation")]


def test_unknown_names(tmp_path):
    options = BenchOptions(CPU, quick=True, layers=("SortPool",))
    with pytest.raises(HaarPoolError, match=r"SortAggregation;.* got SortPool"):
        run_parts(options, tmp_path, [], quiet)
    options = BenchOptions(CPU, quick=True, layers=("SortAggregation",))
    with pytest.raises(HaarPoolError, match="timing, memory for chosen layers, got growth"):
        run_parts(options, tmp_path, ["growth"], quiet)


def test_layers_are_not_added_to_a_file_of_another_machine(tmp_path):
    path, texts = tmp_path / "bench-cpu-quick.json", []
    path.write_text('{"machine": {"cores": 0}, "lines": [{"part": "timing"}]}')
    before = path.read_text()
    with pytest.raises(HaarPoolError, match="measure all layers"):
        run_parts(BenchOptions(CPU, quick=True, layers=("DiffPool",)), tmp_path, [], quiet)
    assert path.read_text() == before
    run_parts(BenchOptions(CPU, quick=True), tmp_path, ["collating"], texts.append)
    assert any("is replaced" in text for text in texts)


def test_the_figure_shows_memory_at_the_largest_size():
    sizes = {("TopKPooling", 200): 2.0, ("TopKPooling", 500): 3.0, ("DiffPool", 200): 9.0}
    cases = [({"layer": name, "nodes": n}, value) for (name, n), value in sizes.items()]
    cases += [({"layer": "DiffPool", "nodes": 500}, None)]
    cases += [({"map": "adjoint", "nodes": 1000, "chain": "pairs"}, 1.5)]
    axes = Figure().add_subplot()
    _draw_memory(axes, [{"case": case, "value": value} for case, value in cases])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["adjoint, pairs", "TopKPooling"]
    assert [bar.get_width() for bar in axes.patches] == [1.5, 3.0]
