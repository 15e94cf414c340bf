"""Calls in processes that may die."""

import os
from multiprocessing import resource_tracker

import pytest

from haarpool.comparison.processes import Died, run_in_processes
from helpers.commands import children_of, is_alive


def test_one_job_runs_in_this_process():
    assert list(run_in_processes(lambda n: n + 1, [1, 2], 1)) == [(1, 2), (2, 3)]


@pytest.mark.slow
def test_results_of_several_processes():
    results = dict(run_in_processes(abs, [-1, -2, -3, -4, -5], 2))
    assert results == {-n: n for n in range(1, 6)}


@pytest.mark.slow
def test_a_process_that_dies_harms_no_other_task():
    results = dict(run_in_processes(os._exit, [3, 4, 5], 2))
    assert results == {code: Died(code) for code in (3, 4, 5)}


@pytest.mark.slow
def test_a_process_is_not_used_again_after_a_failure():
    tasks = [f"({n}, __import__('os').getpid())" for n in range(5)]
    results = dict(run_in_processes(eval, tasks, 2, lambda result: True))
    assert len({pid for _, pid in results.values()}) == 5
    results = dict(run_in_processes(eval, tasks, 2))
    assert len({pid for _, pid in results.values()}) <= 2


@pytest.mark.slow
def test_no_process_is_left_when_the_caller_stops():
    resource_tracker.ensure_running()  # multiprocessing starts it once; it stays
    before = set(children_of(os.getpid()))
    calls = run_in_processes(abs, [-1, -2, -3, -4], 2)
    next(calls)
    started = set(children_of(os.getpid())) - before
    assert len(started) == 2
    calls.close()
    assert not [pid for pid in started if is_alive(pid)]
