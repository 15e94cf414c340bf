"""How benchmarks measure: turns, warm-up, errors, memory."""

import math
import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from benchmarks.measure import (
    BenchOptions,
    Times,
    in_new_process,
    measure,
    peak_memory,
)

CPU = BenchOptions(torch.device("cpu"), quick=True)


def test_times():
    times = Times((4.0, 1.0, 2.0, 3.0))
    assert times.median == 2.5
    assert times.quartiles == (1.75, 3.25)
    assert times.divided_by(2).values == (2.0, 0.5, 1.0, 1.5)
    assert math.isnan(Times(error="none").median)


def test_actions_run_in_turns_and_failures_do_not_stop_the_others():
    calls = []

    def fail():
        raise MemoryError("too large\nsecond line")

    actions = {"a": lambda: calls.append("a"), "fail": fail, "b": lambda: calls.append("b")}
    times = measure(actions, CPU)
    assert times["fail"] == Times(error="MemoryError: too large")
    for name in "ab":
        assert len(times[name].values) == CPU.max_rounds
        assert all(value > 0 for value in times[name].values)
    turns = "".join(calls).rstrip("b").replace("aa", "a")
    assert turns.count("ab") >= 1
    assert "ba" in "".join(calls)  # a second round of a follows the first of b


def test_slow_actions_run_once():
    calls = Counter()
    actions = {name: lambda name=name: calls.update([name]) for name in ("slow", "fast")}
    times = measure(actions, CPU, once=["slow"])
    assert len(times["slow"].values) == calls["slow"] == 1
    assert calls["fast"] > CPU.max_rounds


def test_new_process():
    assert in_new_process(os.getpid) != os.getpid()
    environment = {"HAARPOOL_TEST": "here"}
    assert in_new_process(os.getenv, "HAARPOOL_TEST", environment=environment) == "here"
    assert "HAARPOOL_TEST" not in os.environ


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
def test_peak_memory_counts_what_an_action_takes():
    size = 2**26

    def action():
        torch.ones(size // 4).sum()

    assert 0.9 * size < peak_memory(action, CPU) < 1.5 * size
