"""One line of the table, and the JSON file of all lines: written, and read for pages."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.measure import BenchOptions, Times
from haarpool._files import write_text
from haarpool._numbers import as_json
from haarpool._versions import find_versions
from haarpool.errors import HaarPoolError

COLUMNS = f"{'':58} {'median ms':>10} {'quartiles':>17} {'rounds':>6} {'value':>9}"

JsonLine = Mapping[str, Any]  # of a file


@dataclass(frozen=True)
class Measurement:
    """One measured number.

    Attributes:
        name: What was measured.
        value: The number that limits refer to, usually a ratio; NaN if there is none.
        unit: What the number counts.
        times: The times behind it.
        at_least: Lower limit, or None.
        at_most: Upper limit, or None.
        case: The same as the name, for programs.
        note: Details for the reader.
        error: Why there is no value; by default the error of the times.
        optional: A missing value is not a failure, as for peers that need too much memory.
        part: Name of the part of the benchmark.
    """

    name: str
    value: float = math.nan
    unit: str = ""
    times: Times = field(default_factory=Times)
    at_least: float | None = None
    at_most: float | None = None
    case: Mapping[str, str | int] = field(default_factory=dict)
    note: str = ""
    error: str = ""
    optional: bool = False
    part: str = ""

    @property
    def reason(self) -> str:
        """Why there is no value."""
        return self.error or self.times.error

    @property
    def limits(self) -> list[str]:
        """The limits as text."""
        limits = {">=": self.at_least, "<=": self.at_most}
        return [f"{sign} {limit:g}" for sign, limit in limits.items() if limit is not None]

    @property
    def passed(self) -> bool:
        """Whether the value is within its limits, or has none."""
        if not math.isfinite(self.value):
            return self.optional and not self.limits
        low, high, value = self.at_least, self.at_most, float(self.value)  # may be of numpy
        return (low is None or value >= low) and (high is None or value <= high)

    def __str__(self) -> str:
        low, high = self.times.quartiles
        median = f"{self.times.median:10.4g} {f'{low:.4g} .. {high:.4g}':>17}"
        rounds = len(self.times.values)
        columns = f"{median} {rounds:6}" if rounds else " " * 35
        value = f"{self.value:9.3g} {self.unit}" if math.isfinite(self.value) else f"{'-':>9}"
        verdict = "FAILED" if not self.passed else "ok" if self.limits else ""
        verdict += f" ({', '.join(self.limits)})" * bool(self.limits)
        texts = [f"{self.name:<58} {columns} {value}", verdict, self.note, self.reason]
        return "  ".join(text for text in texts if text)

    def as_json(self) -> dict[str, Any]:
        """Return plain values; None instead of NaN."""
        numbers = {
            "value": float(self.value),
            "median_ms": self.times.median,
            "quartiles_ms": self.times.quartiles,
        }
        rounded = as_json(numbers, digits=6)
        return {
            "part": self.part, "name": self.name, "case": dict(self.case),
            "value": rounded.pop("value"), "unit": self.unit, "at_least": self.at_least,
            "at_most": self.at_most, "passed": self.passed, **rounded,
            "rounds": len(self.times.values), "note": self.note, "error": self.reason,
        }  # fmt: skip


def describe_machine(options: BenchOptions) -> dict[str, Any]:
    """Return the names of processor and GPU, the number of cores, and versions."""
    machine: dict[str, Any] = {"processor": processor_name(), "cores": os.cpu_count()}
    machine["threads"] = torch.get_num_threads()
    packages = ["torch", "torch_geometric", "numpy", "numba"]
    if options.on_gpu:
        machine["gpu"] = torch.cuda.get_device_name(options.device)
        packages.append("triton")
    return machine | find_versions(*packages)


def processor_name() -> str:
    """Return the name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def read_json(path: Path, machine: Mapping[str, Any]) -> list[Any]:
    """Return the lines of an earlier run on the same machine; none if there is no such file.

    What the file says besides does not count, such as Triton on a processor in older files.

    Args:
        path: The file.
        machine: What `describe_machine` returned.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):  # no file, or another one
        before = json.loads(path.read_text(encoding="utf-8"))
        if dict(machine).items() <= before["machine"].items():
            return list(before["lines"])
    return []


def write_json(
    path: Path,
    machine: Mapping[str, Any],
    measured: Iterable[Measurement],
    layers: Collection[str] = (),
    key: str = "lines",
) -> list[Any]:
    """Write the lines of some parts; other lines of an earlier run on the same machine stay.

    Args:
        path: The file.
        machine: What `describe_machine` returned.
        measured: All numbers of this run.
        layers: The layers that were measured; lines of other layers stay too. By default all.
        key: The key of the lines; a file with another key than "lines" is replaced.

    Returns:
        The lines in the file.
    """
    new = [one.as_json() for one in measured]
    parts = {line["part"] for line in new}
    lines = [
        line
        for line in read_json(path, machine)
        if line["part"] not in parts or (layers and line["case"].get("layer") not in layers)
    ] + new
    content = {"machine": dict(machine), key: lines}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return lines


class Benchmark(NamedTuple):
    """A file of `python -m benchmarks`.

    Attributes:
        path: The file.
        device: What was measured on.
        lines: Its lines.
    """

    path: Path
    device: str
    lines: Sequence[JsonLine]

    @classmethod
    def read(cls, path: Path) -> Benchmark:
        """Read a file."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            machine, lines = content["machine"], content["lines"]
            cores = f"{machine['processor']}, {machine['cores']} cores"
            return cls(path, machine.get("gpu") or cores, [_read_line(line) for line in lines])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise HaarPoolError(
                "a file of `python -m benchmarks`",
                f"{path} ({error})",
                "measure again, or remove it",
            ) from error

    @property
    def parts(self) -> set[str]:
        """Parts that were measured; the line of one that failed has no case."""
        return {line["part"] for line in self.lines if line["case"]}

    def find(self, part: str, key: str, **case: object) -> dict[Any, JsonLine]:
        """Return the lines of a part by one key of their cases.

        Args:
            part: The part.
            key: The key.
            **case: What others must be.
        """
        return {
            line["case"][key]: line
            for line in self.lines
            if line["part"] == part
            and key in line["case"]
            and all(line["case"].get(name) == value for name, value in case.items())
        }


def _read_line(line: JsonLine) -> JsonLine:
    """Return a line whose values have the types that the report reads."""
    case = dict(line["case"])
    if "layer" in case:
        case |= {"layer": str(case["layer"]), "nodes": int(case["nodes"])}
    numbers = {"value": line["value"], "median_ms": line.get("median_ms")}
    floats = {name: None if one is None else float(one) for name, one in numbers.items()}
    return {**line, "part": str(line["part"]), "case": case, **floats}
