"""Workers: real Dask and Ray clusters on this machine, and processes that end with their parent."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import joblib
import networkx as nx
import pytest

import haarpool as hp
from haarpool.chains.cache import ChainCache
from haarpool.chains.workers import _is_running, connected
from helpers.commands import HAARPOOL, run_main, run_process, start_process, wait_until
from helpers.files import write_tu
from helpers.graphs import random_graphs


def dataset(count, size=40):
    return [nx.gnm_random_graph(size, 2 * size, seed=s) for s in range(count)]


@pytest.fixture
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="the extra haarpool[dask]")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    with cluster:
        yield cluster


@pytest.mark.slow
def test_dask_with_a_worker_killed_in_the_middle(dask_cluster, tmp_path):
    """Its chunks are done by others: no chain is missing, none is wrong."""
    from distributed import Client

    graphs = dataset(80)
    expected = list(hp.precompute(graphs, 3, method="spectral-kmeans", cache=False))
    with Client(dask_cluster) as client:
        pids = list(client.run(os.getpid).values())
        assert len(pids) == 2
        assert os.getpid() not in pids

        def kill():
            wait_until(lambda: chains_in(tmp_path) > 0)
            os.kill(pids[0], signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        with joblib.parallel_config(backend="dask"):
            chains = hp.precompute(graphs, 3, method="spectral-kmeans", cache=tmp_path)
        killer.join()
        after = set(client.run(os.getpid).values())
    assert pids[0] not in after
    assert list(chains) == expected
    assert chains.computed == len(graphs)
    again = hp.precompute(graphs, 3, method="spectral-kmeans", cache=tmp_path)
    assert (again.computed, again.cached) == (0, len(graphs))


def chains_in(folder) -> int:
    store = ChainCache(folder)
    try:
        return store.info().chains
    finally:
        store.close()


@pytest.mark.slow
def test_dask_by_address(dask_cluster):
    graphs = dataset(20)
    with connected("dask", dask_cluster.scheduler_address):
        chains = hp.precompute(graphs, 2, cache=False)
    assert list(chains) == list(hp.precompute(graphs, 2, cache=False))


@pytest.mark.slow
def test_dask_from_the_shell(dask_cluster, tmp_path):
    folder = write_tu(tmp_path, "RANDOM", random_graphs(40))
    address = dask_cluster.scheduler_address
    arguments = ("chain", folder, "--levels", 2, "--no-cache", "--json")
    out = run_main(*arguments, "--backend", "dask", "--address", address).out
    assert json.loads(out)[0]["computed"] == 40


@pytest.mark.slow
def test_ray():
    ray = pytest.importorskip("ray", reason="the extra haarpool[ray]")
    from ray.util.joblib import register_ray

    graphs = dataset(40)
    expected = list(hp.precompute(graphs, 2, cache=False))
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        with joblib.parallel_config(backend="ray", n_jobs=2):
            assert list(hp.precompute(graphs, 2, cache=False)) == expected
    finally:
        ray.shutdown()


def unused_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@pytest.mark.slow
def test_no_cluster_at_the_address(monkeypatch):
    monkeypatch.setattr("haarpool.chains.workers.CONNECT_SECONDS", 1)
    pytest.importorskip("distributed", reason="the extra haarpool[dask]")
    address = f"tcp://127.0.0.1:{unused_port()}"
    with (
        pytest.raises(
            hp.HaarPoolError, match=rf"Dask scheduler at {address}.*no connection.*start it"
        ),
        connected("dask", address),
    ):
        pass
    pytest.importorskip("ray", reason="the extra haarpool[ray]")
    for bad in (f"127.0.0.1:{unused_port()}", "nowhere"):
        with (
            pytest.raises(hp.HaarPoolError, match=rf"Ray cluster at {bad}.*no connection"),
            connected("ray", bad),
        ):
            pass
    with (
        pytest.raises(hp.HaarPoolError, match="address of a Dask scheduler, got none"),
        connected("dask", None),
    ):
        pass
    with pytest.raises(hp.HaarPoolError, match='backend "dask" or "ray"'), connected("mpi", "x"):
        pass


# ------------------------------------------------------------------ workers of this machine


def processes_of_session(leader: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
            if int(session) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("is_reaped", [True, False])
@pytest.mark.parametrize("number", [3, 4, 5])
def test_workers_end_with_a_parent_that_is_killed_while_they_start(tmp_path, number, is_reaped):
    """The parent is killed as soon as there are so many processes: trackers, then workers.

    Until its own parent waits for it, here this test, it keeps its number.
    """
    folder = write_tu(tmp_path, "RANDOM", random_graphs(2000))
    command = (HAARPOOL, "chain", folder, "--jobs", 2, "--no-cache", "--method", "spectral-kmeans")
    with start_process(*command, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: len(processes_of_session(process.pid)) >= number, process)
        process.kill()
        if is_reaped:
            process.wait()
        wait_until(lambda: not processes_of_session(process.pid))


WATCH = """
import os, subprocess, sys, time
from haarpool.chains.workers import end_with_parent
other = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
if sys.argv[1] != "there":
    other.kill()
    nobody_waits = os.WNOWAIT if sys.argv[1] == "killed" else 0
    os.waitid(os.P_PID, other.pid, os.WEXITED | nobody_waits)
end_with_parent(other.pid)
if sys.argv[1] == "there":
    time.sleep(3)
    print("still here", flush=True)
    other.kill()
    other.wait()
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("parent", "shown"), [("gone", ""), ("killed", ""), ("there", "still here\n")]
)
def test_a_worker_watches_a_parent_that_is_gone_or_behind_a_wrapper(parent, shown):
    assert run_process(sys.executable, "-c", WATCH, parent, code=1).out == shown


@pytest.mark.parametrize("proc", ["/proc", "/nowhere"])
def test_a_killed_process_that_nobody_waits_for_does_not_run(monkeypatch, proc):
    monkeypatch.setattr("haarpool.chains.workers.PROC", proc)  # other systems have ps alone
    assert _is_running(os.getpid())
    with start_process(sys.executable, "-c", "import time; time.sleep(600)") as process:
        assert _is_running(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        os.kill(process.pid, 0)  # it still has its number
        assert not _is_running(process.pid)
    assert not _is_running(process.pid)
