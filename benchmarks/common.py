"""Shared by the modules beside the parts: arguments, processes, lines, tables of pages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks import RESULTS
from haarpool._files import write_text
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import append_line


def new_parser(description: str | None, out: str) -> argparse.ArgumentParser:
    """Return a parser with the help text of a module.

    Args:
        description: The docstring of the module.
        out: Name of the file in results/ that --out changes.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS / out)
    return parser


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
