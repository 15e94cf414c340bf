"""`haarpool compare`: methods on the same splits of your data."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from haarpool.cli.flags import add_settings
from haarpool.cli.loading import load_for, load_for_arch, load_modules
from haarpool.cli.parser import add_data, add_output, new_command, target_columns
from haarpool.cli.terminal import print_note, progress_option, terminal_width, wrap
from haarpool.datasets.readers.registry import sources
from haarpool.errors import HaarPoolError
from haarpool.training.config import RunConfig
from haarpool.training.presets import BEST

OUT = "comparisons"  # folder of comparisons without --out
SETTINGS = ("epochs", "lr", "batch_size", "width", "features", "ensemble")  # of all methods


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    command = new_command(
        commands,
        "compare",
        "compare methods on the same splits",
        "compare BZR --method haarnet --method haarnet:levels=0 --repeats 10 --jobs 2",
    )
    loads = ("haarpool.chains.clustering", "haarpool.datasets.reading")
    command.set_defaults(run=run, loads=loads)
    command.add_argument("sources", metavar="DATASET", nargs="+", help=f"{sources()}; several")
    add_data(command, labels=True)
    methods = command.add_argument_group("methods")
    methods.add_argument(
        "--method",
        action="append",
        dest="methods",
        metavar="NAME",
        help="an architecture, plain-TOKEN (a pooling in the plain network), best, paper, or a "
        "JSON file of settings; may be repeated; the others are compared with the first one "
        "(default: haarnet, the same without pooling, and each pooling in the plain network)",
    )
    add_settings(methods, RunConfig, SETTINGS, BEST)
    trials = command.add_argument_group("trainings")
    trials.add_argument("--repeats", type=int, default=10, metavar="N", help="splits (default: 10)")
    add_settings(trials, RunConfig, ("split", "seed"))
    trials.add_argument(
        "--jobs", dest="n_jobs", type=int, default=1, metavar="N",
        help="processes, one thread each (default: 1)",
    )  # fmt: skip
    trials.add_argument("--device", default="auto", help="cpu, cuda, ... (default: auto)")
    trials.add_argument("--retry", action="store_true", help="train again what failed")
    output = add_output(command)
    output.add_argument(
        "--out",
        metavar="DIR",
        help="folder of lines and tables; what is there is not trained again (default: "
        "comparisons/NAME)",
    )


def run(arguments: Namespace) -> int:
    """Train what is missing, then print tables and what they allow to say."""
    for source in arguments.sources:
        load_for(source, arguments.root, arguments)
    for method in arguments.methods or ():
        load_for_arch(method, arguments)
    load_modules(("torch", "haarpool.comparison.comparison"), arguments)
    from haarpool.comparison.comparison import compare, make_table

    datasets = _read(arguments)
    folder = Path(arguments.out or Path(OUT, "+".join(datasets)))
    given = {name: getattr(arguments, name) for name in SETTINGS}
    settings = {name: value for name, value in given.items() if value is not None}
    options: dict[str, Any] = {
        "methods": arguments.methods,
        "split": arguments.split or "auto",
        "seed": arguments.seed or 0,
        "settings": settings,
    }
    table = make_table(datasets, **options)
    if not arguments.quiet:
        total = len(table.trials(arguments.repeats))
        parts = [(len(datasets), "datasets"), (len(table.rows), "methods"),
                 (arguments.repeats, "repeats")]  # fmt: skip
        factors = " × ".join(f"{n} {name}" for n, name in parts if n != 1)
        print_note(f"{total} trainings ({factors or 'one repeat'}), in {folder}")
    try:
        result = compare(
            datasets,
            **options,
            repeats=arguments.repeats,
            n_jobs=arguments.n_jobs,
            device=arguments.device,
            folder=folder,
            retry=arguments.retry,
            progress=progress_option(arguments),
        )
    except KeyboardInterrupt:
        again = shlex.join(["haarpool", *sys.argv[1:]])
        raise KeyboardInterrupt(f"interrupted; continue with: {again}") from None
    failed = sum(row["failed"] for row in result.rows())
    if arguments.json:
        content = {"rows": result.rows(), "conclusions": result.conclusions()}
        print(json.dumps(content | {"folder": str(folder)}, ensure_ascii=False))
        return 1 if failed else 0
    for grid in result.grids():
        print(grid.caption, grid.as_text(terminal_width()), "", sep="\n")
    for text in [*result.failed(), *result.conclusions()]:
        print("\n".join(wrap(text, 0, "  ")))
    print(f"tables and figure: {folder / 'report.html'}")
    return 1 if failed else 0


def _read(arguments: Namespace) -> dict[str, Any]:
    """Read the datasets, by name."""
    from haarpool.datasets import read_graphs

    datasets: dict[str, Any] = {}
    for source in arguments.sources:
        one = Namespace(**vars(arguments) | {"source": source})
        targets, columns = target_columns(one)
        if columns is not None and not targets:
            expected = f"a column of {source} to predict"
            raise HaarPoolError(
                expected, f"{len(columns)} besides SMILES", "choose with {targets}", targets="COL"
            )
        graphs = read_graphs(
            source,
            arguments.root,
            task=arguments.task,
            smiles=arguments.smiles,
            targets=targets,
            strict=arguments.strict,
            progress=progress_option(arguments),
        )
        if graphs.name in datasets:
            expected = "datasets with different names"
            raise HaarPoolError(expected, f"{graphs.name} twice", "compare them one by one")
        datasets[graphs.name] = graphs
    return datasets
