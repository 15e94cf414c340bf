"""`haarpool methods`: list the clustering methods."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from haarpool.cli.parser import new_command
from haarpool.cli.terminal import print_entry, wrap


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "list the clustering methods and their options"
    command = new_command(commands, "methods", summary, "methods")
    command.set_defaults(run=run, loads=("haarpool.chains.clustering",))
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> None:
    """Print each method with its options and their defaults."""
    from haarpool.chains.clustering import clusterings, find_method

    methods = {name: find_method(name, {}) for name in clusterings()}
    if arguments.json:
        data = {n: {"summary": m.summary, "options": m.options} for n, m in methods.items()}
        print(json.dumps(data))
        return
    width = max(map(len, methods))
    for name, method in methods.items():
        lines = wrap(method.summary, width + 2)
        options = [f"{option}={value}" for option, value in method.options.items()]
        if method.takes_features:
            options.insert(0, "--features")
        if options:
            lines += wrap(f"options: {', '.join(options)}", width + 2)
        print_entry(name, lines, width)
