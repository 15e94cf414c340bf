"""`haarpool compare`: methods on the same splits of your data."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from haarpool._text import count
from haarpool.cli.flags import add_settings, shell_words
from haarpool.cli.loading import load_for, load_for_arch, load_modules
from haarpool.cli.parser import add_data, add_output, new_command, target_columns
from haarpool.cli.terminal import print_note, progress_option, terminal_width, wrap
from haarpool.comparison import check_amounts
from haarpool.datasets.readers.registry import sources
from haarpool.errors import HaarPoolError, python_words
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
        "JSON file of settings; may be repeated; the others are compared with the first one, "
        "plain-TOKEN with plain (default: haarnet, the same without pooling, plain, and each "
        "pooling in the plain network)",
    )
    add_settings(methods, RunConfig, SETTINGS, BEST)
    trials = command.add_argument_group("trainings")
    trials.add_argument(
        "--repeats", type=int, default=10, metavar="N",
        help="splits; with folds, trainings of each fold (default: 10)",
    )  # fmt: skip
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
    check_amounts(arguments.repeats, arguments.n_jobs)
    try:
        return _run(arguments)
    except HaarPoolError as error:
        raise HaarPoolError(*error.texts(words)) from error


def words(name: str, value: Any = ...) -> str:
    """Return a parameter as the shell writes it, if this command has a flag for it."""
    given = ("split", "seed", "repeats", "n_jobs", "device", "source", "root", "smiles", "targets")
    if name in (*SETTINGS, *given, "task", "strict"):
        return shell_words(name, value)
    if name == "arch" and value is not ...:
        return f"--method {value}"
    return "--method" if name == "methods" else python_words(name, value)


def _run(arguments: Namespace) -> int:
    for source in arguments.sources:
        load_for(source, arguments.root, arguments)
    for method in arguments.methods or ():
        load_for_arch(method, arguments)
    load_modules(("torch", "haarpool.comparison.comparison"), arguments)
    from haarpool.comparison.comparison import RESULT, check_out, make_table, train_table

    datasets = _read(arguments)
    folder = Path(arguments.out or Path(OUT, "+".join(datasets)))
    given = {name: getattr(arguments, name) for name in SETTINGS}
    settings = {name: value for name, value in given.items() if value is not None}
    split, seed, repeats = arguments.split or "auto", arguments.seed or 0, arguments.repeats
    check_out(folder)
    table = make_table(datasets, arguments.methods, split, seed, settings, repeats)
    if not arguments.quiet:
        trainings = count(len(table.trials(repeats)), "training")
        folds = {cell.folds for cell in table.cells}
        parts = [(len(datasets), "datasets"), (len(table.rows), "methods"),
                 (repeats, "repeats"), (max(folds) if len(folds) == 1 else 1, "folds")]  # fmt: skip
        factors = " × ".join(f"{n} {name}" for n, name in parts if n != 1)
        print_note(f"{trainings} ({factors or 'one repeat'}), in {folder}")
    try:
        result = train_table(
            table,
            datasets,
            folder,
            repeats,
            jobs=arguments.n_jobs,
            device=arguments.device,
            retry=arguments.retry,
            progress=progress_option(arguments),
            show=lambda text: None,
            words=words,
        )
    except KeyboardInterrupt:
        again = shlex.join(["haarpool", *sys.argv[1:]])
        raise KeyboardInterrupt(f"interrupted; continue with: {again}") from None
    failed = sum(row["failed"] for row in result.rows())
    if arguments.json:
        print((folder / RESULT).read_text("utf-8"), end="")
        return 1 if failed else 0
    for grid in result.grids():
        print(*wrap(grid.caption, 0), grid.as_text(terminal_width()), "", sep="\n")
    for text in result.conclusions():
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
