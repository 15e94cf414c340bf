"""Progress of long work: bars, and lines where there is no terminal."""

import numpy as np
import pytest

import haarpool as hp
from haarpool import _progress
from haarpool._progress import ProgressLines, counted, show_progress


@pytest.fixture
def clock(monkeypatch):
    """A list with the time, which a test changes."""
    now = [1000.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def test_time_and_time_left(clock):
    lines = []
    shown = ProgressLines(lines.append, share=0.5)  # half of the work was done before
    clock[0] += 42
    shown.show("repeat 6 of 10", 0.6)
    clock[0] += 3600
    shown.show("repeat 9 of 10", 0.9)
    shown.show("repeat 10 of 10", 1.0)
    shown.show("graphs")
    assert lines == [
        "repeat 6 of 10, 0:42, about 2:48 left",
        "repeat 9 of 10, 1:00:42, about 15:10 left",
        "repeat 10 of 10, 1:00:42",
        "graphs, 1:00:42",
    ]


def test_a_line_every_30_seconds(clock):
    lines = []
    with show_progress(lines.append, "chains", "graphs", 2000) as update:
        for _ in range(20):
            clock[0] += 10
            update(100)
    assert lines == [
        f"chains: {done:,} of 2,000 graphs, {time}, about {left} left"
        for done, time, left in (
            (300, "0:30", "2:50"), (600, "1:00", "2:20"), (900, "1:30", "1:50"),
            (1200, "2:00", "1:20"), (1500, "2:30", "0:50"), (1800, "3:00", "0:20"),
        )
    ]  # fmt: skip


def test_work_of_unknown_length(clock):
    lines = []
    for _ in counted(range(10), lines.append, "molecules"):
        clock[0] += 7
    assert lines == ["molecules: 5 molecules, 0:35", "molecules: 10 molecules, 1:10"]


def test_short_work_is_silent(capsys):
    lines = []
    with show_progress(lines.append, "chains", "graphs", 10) as update:
        update(10)
    assert lines == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [None, False])
def test_the_library_is_silent_without_a_terminal(progress, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "SECONDS_PER_LINE", 0)
    hp.precompute([np.eye(4)] * 3, 2, cache=False, progress=progress)
    assert capsys.readouterr() == ("", "")


def test_a_function_instead_of_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "SECONDS_PER_LINE", 0)
    lines = []
    ring = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    hp.precompute([ring, np.eye(4), ring], 2, cache=False, progress=lines.append)
    assert lines[0] == "chains: 0 of 3 graphs, 0:00"
    assert lines[-1] == "chains: 3 of 3 graphs, 0:00"
    assert capsys.readouterr() == ("", "")
