"""The arithmetic of benchmarks/: ranks of candidates, halves of validation parts, intervals."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from benchmarks import presets
from benchmarks.common import write_tables
from benchmarks.default_scores import Plan, difference, paired_difference, unpaired_difference
from benchmarks.fingerprint import NETWORKS, layers, transforms
from benchmarks.measure import BenchOptions
from benchmarks.parts import denoising, host_time
from benchmarks.presets import score_of
from benchmarks.results import Benchmark
from benchmarks.speed_page import layer_table, three_digits, training_table
from haarpool.haar import operators
from haarpool.tasks import Names, find_task

CPU = BenchOptions(torch.device("cpu"), quick=True)


def fake_trainer():
    """Return a trainer whose task has two classes; its outputs are scores of the second."""

    def evaluate(output, graphs):
        right = (output.argmax(1).numpy() == trainer.targets[graphs]).mean()
        return float(-output.abs().sum()), float(right)

    task = find_task("classification")
    trainer = SimpleNamespace(
        split=SimpleNamespace(validation=np.arange(4)),
        targets=np.array([0, 0, 1, 1]),
        task=task,
        predictions=lambda output: task.predictions(output, None, Names(("a", "b"))),
        evaluate=evaluate,
    )
    return trainer


def outputs_of(*epochs):
    """Return logits that predict the given classes."""
    return [2.0 * torch.eye(2)[list(classes)] for classes in epochs]


def test_an_epoch_is_never_scored_on_the_graphs_that_chose_it():
    # The halves are graphs 0, 2 and graphs 1, 3. Epoch 0 is right on the first, epoch 1 on the
    # second half: each half chooses the epoch that is wrong on the other.
    outputs = outputs_of([0, 1, 1, 0], [1, 0, 0, 1])
    assert score_of(fake_trainer(), outputs, "score", "accuracy") == 0
    assert score_of(fake_trainer(), outputs, "last", "accuracy") == 0.5
    always_right = outputs_of([1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0])
    assert score_of(fake_trainer(), always_right, "score", "accuracy") == 1
    assert score_of(fake_trainer(), always_right, "last", "accuracy") == 0


def test_the_lowest_loss_chooses_the_epoch():
    outputs = outputs_of([0, 0, 1, 1], [1, 1, 0, 0])
    outputs[0] *= 3  # a lower loss of the fake trainer
    assert score_of(fake_trainer(), outputs, "loss", "accuracy") == 1


def test_ranks_are_means_over_datasets_and_need_all_trainings(monkeypatch):
    monkeypatch.setattr(presets, "DATASETS", {"A": "accuracy", "E": "rmse"})
    monkeypatch.setattr(presets, "CANDIDATES", {"x": {}, "y": {}, "z": {}})
    monkeypatch.setattr(presets, "MONITORS", ("last",))
    scores = {("x", "A"): 0.9, ("y", "A"): 0.8, ("x", "E"): 0.6, ("y", "E"): 0.5}
    lines = [
        {"candidate": c, "dataset": d, "validation": {"last": score}}
        for (c, d), score in scores.items()
        for _ in range(presets.SPLITS)
    ]
    lines.append({"candidate": "z", "dataset": "A", "validation": {"last": 1.0}})
    assert [(rank, name) for rank, name, _ in presets.ranks(lines)] == [
        (1.5, "x, last"), (1.5, "y, last"),
    ]  # fmt: skip


def test_differences_are_positive_where_we_are_better():
    ours, others = ({str(i): 0.5 + i / 100 + by for i in range(5)} for by in (0.0, 0.1))
    ahead = difference(Plan("ESOL", "random", 5, 5), ours, others)  # an error
    assert ahead.mean == pytest.approx(0.1)
    assert ahead.half == pytest.approx(0, abs=1e-12)
    assert difference(Plan("BACE", "random", 5, 5), ours, others).mean == pytest.approx(-0.1)
    assert difference(Plan("BACE", "random", 10, 5), ours, others) is None


def test_intervals_of_paired_differences_are_corrected_for_overlap():
    ours, others = [1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 0.0, 0.0]
    expected = student.ppf(0.975, 3) * np.std(ours, ddof=1) * (1 / 4 + 1 / 8) ** 0.5
    difference = paired_difference(ours, others)
    assert (difference.mean, difference.half) == pytest.approx((3.0, expected))
    pairs = itertools.permutations(ours)
    assert len({round(unpaired_difference(list(p), others).half, 9) for p in pairs}) == 1


def test_a_table_replaces_the_old_one_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- graphs -->\nold\n<!-- end -->\nb\n")
    write_tables({"graphs": "new", "molecules": "none"}, [page])
    assert page.read_text() == "a\n<!-- graphs -->\nnew\n<!-- end -->\nb\n"
    page.write_text("a\n<!-- graphs -->\nold\nb\n")
    with pytest.raises(ValueError, match="no <!-- end -->"):
        write_tables({"graphs": "new"}, [page])


def test_tables_of_speed_show_what_was_measured_and_leave_the_rest_empty(tmp_path):
    def line(part, value, median, **case):
        times = {"value": value, "median_ms": median}
        return {"part": part, "case": case, "unit": "", **times}

    timing = {"layer": "HaarPooling, haar", "mode": "forward", "way": "eager"}
    lines = [
        line("timing", 8.0, 0.25, **timing, nodes=200),
        line("timing", 80.0, 0.025, **timing | {"way": "captured"}, nodes=1100),
        line("timing", None, None, **timing | {"layer": "EdgePooling"}, nodes=200),  # left out
        line("training", 14.0, 14.0, pooling="HP", way="plain"),
        line("training", 30.0, 30.0, pooling="LAP", way="plain"),
        line("training", 0.9, 0.9, pooling="HP", way="captured"),
    ]
    path = tmp_path / "bench-cuda.json"
    path.write_text(
        json.dumps({"machine": {"gpu": "some", "processor": "", "cores": 1}, "lines": lines})
    )
    measured = Benchmark.read(path)
    layers = layer_table(measured).splitlines()
    assert layers[0] == "| nodes per graph | 200 | 1,100 |"
    assert layers[2:4] == [
        "| HaarPooling, Haar domain, forward | 0.250 (8.0) |  |",
        "| the same, captured |  | 0.025 (80.0) |",
    ]
    assert layers[-1] == "| EdgePooling, forward |  |  |"
    captured, plain = training_table(measured).splitlines()[2:]
    assert captured.endswith("| 0.900 |  |")
    assert plain == "| plain | 14.0 | 30.0 |"


@pytest.mark.slow
def test_fingerprints_of_transforms_and_layers_are_repeatable():
    assert transforms() == transforms()
    hashes = layers()
    assert {f"network {arch}" for arch in NETWORKS} <= hashes.keys()
    assert hashes == layers()


def test_the_chain_for_signals_removes_most_noise():
    value = {result.name: result.value for result in denoising.run(CPU)}
    noise = value["noise: mean squared error"]
    assert noise == pytest.approx(0.09, rel=0.1)
    error = {m: value[f"matching, {m}, hard: mean squared error"] for m in ("children", "mass")}
    assert error["mass"] < error["children"] < noise
    assert error["mass"] < noise / 2


def test_the_time_of_the_host_needs_no_gpu():
    pytest.importorskip("triton")

    results = list(host_time.run(CPU))
    assert len(results) == 10
    assert all(np.isfinite(result.value) and result.value > 0 for result in results)
    assert operators._kernels("cpu").__name__.endswith("cpu")  # as before


def test_numbers_of_the_speed_page_have_three_digits():
    texts = [three_digits(value) for value in (0.5, 9.0, 11.0, 3635.1, None)]
    assert texts == ["0.50", "9.00", "11.0", "3,635", "–"]
    assert three_digits(0.5, least=3) == "0.500"
