"""Shared by all benchmarks: a result with its limits, time, memory, JSON files, tables of pages."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from haarpool._files import write_text


@dataclass
class Result:
    """One measured number and its limits.

    Attributes:
        name: What was measured, usually a ratio "A over B".
        value: The number.
        at_least: Lower limit, or None.
        at_most: Upper limit, or None.
        note: Details for the reader, such as absolute times.
    """

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        self.value = float(self.value)  # json does not write numpy numbers

    @property
    def passed(self) -> bool:
        """True if the value is within its limits."""
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    def __str__(self) -> str:
        limits = [f">= {self.at_least}"] * (self.at_least is not None)
        limits += [f"<= {self.at_most}"] * (self.at_most is not None)
        verdict = "ok" if self.passed else "FAILED"
        required = f"{verdict}, required {' and '.join(limits)}" if limits else ""
        return f"{self.value:10.3g}  {self.name:<66} {required}  {self.note}"


def seconds(action: Callable[[], object]) -> float:
    """Return the wall-clock time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def memory_status(key: str) -> int:
    """Return a size in bytes from /proc/self/status: VmRSS is memory in use, VmHWM its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def report(description: str, measured: Iterable[Result], out: str, **machine: object) -> int:
    """Print each result when it is measured and write all of them to a JSON file.

    Args:
        description: Help text of the script.
        measured: The results, one by one.
        out: Path of the JSON file, unless the user passes --out.
        **machine: Versions and number of cores, written to the file.

    Returns:
        The exit code: 1 if a result is outside its limits, else 0.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(out))
    path = parser.parse_args().out
    results = []
    for result in measured:
        results.append(result)
        print(result, flush=True)
    machine |= {"python": platform.python_version(), "numpy": np.__version__}
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(result) | {"passed": result.passed} for result in results]
    path.write_text(json.dumps({"machine": machine, "results": rows}, indent=1, ensure_ascii=False))
    print(f"written to {path}")
    return 0 if all(result.passed for result in results) else 1


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown; the first row is the header."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write_tables(tables: Mapping[str, str], pages: Sequence[Path]) -> None:
    """Write tables into pages, between the comments `<!-- NAME -->` and `<!-- end -->`."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for name, table in tables.items():
            before, mark, rest = text.partition(f"<!-- {name} -->\n")
            if mark:
                _, end, after = rest.partition("<!-- end -->")
                if not end:
                    raise ValueError(f"{page}: no <!-- end --> after <!-- {name} -->")
                text = f"{before}{mark}{table}\n{end}{after}"
        write_text(page, text)
