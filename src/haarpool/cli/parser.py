"""The parser of the shell command; what several commands share."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from typing import Any

from haarpool import __version__
from haarpool._modules import module_names
from haarpool.chains.recipe import Recipe
from haarpool.cli.flags import add_settings, comma_separated
from haarpool.errors import HaarPoolError

# Commands of earlier versions, and what does their work in a clone of the repository.
MOVED = {"bench": "python -m benchmarks", "reproduce": "python -m paper"}
COMMANDS = (
    "train", "predict", "report", "compare", "info", "chain", "methods", "plot", "cache",
    "completion",
)  # fmt: skip

_EXAMPLES = """examples:
  haarpool train digits --repeats 3
  haarpool compare molecules.csv --smiles smiles --target toxic --split scaffold
  haarpool predict runs/digits-1 digits
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help in which the longest name of a command and its summary share a line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 4 + max(map(len, COMMANDS))  # argparse forgets the indent

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        if isinstance(action, argparse._SubParsersAction):
            return text.partition("\n")[2]  # without a line that says COMMAND
        return text


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="haarpool",
        description="Haar graph pooling: train on graphs, predict, build chains of graphs.",
        epilog=_EXAMPLES,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"haarpool {__version__}")
    parser.set_defaults(run=None, debug=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"haarpool.cli.{name}").add_command(commands)
    for name in MOVED:
        # Not in the list of commands; without prefixes of options it takes them all.
        command = commands.add_parser(name, add_help=False, prefix_chars="\0")
        command.add_argument("rest", nargs=argparse.REMAINDER)
        command.set_defaults(run=partial(_say_where, name))
    return parser


def _say_where(name: str, arguments: argparse.Namespace) -> int:
    raise HaarPoolError(
        "a command of haarpool",
        name,
        f"it is now {MOVED[name]}, in a clone of the repository",
    )


def new_command(commands: Any, name: str, summary: str, example: str) -> argparse.ArgumentParser:
    """Add a command without arguments; its example does not begin with `haarpool`."""
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  haarpool {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return command


def add_root(group: Any) -> None:
    """Add the argument on the folder of datasets."""
    group.add_argument("--root", metavar="DIR", help="folder of datasets (default: HAARPOOL_DATA)")


def add_data(command: argparse.ArgumentParser, *, labels: bool) -> None:
    """Add the arguments that `read_graphs` takes, those about labels only if asked for."""
    data = command.add_argument_group("data")
    add_root(data)
    data.add_argument("--smiles", metavar="COL", help="SMILES column of a CSV file")
    if labels:
        data.add_argument(
            "--target",
            dest="targets",
            metavar="COL[,COL]",
            help="label columns of a CSV file (default: the only one besides SMILES)",
        )
        data.add_argument(
            "--task",
            metavar="NAME",
            help=f"type of the labels: {', '.join(module_names('haarpool.tasks'))}, "
            "or a task of an installed package (default: inferred)",
        )
    stops = "an invalid SMILES" + (", or a part without one of the classes" if labels else "")
    data.add_argument("--strict", action="store_true", help=f"stop at {stops}; default: warn")


def target_columns(arguments: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    """Return the columns of `--target`, and all columns of a table besides SMILES.

    Without `--target`, the target is the only column.
    """
    from haarpool.datasets import columns_to_predict

    columns = columns_to_predict(arguments.source, arguments.root, smiles=arguments.smiles)
    if not arguments.targets:
        return (columns if columns and len(columns) == 1 else []), columns
    text = arguments.targets.strip()
    if columns and text in columns:  # the name of one column may contain commas
        return [text], columns
    return comma_separated(text), columns


def add_output(command: argparse.ArgumentParser) -> Any:
    """Add the arguments on output that several commands share."""
    output = command.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--quiet", action="store_true", help="hide progress")
    return output


def add_recipe(command: argparse.ArgumentParser, *names: str, **defaults: str) -> Any:
    """Add arguments for parameters of `Recipe`, those that all commands have and `names`.

    Args:
        command: The command.
        *names: Further parameters.
        **defaults: Defaults for the help text that differ from those of `Recipe`.
    """
    group = command.add_argument_group("chain")
    shared = ("method", "ratio", "sizes", "order", "measure", "symmetrize")
    add_settings(group, Recipe, (*shared, *names), defaults)
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the clustering method, may be repeated",
    )
    return group


def add_full_recipe(command: argparse.ArgumentParser) -> None:
    """Add arguments for all parameters of `Recipe`."""
    group = add_recipe(command, "num_levels", "seed")
    group.add_argument(
        "--open", action="store_true", help="do not merge all nodes in the last step"
    )
    group.add_argument(
        "--features", action="store_true", help="cluster by node labels and attributes, too"
    )
