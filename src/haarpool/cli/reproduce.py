"""`haarpool reproduce`: measure the tables of the paper."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Any

from haarpool.cli.flags import comma_separated
from haarpool.cli.loading import load_modules
from haarpool.cli.parser import add_root, new_command
from haarpool.cli.terminal import progress_option
from haarpool.experiments.table import FROM_BENCHMARK, QUICK_REPEATS, REPEATS, TABLES


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    command = new_command(
        commands,
        "reproduce",
        "measure the tables of the paper",
        "reproduce table1 --dataset MUTAG --method haarpool,gin --jobs 2",
    )
    command.set_defaults(run=partial(run, command), loads=("haarpool.experiments.report",))
    tables = (*TABLES, *FROM_BENCHMARK)
    command.add_argument("table", nargs="?", choices=tables, help=f"one of {', '.join(tables)}")
    for name, what in (("dataset", "datasets"), ("method", "methods"), ("protocol", "protocols")):
        command.add_argument(
            f"--{name}", default="", metavar="NAME[,NAME]", help=f"{what} (default: all)"
        )
    command.add_argument(
        "--repeats", type=int, metavar="N", help=f"trials of each method (default: {REPEATS})"
    )
    command.add_argument(
        "--jobs", type=int, metavar="N", help="processes, one thread each (default: 1)"
    )
    command.add_argument("--device", default="auto", help="cpu, cuda, ... (default: auto)")
    add_root(command)
    command.add_argument(
        "--results",
        metavar="DIR",
        help="folder of lines and report (default: results, with --quick results/quick)",
    )
    command.add_argument(
        "--retry", action="store_true", help="try failed trials again, or measure speed again"
    )
    command.add_argument(
        "--quick", action="store_true", help="one dataset, few methods, few epochs, two splits"
    )
    command.add_argument("--list", action="store_true", help="list datasets and methods and stop")
    command.add_argument(
        "--report", action="store_true", help="write the report from the lines and train nothing"
    )
    command.add_argument("--quiet", action="store_true", help="hide progress")


def run(command: ArgumentParser, arguments: Namespace) -> int:
    """Train what is missing and write the report; print help without a table."""
    from haarpool.experiments.report import check_folder, write_report
    from haarpool.experiments.speed import PARTS

    if arguments.table is None and not arguments.report:
        command.print_help()
        return 2
    if arguments.report:
        _check_alone(arguments)
    is_benchmark = arguments.table in FROM_BENCHMARK
    table = None if arguments.report or is_benchmark else _selected_table(arguments)
    if arguments.list:
        names = PARTS if table is None else ["\t".join(cell.key) for cell in table.cells]
        print(*names, sep="\n")
        return 0
    folder = Path(arguments.results or ("results/quick" if arguments.quick else "results"))
    check_folder(folder)
    failed = 0
    if table is not None:
        failed = _train(table, folder, arguments)
    elif not arguments.report:
        _measure_speed(folder, arguments)
    for path in write_report(folder, quick=arguments.quick):
        print(path)
    return 1 if failed else 0


def _check_alone(arguments: Namespace) -> None:
    """Raise an error if the report is asked for together with a selection."""
    from haarpool.errors import HaarPoolError

    names = ("table", "dataset", "method", "protocol", "list", "retry")
    if chosen := [name for name in names if getattr(arguments, name)]:
        raise HaarPoolError(
            "--report alone: it has all tables, datasets and methods",
            f"also {', '.join(chosen)}",
            "leave these out",
        )


def _selected_table(arguments: Namespace) -> Any:
    from haarpool.experiments.table import find_table

    table = find_table(arguments.table)
    texts = (arguments.dataset, arguments.method, arguments.protocol)
    datasets, methods, protocols = map(comma_separated, texts)
    if arguments.quick:
        table = table.shortened()
        datasets, methods = datasets or table.datasets[:1], methods or list(table.quick)
        protocols = protocols or [table.cells[0].protocol]
    return table.select(datasets, methods, protocols)


def _measure_speed(folder: Path, arguments: Namespace) -> None:
    """Run the parts of `haarpool bench` that have no lines yet for this kind of device."""
    from haarpool.bench.measure import BenchOptions
    from haarpool.bench.results import describe_machine, read_json
    from haarpool.bench.runner import results_path, run_parts
    from haarpool.experiments.speed import PARTS, Benchmark
    from haarpool.training.devices import find_device

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


def _train(table: Any, folder: Path, arguments: Namespace) -> int:
    """Train what is missing and return how many trials failed."""
    load_modules(("torch", "haarpool.experiments.runner"), arguments)
    from haarpool.experiments.runner import run_table

    repeats = arguments.repeats
    if repeats is None:
        repeats = QUICK_REPEATS if arguments.quick else REPEATS
    try:
        summary = run_table(
            table,
            folder,
            repeats,
            jobs=1 if arguments.jobs is None else arguments.jobs,
            device=arguments.device,
            root=arguments.root,
            retry=arguments.retry,
            progress=progress_option(arguments),
            show=partial(print, flush=True),
        )
    except KeyboardInterrupt:
        again = shlex.join(["haarpool", *sys.argv[1:]])
        raise KeyboardInterrupt(
            f"interrupted; finished trials are in {folder / table.name}; continue with: {again}"
        ) from None
    print(f"{summary.ok} trials ok, {summary.failed} failed, {summary.skipped} were there")
    if summary.failed:
        print("try failed trials again with --retry")
    failed: int = summary.failed
    return failed
