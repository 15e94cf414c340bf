"""What the parts measure: the layers, the large chains, the growth."""

import os
from pathlib import Path

import pytest
import torch

from benchmarks.layers import NAMES, OWN, lacks_memory, layers, random_minibatch
from benchmarks.measure import BenchOptions, Times
from benchmarks.parts import eager, growth, memory, timing, tree_order
from benchmarks.parts.transforms import plan

CPU = BenchOptions(torch.device("cpu"), quick=True)


@pytest.mark.filterwarnings("ignore:Sparse")  # PyG, in ASAPooling
def test_all_layers_keep_about_half_of_the_nodes():
    batch = random_minibatch(20, CPU)
    made = layers(batch)
    assert tuple(made) == NAMES
    for name, layer in made.items():
        assert 0.4 <= len(layer.forward()) / len(batch.x) <= 0.8, name
        layer.with_backward()()
    assert tuple(layers(batch, ["DiffPool"])) == ("DiffPool",)


def test_sort_aggregation_keeps_the_half_with_the_largest_last_column():
    batch = random_minibatch(20, CPU)
    pooled = layers(batch)["SortAggregation"].forward()
    for number, rows in enumerate(pooled.view(batch.num_graphs, 10, -1)):
        x = batch.x[batch.batch == number]
        assert torch.equal(rows, x[x[:, -1].argsort(descending=True)[:10]])


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("clusters of 4", (100, 25, 7, 2, 1)),
        ("shuffled", (100, 25, 7, 2, 1)),
        ("pairs", (100, 50, 25, 13, 7, 4, 2, 1)),
        ("one cluster", (100, 1)),
    ],
)
def test_large_chains(kind, sizes):
    assert plan(100, kind, CPU.device).sizes == sizes


def test_a_layer_that_takes_too_long_is_left_out_at_larger_sizes(monkeypatch):
    def measure(actions, options, once):
        slow = timing.TOO_SLOW_MS + 1
        return {name: Times((slow if name == "EdgePooling" else 1.0,)) for name in actions}

    monkeypatch.setattr(timing, "measure", measure)
    monkeypatch.setattr(timing, "node_counts", lambda options: (10, 12))
    lines = [line for line in timing.run(CPU) if line.case["layer"] == "EdgePooling"]
    assert [bool(line.reason) for line in lines] == [False, False, True, True]
    assert all(line.passed for line in lines)


def test_chosen_layers_are_timed_beside_the_reference(monkeypatch):
    def measure(actions, options, once):
        return {name: Times((6.0 if name == timing.REFERENCE else 2.0,)) for name in actions}

    monkeypatch.setattr(timing, "measure", measure)
    lines = list(timing.run(BenchOptions(CPU.device, quick=True, layers=("SortAggregation",))))
    assert {line.case["layer"] for line in lines} == {"SortAggregation"}
    assert [line.value for line in lines] == [3.0, 3.0]  # forward, forward + backward


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
def test_memory_is_measured_at_all_sizes(monkeypatch):
    monkeypatch.setattr(memory, "node_counts", lambda options: (10, 12))
    monkeypatch.setattr(memory, "peak_memory", lambda action, options: 1000)
    lines = list(memory.run(CPU))
    cases = [(line.case["layer"], line.case["nodes"]) for line in lines if "layer" in line.case]
    assert cases == [(name, nodes) for nodes in (10, 12) for name in NAMES]
    assert any("map" in line.case for line in lines)
    chosen = memory.run(BenchOptions(CPU.device, quick=True, layers=("DiffPool",)))
    assert [line.case["layer"] for line in chosen] == ["DiffPool"] * 2


def test_a_layer_that_needs_too_much_memory_is_left_out(monkeypatch):
    assert lacks_memory("ASAPooling", 20, CPU) == ""
    monkeypatch.setattr("benchmarks.layers.free_memory", lambda options: 5e9)
    full = BenchOptions(CPU.device)
    assert lacks_memory("ASAPooling", 500, full) == "left out: needs about 5 GB"
    assert lacks_memory("TopKPooling", 1500, full) == ""


def test_limits_hold_for_own_layers_on_a_gpu_only():
    gpu, times = BenchOptions(torch.device("cuda")), Times((1.0,))
    for name in (*OWN, "SAGPooling"):
        line = timing._compare(name, "forward", 200, times, Times((9.0,)), gpu)
        assert line.passed is (name not in OWN)
        line = timing._compare(name, "forward", 200, times, Times((9.0,)), CPU)
        assert line.passed


def test_growth_is_the_slope_of_log_time(monkeypatch):
    def measure(actions, options):
        return {name: Times((float(name.split()[1]) ** 1.5,)) for name in actions}

    monkeypatch.setattr(growth, "measure", measure)
    *_, line = growth.run(CPU)
    assert line.value == pytest.approx(1.5)


def test_layers_called_from_python_beside_gcnconv(monkeypatch):
    def measure(actions, options):
        for action in actions.values():
            action()
        return {name: Times((0.8 if name == eager.REFERENCE else 0.4,)) for name in actions}

    monkeypatch.setattr(eager, "measure", measure)
    lines = list(eager.lines(CPU))
    assert len(lines) == 14
    assert {line.value for line in lines} == {1.0, 2.0}
    line = eager.microseconds("some layer", 0.4)
    assert (line.value, line.passed) == (400.0, False)
    assert eager.microseconds("some layer", 0.3).passed


def test_layers_called_from_python_in_a_process_of_their_own():
    before = dict(os.environ)
    assert len(list(eager.run(CPU))) == 14
    assert dict(os.environ) == before


def test_a_new_batch_each_time_gives_the_same(monkeypatch):
    made = eager.make_layers(eager.minibatch(20, CPU))
    for name in eager.OWN:
        one, two = (made[key].forward() for key in (name, f"{name}, new batch"))
        assert torch.equal(one, two)


def test_a_grid_in_three_orders():
    names, distances = [], []
    for name, chain, edges in tree_order.orders(16, 4):
        assert chain.sizes[0] == 256
        assert edges.shape == (2, 2 * 2 * 16 * 15)
        assert chain.adjacency(0)[edges[0], edges[1]].sum() == edges.shape[1]
        names.append(name)
        distances.append(abs(edges[0] - edges[1]).mean())
    assert names == ["random order", "row by row", "tree order"]
    assert distances[0] > 2 * max(distances[1:])
    lines = list(tree_order.run(CPU))
    assert len(lines) == 3 * 3 + 3
    assert not any(line.reason for line in lines)
