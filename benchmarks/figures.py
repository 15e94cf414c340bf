"""What all benchmarks share: a figure with its bounds, clocks, memory, the report."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass
class Figure:
    """One measured figure and what was asked of it."""

    name: str
    value: float
    least: float | None = None
    most: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        self.value = float(self.value)  # not numpy's, for JSON

    @property
    def reached(self) -> bool:
        """Whether the value lies where it should."""
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def status(key: str) -> int:
    """A size in bytes out of /proc/self/status: VmRSS is memory in use, VmHWM its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def report(description: str, measured: Iterable[Figure], out: str, **machine: object) -> int:
    """Print each figure as it comes, write all to JSON; 1 if one is missed."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(out))
    path = parser.parse_args().out
    figures = []
    for figure in measured:
        figures.append(figure)
        bounds = [f">= {figure.least}"] * (figure.least is not None)
        bounds += [f"<= {figure.most}"] * (figure.most is not None)
        verdict = "ok" if figure.reached else "MISSED"
        asked = f"{verdict}, asked {' and '.join(bounds)}" if bounds else ""
        print(f"{figure.value:10.3g}  {figure.name:<66} {asked}  {figure.note}", flush=True)
    machine |= {"python": platform.python_version(), "numpy": np.__version__}
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(figure) | {"reached": figure.reached} for figure in figures]
    path.write_text(json.dumps({"machine": machine, "figures": rows}, indent=1, ensure_ascii=False))
    print(f"written to {path}")
    return 0 if all(figure.reached for figure in figures) else 1
