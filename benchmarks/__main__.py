"""`python -m benchmarks`: measure speed and memory."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import RESULTS
from haarpool._modules import module_names
from haarpool.cli import run_safely
from haarpool.cli.flags import comma_separated


def make_parser() -> ArgumentParser:
    """Make the parser."""
    parser = ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed and memory on this machine.",
        epilog="example:\n  python -m benchmarks --device cuda --only timing,training",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(loads=("torch", "benchmarks.runner"))
    parser.add_argument(
        "--device", default="auto", metavar="NAME", help="auto, cpu or cuda (default: auto)"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME[,NAME]",
        help=f"{', '.join(module_names('benchmarks.parts'))} (default: those without a file of "
        "their own)",
    )
    parser.add_argument("--list", action="store_true", help="list the parts and stop")
    parser.add_argument(
        "--layer",
        action="append",
        default=[],
        metavar="NAME",
        help="measure this layer only, in timing and memory; may be repeated (default: all)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="use tiny sizes, where a part has them, and no limits"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="folder of results (default: results)",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run_safely(run, make_parser().parse_args(arguments))


def run(arguments: Namespace) -> int:
    """Print a table while it is measured; return 1 if a limit is missed, else 0."""
    from benchmarks.measure import BenchOptions
    from benchmarks.runner import describe_parts, run_parts
    from haarpool.training.devices import find_device

    if arguments.list:
        print(*describe_parts(), sep="\n")
        return 0
    device = find_device(arguments.device)
    options = BenchOptions(device, arguments.quick, tuple(arguments.layer))
    only, show = comma_separated(arguments.only), partial(print, flush=True)
    return 0 if run_parts(options, arguments.out, only, show) else 1


if __name__ == "__main__":
    sys.exit(main())
