"""Lines of the table and the JSON file."""

import json
import math

import numpy as np
import pytest

from benchmarks.measure import Times
from benchmarks.results import Measurement, processor_name, read_json, write_json


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        (Measurement("no limit", 3.0), True),
        (Measurement("inside", 3.0, at_least=2, at_most=3), True),
        (Measurement("below", 1.0, at_least=2), False),
        (Measurement("above", 4.0, at_most=3), False),
        (Measurement("failed", error="out of memory"), False),
        (Measurement("a peer failed", error="out of memory", optional=True), True),
        (Measurement("limit without value", at_most=3, optional=True), False),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_limits(line, passed):
    assert line.passed is passed
    assert ("FAILED" in str(line)) is not passed
    assert line.error in str(line)


def test_json_has_median_quartiles_rounds_and_limits(tmp_path):
    line = Measurement(
        "x", np.float64(2), "copies", Times((1.0, 2.0, 3.0)), at_most=3, case={"nodes": 5}
    )
    (read,) = write_json(tmp_path / "b.json", {"cores": 2}, [line])
    assert read == json.loads((tmp_path / "b.json").read_text())["lines"][0]
    assert (read["median_ms"], read["quartiles_ms"], read["rounds"]) == (2.0, [1.5, 2.5], 3)
    assert (read["value"], read["at_most"], read["passed"]) == (2.0, 3, True)
    assert math.isnan(Measurement("x").value)
    assert Measurement("x").as_json()["value"] is None


def test_other_parts_of_the_same_machine_stay(tmp_path):
    path = tmp_path / "b.json"
    write_json(
        path,
        {"cores": 2},
        [
            Measurement(part="a", name="old", value=1.0),
            Measurement(part="b", name="old", value=1.0),
        ],
    )
    kept = write_json(path, {"cores": 2}, [Measurement(part="b", name="new", value=1.0)])
    assert [(line["part"], line["name"]) for line in kept] == [("a", "old"), ("b", "new")]
    assert len(write_json(path, {"cores": 4}, [Measurement(part="b", name="new", value=1.0)])) == 1
    assert read_json(path, {"cores": 2}) == []
    assert read_json(path, {}) == read_json(path, {"cores": 4})  # older files say more
    path.write_text("damaged")
    assert read_json(path, {"cores": 4}) == []
    assert len(write_json(path, {"cores": 4}, [Measurement(part="b", name="new", value=1.0)])) == 1


def test_other_layers_of_the_same_part_stay(tmp_path):
    path = tmp_path / "b.json"
    old = [Measurement(part="a", name=name, value=1.0, case={"layer": name}) for name in ("x", "y")]
    write_json(
        path,
        {},
        [
            *old,
            Measurement(part="a", name="map", value=1.0, case={"map": "adjoint"}),
            Measurement(part="b", name="b"),
        ],
    )
    new = [Measurement(part="a", name="x, new", value=2.0, case={"layer": "x"})]
    kept = write_json(path, {}, new, layers=["x"])
    assert [line["name"] for line in kept] == ["y", "map", "b", "x, new"]
    assert [line["name"] for line in write_json(path, {}, new)] == ["b", "x, new"]


def test_the_processor_has_a_name():
    assert processor_name().strip()
