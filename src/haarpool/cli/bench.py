"""`haarpool bench`: measure speed and memory."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from haarpool.cli.flags import comma_separated
from haarpool.cli.parser import new_command


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "measure speed and memory on this machine"
    command = new_command(commands, "bench", summary, "bench --device cuda --only timing,training")
    command.set_defaults(run=run, loads=("torch", "haarpool.bench.runner"))
    command.add_argument(
        "--device", default="auto", metavar="NAME", help="auto, cpu or cuda (default: auto)"
    )
    command.add_argument(
        "--only",
        default="",
        metavar="NAME[,NAME]",
        help="timing, eager, transforms, growth, training, memory, chains, collating "
        "(default: all)",
    )
    command.add_argument(
        "--layer",
        action="append",
        default=[],
        metavar="NAME",
        help="measure this layer only, in timing and memory; may be repeated (default: all)",
    )
    command.add_argument("--quick", action="store_true", help="use tiny sizes and no limits")
    command.add_argument(
        "--out", default="results", metavar="DIR", help="folder of results (default: results)"
    )


def run(arguments: Namespace) -> int:
    """Print a table while it is measured; return 1 if a limit is missed, else 0."""
    from haarpool.bench.measure import BenchOptions
    from haarpool.bench.runner import run_parts
    from haarpool.training.devices import find_device

    device = find_device(arguments.device)
    options = BenchOptions(device, arguments.quick, tuple(arguments.layer))
    only, show = comma_separated(arguments.only), partial(print, flush=True)
    return 0 if run_parts(options, Path(arguments.out), only, show) else 1
