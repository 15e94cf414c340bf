"""Shared by all benchmarks: arguments, processes, lines and files of results, tables of pages."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from haarpool._files import write_text
from haarpool.bench.measure import BenchOptions
from haarpool.bench.results import COLUMNS, Measurement, describe_machine
from haarpool.experiments.lines import Line, append_line

RESULTS = Path(__file__).resolve().parents[1] / "results"


def new_parser(description: str | None, out: str) -> argparse.ArgumentParser:
    """Return a parser with the help text of a script.

    Args:
        description: The docstring of the script.
        out: Name of the file in results/ that --out changes.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS / out)
    return parser


def report(
    description: str | None,
    measured: Iterable[Measurement],
    out: str,
    options: BenchOptions = BenchOptions(torch.device("cpu")),  # noqa: B008  # it is frozen
) -> None:
    """Print each measurement, write all to a JSON file, and end with code 1 if a limit is missed.

    Args:
        description: The docstring of the script.
        measured: The measurements, one by one.
        out: Name of the JSON file in results/.
        options: The device.
    """
    path, results = new_parser(description, out).parse_args().out, []
    print(COLUMNS)
    for one in measured:
        results.append(one)
        print(one, flush=True)
    content = {"machine": describe_machine(options), "results": [one.as_json() for one in results]}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(f"written to {path}")
    sys.exit(not all(one.passed for one in results))


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time of one call.

    Args:
        action: What is called.
        clock: `time.process_time` measures the processor alone.
    """
    start = clock()
    action()
    return clock() - start


def run_haarpool(*command: object, **environment: object) -> tuple[float, float]:
    """Run `haarpool` in a process of its own; return its peak memory in GB and its seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "haarpool", *map(str, command)],
        stdout=subprocess.DEVNULL,
        env=os.environ | {name: str(value) for name, value in environment.items()},
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024 / 1e9, time.perf_counter() - start


def train_missing(
    train: Callable[..., Sequence[Line]], tasks: Sequence[tuple[Any, ...]], out: Path, jobs: int
) -> None:
    """Call a function for each task in several processes; write its lines as soon as it ends.

    Args:
        train: The function.
        tasks: Its arguments.
        out: The file of the lines.
        jobs: Number of processes.
    """
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = [pool.submit(train, *task) for task in tasks]
        for future in tqdm(as_completed(futures), total=len(tasks), unit=" tasks"):
            for line in future.result():
                append_line(out, line)


def write_tables(tables: Mapping[str, str], pages: Iterable[Path]) -> None:
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
