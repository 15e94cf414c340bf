"""The part of the report on speed, from files of `python -m benchmarks`."""

import json

import pytest

from benchmarks.results import Benchmark
from haarpool.errors import HaarPoolError
from paper.published import PROPERTIES
from paper.report import write_report
from paper.speed import exponent, properties, read_benchmarks

MACHINE = {"processor": "some", "cores": 2}


def line(layer, nodes, ms, mode="forward", way="eager"):
    case = {"layer": layer, "nodes": nodes, "mode": mode, "way": way}
    return {"part": "timing", "case": case, "median_ms": ms, "value": 1.0}


def memory(layer, nodes, value):
    return {"part": "memory", "case": {"layer": layer, "nodes": nodes}, "value": value}


@pytest.fixture
def folder(tmp_path):
    lines = [line("TopKPooling", n, 3.0 * n**2) for n in (10, 20, 40)]
    lines += [line("TopKPooling", 10, 0.1, way="captured")]
    lines += [line("HaarPooling, haar", 10, 0.5), line("HaarPooling, haar", 20, None)]
    lines += [line("SAGPooling", n, ms) for n, ms in ((40, 1.4), (10, 1.0), (20, 9.0))]
    lines += [memory("TopKPooling", n, 0.3125 * n) for n in (10, 20, 40)]
    lines += [memory("SAGPooling", 40, 134.2)]  # a file without the other sizes
    lines += [memory("DiffPool", 10, 2.0), memory("DiffPool", 20, None)]
    lines += [{"part": "timing", "case": {}, "median_ms": None, "value": None}]  # it failed
    text = json.dumps({"machine": MACHINE, "lines": lines})
    (tmp_path / "bench-cpu.json").write_text(text)
    (tmp_path / "bench-cpu-quick.json").write_text(text)
    return tmp_path


def test_exponents_and_memory(folder):
    (benchmark,) = read_benchmarks(folder)
    assert benchmark.path.name == "bench-cpu.json"
    assert properties(benchmark, "TopKPooling") == ["2.00", "2.00", "12"]  # 12.5
    assert properties(benchmark, "SAGPooling") == ["overhead", "–", "134"]
    assert properties(benchmark, "HaarPooling, haar") == ["–", "–", "–"]  # one size
    assert properties(benchmark, "DiffPool") == ["–", "–", "–"]  # left out at the largest size
    assert properties(benchmark, "SortAggregation") == ["–", "–", "–"]  # not measured
    assert [one.path.name for one in read_benchmarks(folder, quick=True)] == [
        "bench-cpu-quick.json"
    ]


def test_values_that_hardly_grow_have_no_exponent():
    assert exponent({200: 1.0, 500: 0.7, 1100: 1.49}) == "overhead"
    assert exponent({200: 1.0, 1100: 5.5, 500: 2.5}) == "1.00"
    assert exponent({200: 1.0, 500: 2.5, 1100: None}) == "1.00"
    assert exponent({200: 1.0, 500: None}) == exponent({}) == "–"


def test_report(folder):
    text = write_report(folder)[0].read_text()
    assert "| TopKPooling | 300 | 1200 | 4800 |" in text
    assert "| HaarPooling, haar | 0.5 | – | – |" in text
    rows = text.splitlines()
    assert "| gPool | TopKPooling | 2.00 | 2.00 | 12 |" in rows
    assert "| SortPool | SortAggregation | – | – | – |" in rows
    assert "| SAGPool | SAGPooling | overhead | – | 134 |" in rows
    assert r"| gPool | \|V\|² | \|V\| + \|E\| |  |  | yes | yes |  |  |" in rows
    assert "overhead: the value" in text
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
    no_case = {"part": "timing", "value": 1.0}
    no_nodes = no_case | {"case": {"layer": "TopKPooling"}}
    text = line("TopKPooling", 10, "fast")
    odd = (5, [no_case], [3], [no_nodes], [text])
    for content in ([], *({"machine": MACHINE, "lines": lines} for lines in odd)):
        path.write_text(json.dumps(content))
        with pytest.raises(HaarPoolError, match="a file of `python -m benchmarks`"):
            Benchmark.read(path)
