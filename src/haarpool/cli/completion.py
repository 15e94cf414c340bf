"""`haarpool completion`: print a completion script for the shell."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from haarpool.cli.parser import new_command


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "print a completion script for bash or zsh"
    example = "completion bash > ~/.local/share/bash-completion/completions/haarpool"
    command = new_command(commands, "completion", summary, example)
    command.set_defaults(run=run, loads=())
    command.add_argument("shell", choices=["bash", "zsh"])


def run(arguments: Namespace) -> None:
    """Print the script."""
    from haarpool.cli.parser import make_parser
    from haarpool.errors import import_extra

    shtab = import_extra("shtab", "completion")
    print(shtab.complete(make_parser(), shell=arguments.shell))
