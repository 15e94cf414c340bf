"""`haarpool methods`: list the clustering methods, or the layers of architectures."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from haarpool.cli.parser import new_command
from haarpool.cli.terminal import print_entry, wrap


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "list the clustering methods, or layers, and their options"
    command = new_command(commands, "methods", summary, "methods --layers")
    command.set_defaults(run=run, loads=("haarpool.chains.clustering",))
    command.add_argument(
        "--layers", action="store_true", help="list the layers of --arch, by token"
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> None:
    """Print each method or layer with its options and their defaults."""
    entries = _layers() if arguments.layers else _methods()
    if arguments.json:
        data = {name: {"summary": text, "options": options} for name, text, options, _ in entries}
        print(json.dumps(data))
        return
    width = max(len(name) for name, *_ in entries)
    for name, text, options, further in entries:
        lines = wrap(text, width + 2)
        shown = [*further, *(f"{option}={value}" for option, value in options.items())]
        if shown:
            lines += wrap(f"options: {', '.join(shown)}", width + 2)
        print_entry(name, lines, width)


# Name, summary, options with their defaults, further options.
Entry = tuple[str, str, Mapping[str, Any], Sequence[str]]


def _methods() -> list[Entry]:
    from haarpool.chains.clustering import clusterings, find_method

    methods = {name: find_method(name, {}) for name in clusterings()}
    return [
        (name, one.summary, one.options, ["--features"] * one.takes_features)
        for name, one in methods.items()
    ]


def _layers() -> list[Entry]:
    from haarpool.nn.strings.registry import registered_layers

    return [
        (
            token,
            f"{one.kind}: {one.summary}",
            {name: option.default for name, option in one.options.items() if name != "domain"},
            [],
        )
        for token, one in registered_layers().items()
    ]
