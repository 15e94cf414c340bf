"""One line of the table, and the JSON file of all lines."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from haarpool import __version__
from haarpool._files import atomic_write
from haarpool.bench.measure import Settings, Times

_PACKAGES = ("torch", "torch_geometric", "numpy", "numba")
COLUMNS = f"{'':58} {'median ms':>10} {'quartiles':>17} {'rounds':>6} {'value':>9}"


@dataclass(frozen=True)
class Line:
    """One measured number.

    Attributes:
        part: Name of the part.
        name: What was measured.
        value: The number that limits refer to, usually a ratio; NaN if there is none.
        unit: What the number counts.
        times: The times behind it.
        at_least: Lower limit, or None.
        at_most: Upper limit, or None.
        case: The same as the name, for programs.
        note: Details for the reader.
        error: Why there is no value.
        optional: A missing value is not a failure, as for peers that need too much memory.
    """

    part: str
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

    @property
    def has_limit(self) -> bool:
        """Whether there is a limit."""
        return self.at_least is not None or self.at_most is not None

    @property
    def passed(self) -> bool:
        """Whether the value is within its limits, or has none."""
        if not math.isfinite(self.value):
            return self.optional and not self.has_limit
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    def __str__(self) -> str:
        low, high = self.times.quartiles
        median = f"{self.times.median:10.4g} {f'{low:.4g} .. {high:.4g}':>17}"
        rounds = len(self.times.values)
        columns = f"{median} {rounds:6}" if rounds else " " * 35
        value = f"{self.value:9.3g} {self.unit}" if math.isfinite(self.value) else f"{'-':>9}"
        limits = [f">= {self.at_least:g}"] if self.at_least is not None else []
        limits += [f"<= {self.at_most:g}"] if self.at_most is not None else []
        verdict = f"{'ok' if self.passed else 'FAILED'} ({', '.join(limits)})" if limits else ""
        if not limits and not self.passed:
            verdict = "FAILED"
        texts = [f"{self.name:<58} {columns} {value}", verdict, self.note, self.error]
        return "  ".join(text for text in texts if text)

    def as_json(self) -> dict[str, Any]:
        """Return plain values; None instead of NaN."""
        return {
            "part": self.part,
            "name": self.name,
            "case": dict(self.case),
            "value": _finite(self.value),
            "unit": self.unit,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "passed": self.passed,
            "median_ms": _finite(self.times.median),
            "quartiles_ms": [_finite(one) for one in self.times.quartiles],
            "rounds": len(self.times.values),
            "note": self.note,
            "error": self.error,
        }


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def describe_machine(settings: Settings) -> dict[str, Any]:
    """Return the names of processor and GPU, the number of cores, and versions."""
    machine: dict[str, Any] = {"processor": _processor(), "cores": os.cpu_count()}
    machine["threads"] = torch.get_num_threads()
    if settings.on_gpu:
        machine["gpu"] = torch.cuda.get_device_name(settings.device)
    machine |= {"python": platform.python_version(), "haarpool": __version__}
    for name in (*_PACKAGES, "triton") if settings.on_gpu else _PACKAGES:
        try:
            machine[name] = version(name)
        except PackageNotFoundError:
            machine[name] = None
    return machine


def _processor() -> str:
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
    lines: Iterable[Line],
    layers: Collection[str] = (),
) -> list[Any]:
    """Write the lines of some parts; other lines of an earlier run on the same machine stay.

    Args:
        path: The file.
        machine: What `describe_machine` returned.
        lines: All lines of this run.
        layers: The layers that were measured; lines of other layers stay too. By default all.

    Returns:
        The lines in the file.
    """
    new = [line.as_json() for line in lines]
    parts = {line["part"] for line in new}
    earlier = [
        line
        for line in read_json(path, machine)
        if line["part"] not in parts or (layers and line["case"].get("layer") not in layers)
    ]
    content: dict[str, Any] = {"machine": dict(machine), "lines": earlier + new}
    with atomic_write(path) as partial:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8")
    return earlier + new
