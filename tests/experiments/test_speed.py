"""The part of the report on speed, from files of `haarpool bench`."""

import json

import pytest

from haarpool.errors import HaarPoolError
from haarpool.experiments.published import PROPERTIES
from haarpool.experiments.report import write_report
from haarpool.experiments.speed import Benchmark, read_benchmarks

MACHINE = {"processor": "some", "cores": 2}


def line(layer, nodes, ms, mode="forward", way="eager"):
    case = {"layer": layer, "nodes": nodes, "mode": mode, "way": way}
    return {"part": "timing", "case": case, "median_ms": ms, "value": 1.0}


@pytest.fixture
def folder(tmp_path):
    lines = [line("TopKPooling", n, 3.0 * n**2) for n in (10, 20, 40)]
    lines += [line("TopKPooling", 10, 0.1, way="captured")]
    lines += [line("HaarPooling, haar", 10, 0.5), line("HaarPooling, haar", 20, None)]
    lines += [{"part": "memory", "case": {"layer": "TopKPooling"}, "value": 12.5}]
    text = json.dumps({"machine": MACHINE, "lines": lines})
    (tmp_path / "bench-cpu.json").write_text(text)
    (tmp_path / "bench-cpu-quick.json").write_text(text)
    return tmp_path


def test_exponents_and_memory(folder):
    (benchmark,) = read_benchmarks(folder)
    assert benchmark.path.name == "bench-cpu.json"
    assert benchmark.exponent("TopKPooling") == pytest.approx(2)
    assert benchmark.exponent("HaarPooling, haar") is None  # one size
    assert benchmark.memory("TopKPooling") == 12.5
    assert benchmark.memory("DiffPool") is None
    assert [one.path.name for one in read_benchmarks(folder, quick=True)] == [
        "bench-cpu-quick.json"
    ]


def test_report(folder):
    text = write_report(folder)[0].read_text()
    assert "| TopKPooling | 300 | 1200 | 4800 |" in text
    assert "| HaarPooling, haar | 0.5 | – | – |" in text
    (row,) = (one for one in text.splitlines() if one.startswith("| gPool"))
    assert "| 2.00 | 12 |" in row or "| 2.00 | 13 |" in row
    assert all(f"| {name} |" in text for name in PROPERTIES)
    assert "![" not in text  # there is no figure
    (folder / "bench-cpu.png").write_bytes(b"")
    page = write_report(folder)[1].read_text()
    assert '<img src="bench-cpu.png"' in page


def test_the_paper_ticks():
    counts = {name: len(row.has) for name, row in PROPERTIES.items()}
    assert counts == {
        "SortPool": 1, "DiffPool": 2, "gPool": 2, "SAGPool": 3, "EigenPool": 5, "HaarPool": 6,
    }  # fmt: skip


def test_another_file(tmp_path):
    path = tmp_path / "bench-cpu.json"
    path.write_text("[]")
    with pytest.raises(HaarPoolError, match="a file of `haarpool bench`"):
        Benchmark.read(path)
