"""`python -m paper`: measure the tables of the paper, and those of the study of pooling.

Lines, figures and the report are in results/; a killed command continues where it stopped.
"""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from haarpool.cli import run_safely
from haarpool.cli.flags import comma_separated
from haarpool.cli.parser import add_root
from haarpool.cli.terminal import progress_option
from haarpool.comparison.runner import Summary, run_table
from haarpool.comparison.table import REPEATS
from haarpool.datasets import find_dataset, read_graphs
from haarpool.datasets.locations import REMEDY
from haarpool.errors import HaarPoolError
from paper.known import copy_known
from paper.pooling import STUDY
from paper.report import check_folder, write_report
from paper.tables import (
    FROM_BENCHMARK,
    QUICK_REPEATS,
    TABLES,
    PaperTable,
    find_table,
)


def make_parser() -> ArgumentParser:
    """Make the parser."""
    parser = ArgumentParser(
        prog="python -m paper",
        description="Measure the tables of the paper, and those of the study of pooling.",
        epilog="example:\n  python -m paper table1 --dataset MUTAG --method haarpool,gin --jobs 2",
        formatter_class=RawDescriptionHelpFormatter,
    )
    tables = (*TABLES, *FROM_BENCHMARK, STUDY)
    parser.add_argument("table", nargs="?", choices=tables, help=f"one of {', '.join(tables)}")
    for name, what in (("dataset", "datasets"), ("method", "methods"), ("protocol", "protocols")):
        parser.add_argument(
            f"--{name}", default="", metavar="NAME[,NAME]", help=f"{what} (default: all)"
        )
    parser.add_argument(
        "--repeats", type=int, metavar="N", help=f"trials of each method (default: {REPEATS})"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes, one thread each (default: 1)"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, ... (default: auto)")
    add_root(parser)
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="folder of lines and report (default: results, with --quick results/quick)",
    )
    parser.add_argument(
        "--retry", action="store_true", help="try failed trials again, or measure speed again"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one dataset, few methods, few epochs, two splits"
    )
    parser.add_argument("--list", action="store_true", help="list datasets and methods and stop")
    parser.add_argument(
        "--report",
        action="store_true",
        help="write the report of all tables from the lines and train nothing",
    )
    parser.add_argument("--quiet", action="store_true", help="hide progress")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing and write the report; print help without a table."""
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    if parsed.table is None and not parsed.report:
        parser.print_help()
        return 2
    return run_safely(run, parsed)


def run(arguments: Namespace) -> int:
    """Run the command."""
    if arguments.report:
        _check_alone(arguments)
    if arguments.table == STUDY:
        return _study(arguments)
    is_benchmark = arguments.table in FROM_BENCHMARK
    table = None if arguments.report or is_benchmark else _selected_table(arguments)
    if arguments.list:
        from paper.speed import PARTS

        names = PARTS if table is None else ["\t".join(cell.key) for cell in table.cells]
        print(*names, sep="\n")
        return 0
    folder = _results(arguments)
    check_folder(folder)
    failed = 0
    if table is not None:
        failed = _train(table, folder, arguments)
    elif not arguments.report:
        _measure_speed(folder, arguments)
    for path in write_report(folder, quick=arguments.quick):
        print(path)
    return 1 if failed else 0


def _results(arguments: Namespace) -> Path:
    return Path(arguments.results or ("results/quick" if arguments.quick else "results"))


def _study(arguments: Namespace) -> int:
    """Train what is missing of the study, and write its page."""
    from paper.pooling.page import write_page
    from paper.pooling.run import choose, run_study

    folder = _results(arguments)
    if arguments.report:
        print(*write_page(folder), sep="\n")
        return 0
    chosen = choose(*map(comma_separated, (arguments.dataset, arguments.method)))
    if arguments.list:
        print(
            *(f"{task.name}\t{name}" for task, names in chosen.items() for name in names), sep="\n"
        )
        return 0
    with _resumable(folder / STUDY):
        summary = run_study(chosen, folder, arguments)
    return _show(summary)


def _check_alone(arguments: Namespace) -> None:
    """Raise an error if the report is asked for together with a selection of cells."""
    names = ("dataset", "method", "protocol", "list", "retry")
    if chosen := [name for name in names if getattr(arguments, name)]:
        raise HaarPoolError(
            "--report without a selection: it has all tables, datasets and methods",
            f"also {', '.join(chosen)}",
            "leave these out",
        )


def _selected_table(arguments: Namespace) -> PaperTable:
    table = find_table(arguments.table)
    texts = (arguments.dataset, arguments.method, arguments.protocol)
    datasets, methods, protocols = map(comma_separated, texts)
    if arguments.quick:
        table = table.shortened()
        datasets, methods = datasets or table.datasets[:1], methods or list(table.quick)
        protocols = protocols or [table.cells[0].protocol]
    return table.select(datasets, methods, protocols)


def _measure_speed(folder: Path, arguments: Namespace) -> None:
    """Run the parts of the benchmarks that have no lines yet for this kind of device."""
    from benchmarks.measure import BenchOptions
    from benchmarks.results import Benchmark, describe_machine, read_json
    from benchmarks.runner import results_path, run_parts
    from haarpool.training.devices import find_device
    from paper.speed import PARTS

    options = BenchOptions(find_device(arguments.device), arguments.quick)
    path = results_path(folder, options)
    measured = Benchmark.read(path).parts if path.exists() and not arguments.retry else set()
    missing = [part for part in PARTS if part not in measured]
    if not missing:
        print(f"{path} is there; measure again with --retry")
        return
    if not read_json(path, describe_machine(options)):
        missing = list(PARTS)  # a file of another machine or of other versions is replaced
    run_parts(options, folder, missing, partial(print, flush=True))


def _train(table: PaperTable, folder: Path, arguments: Namespace) -> int:
    """Train what is missing and return how many trials failed."""
    repeats = arguments.repeats
    if repeats is None:
        repeats = QUICK_REPEATS if arguments.quick else REPEATS

    def check(dataset: str) -> None:
        if find_dataset(dataset, arguments.root) is None:
            got = "generated graphs of this name"
            raise HaarPoolError(f"the published dataset {dataset}", got, REMEDY)

    copy_known(table, folder, repeats, retry=arguments.retry)
    with _resumable(folder / table.name):
        summary = run_table(
            table,
            folder,
            repeats,
            partial(read_graphs, root=arguments.root),
            jobs=arguments.jobs,
            device=arguments.device,
            retry=arguments.retry,
            check=check,
            progress=progress_option(arguments),
            show=partial(print, flush=True),
        )
    return _show(summary)


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Say after Ctrl-C where the finished trials are and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        again = shlex.join(["python", "-m", "paper", *sys.argv[1:]])
        raise KeyboardInterrupt(
            f"interrupted; finished trials are in {folder}; continue with: {again}"
        ) from None


def _show(summary: Summary) -> int:
    """Print how many trials ended how; return how many failed."""
    print(f"{summary.ok} trials ok, {summary.failed} failed, {summary.skipped} were there")
    if summary.failed:
        print("try failed trials again with --retry")
    failed: int = summary.failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
