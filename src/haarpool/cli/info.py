"""`haarpool info`: print statistics of a dataset, or versions, devices and datasets."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from typing import Any

from haarpool._numbers import fixed
from haarpool.cli.loading import load_for, load_modules
from haarpool.cli.parser import add_data, new_command, target_columns
from haarpool.cli.terminal import print_entry, wrap
from haarpool.datasets.readers.registry import sources

_MOST = 30  # columns or classes that are printed; JSON has all of them


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "print dataset statistics, or installed versions and devices"
    command = new_command(commands, "info", summary, "info NCI1")
    command.set_defaults(run=run, loads=("haarpool.datasets.reading",))
    command.add_argument("source", metavar="DATASET", nargs="?", help=sources())
    add_data(command, labels=True)
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> None:
    """Print names and values, one line each."""
    about = _installation(arguments) if arguments.source is None else _dataset(arguments)
    if arguments.json:
        print(json.dumps(about))
        return
    if arguments.source is not None:
        about = {name: _first(value) for name, value in about.items()}
    width = max(map(len, about))
    for name, value in about.items():
        print_entry(name, _lines(value, width + 2), width)


def _dataset(arguments: Namespace) -> dict[str, Any]:
    from haarpool.datasets import read_graphs
    from haarpool.datasets.encoding import Encoding
    from haarpool.datasets.summary import summary

    load_for(arguments.source, arguments.root, arguments)
    names = ("source", "root", "task", "smiles", "strict")
    read = {name: getattr(arguments, name) for name in names}
    targets, columns = target_columns(arguments)
    graphs = read_graphs(**read, targets=targets)
    about = {"dataset": graphs.name} | summary(graphs)
    if columns and not targets:
        about["columns to predict"] = columns
    return about | {"features": Encoding.fit(graphs).describe()}


def _installation(arguments: Namespace) -> dict[str, Any]:
    load_modules(("torch",), arguments)
    import torch

    from haarpool._versions import INSTALLATION, find_versions
    from haarpool.chains.cache import cache_folder
    from haarpool.datasets import known_datasets

    known = known_datasets(arguments.root)
    devices = [f"cpu, {torch.get_num_threads()} threads"]
    devices += [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        **{name: one or "not installed" for name, one in find_versions(*INSTALLATION).items()},
        "devices": devices,
        "cache": str(cache_folder()),
        "data": os.environ.get("HAARPOOL_DATA") or "HAARPOOL_DATA is not set",
        "datasets": {name: where for name, where in known if where != "download"},
        "to download": [name for name, where in known if where == "download"],
    }


def _first(value: Any) -> Any:
    """Return the first of many columns or classes, and how many more there are."""
    if isinstance(value, Mapping) and len(value) > _MOST:
        if all(isinstance(one, Mapping) for one in value.values()):  # a line each
            more = {"further": f"{len(value) - _MOST:,} more"}
            return dict(islice(value.items(), _MOST)) | more
        value = [f"{name}: {_text(one)}" for name, one in value.items()]
    if isinstance(value, list) and len(value) > _MOST:
        return [*value[:_MOST], f"and {len(value) - _MOST:,} more"]
    return value


def _lines(value: Any, indent: int) -> list[str]:
    """Return a value as lines of text; of a mapping, each entry that is no number has its own."""
    if not isinstance(value, Mapping) or all(isinstance(v, int | float) for v in value.values()):
        return wrap(_line(value), indent)
    lines = []
    for name, one in value.items():
        text = _line(one)
        # A name and its path share a line.
        lines += wrap(f"{name}: {text}", indent, "  ") if " " in text else [f"{name}: {text}"]
    return lines


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        value = [f"{name}: {_text(one)}" for name, one in value.items()]
    return (
        ", ".join(map(_text, value)) or "none" if isinstance(value, list | tuple) else _text(value)
    )


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return fixed(value, 2) if isinstance(value, float) else str(value)
