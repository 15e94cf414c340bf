"""`haarpool report`: write the report of a run again from its folder."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from haarpool.cli.loading import load_modules
from haarpool.cli.parser import new_command


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "write the report of a run again, from the files in its folder"
    command = new_command(commands, "report", summary, "report runs/MUTAG-1")
    command.set_defaults(run=run, loads=("haarpool.training.run_folder",))
    command.add_argument("run_folder", metavar="RUN", help="folder that `haarpool train` wrote")


def run(arguments: Namespace) -> None:
    """Write `report.html` and print its path."""
    from haarpool.training.run_folder import RunFolder

    folder = RunFolder.open(arguments.run_folder)
    load_modules(("torch", "haarpool.report"), arguments)
    from haarpool.report import write_report

    print(write_report(folder.path))
