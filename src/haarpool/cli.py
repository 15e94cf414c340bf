"""The shell command: arguments, errors, exit codes. What commands do stands in `commands`.

Nothing heavy is imported before a command runs, so that `haarpool --help` is instant.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from haarpool import __version__
from haarpool.errors import HaarPoolError, HaarPoolWarning

_EXAMPLES = """\
examples:
  haarpool chain NCI1 --levels 3 --jobs 2 --stats
  haarpool plot chain MUTAG --graph 7 --method spectral,metis --out chains.png
  haarpool cache --info
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well, 2 and one line for bad input."""
    parsed = parser().parse_args(arguments)
    if parsed.run is None:
        parser().print_help()
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("always", HaarPoolWarning)
        warnings.showwarning = _show_warning
        return _run(parsed)


def _run(parsed: argparse.Namespace) -> int:
    try:
        from haarpool import commands

        getattr(commands, parsed.run)(parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # `haarpool ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (HaarPoolError, OSError) as error:  # an OSError: a folder without rights, a full disk
        if parsed.debug:
            raise
        print(f"haarpool: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if parsed.debug:
            raise
        print("haarpool: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, HaarPoolWarning):  # others are for developers
        print(f"haarpool: {message}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--debug", action="store_true", help="show where an error comes from")
    top = argparse.ArgumentParser(
        prog="haarpool",
        description="Haar graph pooling: chains of coarser graphs, Haar wavelets on them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"haarpool {__version__}")
    top.set_defaults(run=None, debug=False)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    _chain(commands, shared)
    _methods(commands, shared)
    _plot(commands, shared)
    _cache(commands, shared)
    return top


def _command(commands: Any, name: str, summary: str, example: str, **more: Any) -> Any:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  haarpool {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )


def _chain(commands: Any, shared: argparse.ArgumentParser) -> None:
    command = _command(
        commands,
        "chain",
        "compute the chains of all graphs of a dataset, into the cache",
        "chain NCI1 --method spectral --levels 3 --jobs 2 --stats",
        parents=[shared],
    )
    command.set_defaults(run="chain")
    _dataset(command)
    _recipe(command)
    work = command.add_argument_group("work")
    work.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes [1]; -1: all cores"
    )
    work.add_argument(
        "--backend", choices=["dask", "ray"], help="work on a cluster that is running"
    )
    work.add_argument("--address", metavar="URL", help="of the cluster, such as tcp://host:8786")
    place = work.add_mutually_exclusive_group()
    place.add_argument("--cache", metavar="DIR", help="folder of the cache [HAARPOOL_CACHE]")
    place.add_argument("--no-cache", action="store_true", help="neither read nor write a cache")
    show = command.add_argument_group("output")
    show.add_argument(
        "--stats", action="store_true", help="per level sizes, edge cut, balance, singletons, time"
    )
    show.add_argument("--json", action="store_true", help="output as JSON, for machines")
    show.add_argument("--quiet", action="store_true", help="no progress bar")


def _dataset(command: Any) -> None:
    command.add_argument("dataset", metavar="DATASET", help="name of a TU dataset, or its folder")
    command.add_argument("--root", metavar="DIR", help="folder that holds datasets [HAARPOOL_DATA]")


def _recipe(command: Any) -> None:
    recipe = command.add_argument_group("chain")
    recipe.add_argument(
        "--method",
        default="spectral",
        metavar="A[,B]",
        help="clustering [spectral]; see `haarpool methods`",
    )
    recipe.add_argument(
        "--levels", type=int, metavar="K", help="steps [as many as it takes to one]"
    )
    recipe.add_argument("--ratio", default="0.5", metavar="R[,R]", help="nodes kept per step [0.5]")
    recipe.add_argument(
        "--sizes", metavar="N,N | paper", help="clusters per step, instead of ratio"
    )
    recipe.add_argument(
        "--open", action="store_true", help="do not merge all nodes in the last step"
    )
    recipe.add_argument("--seed", type=int, default=0, metavar="S", help="[0]")
    recipe.add_argument(
        "--features", action="store_true", help="show the method node labels and attributes"
    )
    recipe.add_argument("--symmetrize", action="store_true", help="one-way edges count both ways")
    recipe.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the method; may be repeated",
    )


def _methods(commands: Any, shared: argparse.ArgumentParser) -> None:
    summary = "list the clustering methods and their options"
    command = _command(commands, "methods", summary, "methods", parents=[shared])
    command.set_defaults(run="methods")
    command.add_argument("--json", action="store_true", help="the same for machines")


def _plot(commands: Any, shared: argparse.ArgumentParser) -> None:
    example = "plot chain MUTAG --graph 7 --method spectral,metis --out chains.png"
    plot = _command(commands, "plot", "draw figures", example)
    plot.set_defaults(run=None)
    figures = plot.add_subparsers(title="figures", metavar="FIGURE", required=True)
    command = _command(
        figures,
        "chain",
        "draw the levels of a chain side by side, clusters coloured",
        example,
        parents=[shared],
    )
    command.set_defaults(run="plot_chain")
    _dataset(command)
    command.add_argument("--graph", type=int, default=0, metavar="I", help="from 0 [0]")
    command.add_argument(
        "--out", default="chain.png", metavar="FILE", help="png, pdf, svg [chain.png]"
    )
    _recipe(command)


def _cache(commands: Any, shared: argparse.ArgumentParser) -> None:
    summary = "show or empty the cache of chains"
    command = _command(commands, "cache", summary, "cache --info", parents=[shared])
    command.set_defaults(run="cache")
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--info", action="store_true", help="where it is, how many chains, how large")
    what.add_argument("--clear", action="store_true", help="remove all chains")
    command.add_argument("--cache", metavar="DIR", help="folder of the cache [HAARPOOL_CACHE]")
    command.add_argument("--json", action="store_true", help="the same for machines")
