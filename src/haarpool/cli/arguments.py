"""All commands of the shell and their arguments; loads nothing else, so that help comes at once."""

from __future__ import annotations

import argparse
from typing import Any

from haarpool import __version__

_EXAMPLES = """examples:
  haarpool train MUTAG --repeats 10
  haarpool train molecules.csv --smiles smiles --target toxic --split scaffold
  haarpool predict runs/MUTAG-1 new.csv --out predictions.csv
"""


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--debug", action="store_true", help="show where an error comes from")
    top = argparse.ArgumentParser(
        prog="haarpool",
        description="Haar graph pooling: train on graphs, predict, build chains of coarser graphs.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"haarpool {__version__}")
    top.set_defaults(run=None, debug=False)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    _train(commands, shared)
    _predict(commands, shared)
    _info(commands, shared)
    _chain(commands, shared)
    _methods(commands, shared)
    _plot(commands, shared)
    _cache(commands, shared)
    _completion(commands, shared)
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


def _train(commands: Any, shared: argparse.ArgumentParser) -> None:
    command = _command(
        commands,
        "train",
        "train, judge and save a model",
        "train NCI1 --arch 3GIN64-HP-GIN64-SUM-FC64 --repeats 10 --out runs/nci1",
        parents=[shared],
    )
    command.set_defaults(run="train.train")
    _source(command, " [MUTAG]")
    _reading(command, labels=True)
    model = command.add_argument_group("network")
    model.add_argument(
        "--preset", choices=["best", "paper"], default="best", help="settings to start from [best]"
    )
    model.add_argument("--arch", metavar="S", help="such as 2GC64-HP-GC64-HP-FC64")
    model.add_argument(
        "--features",
        metavar="A[+B]",
        help="of nodes: labels, attributes, atoms, x, degree, constant [auto]",
    )
    model.add_argument("--domain", choices=["haar", "vertex"], help="of the pooled features")
    model.add_argument("--dropout", type=float, metavar="P")
    model.add_argument("--width", type=int, metavar="N", help="of layers that name none [64]")
    model.add_argument("--tied", metavar="N,N|authors", help="convolutions that share weights")
    _clustering(command, "A")
    how = command.add_argument_group("training")
    how.add_argument("--epochs", type=int, metavar="N", help="at most")
    how.add_argument("--lr", type=float, metavar="R", help="learning rate of Adam")
    how.add_argument("--weight-decay", type=float, metavar="R")
    how.add_argument("--batch-size", type=int, metavar="N", help="graphs per step")
    how.add_argument("--patience", type=int, metavar="N", help="epochs without improvement")
    how.add_argument(
        "--monitor", choices=["loss", "score"], help="of the validation part, chooses the epoch"
    )
    how.add_argument("--schedule", choices=["constant", "cosine"], help="of the learning rate")
    how.add_argument(
        "--class-weights", action="store_const", const=True, help="rare classes count as much"
    )
    how.add_argument("--seed", type=int, metavar="S", help="of everything random [0]")
    how.add_argument("--repeats", type=int, metavar="R", help="each with weights of its own [1]")
    how.add_argument(
        "--split",
        metavar="RULE",
        help="random, scaffold, kfold:K, given, or a JSON file [published, else random]",
    )
    how.add_argument("--device", default="auto", help="cpu, cuda, ... [auto]")
    how.add_argument(
        "--precision", choices=["auto", "float32", "bfloat16"], help="[bfloat16 on a GPU]"
    )
    how.add_argument(
        "--compile", action="store_const", const=True, help="compile the network first"
    )
    how.add_argument("--threads", type=int, metavar="N", help="of the CPU [as many as pay]")
    out = command.add_argument_group("output")
    out.add_argument("--out", metavar="DIR", help="folder of the run [runs/NAME-1, ...]")
    out.add_argument("--resume", metavar="DIR", help="go on with an earlier run, as it was begun")
    _manners(out)


def _predict(commands: Any, shared: argparse.ArgumentParser) -> None:
    command = _command(
        commands,
        "predict",
        "predict with a trained model, a row per graph",
        "predict runs/MUTAG-1 new.csv --out predictions.csv",
        parents=[shared],
    )
    command.set_defaults(run="predict.predict")
    command.add_argument("run_folder", metavar="RUN", help="folder that `haarpool train` made")
    command.add_argument("input", metavar="INPUT", help=_SOURCE)
    _reading(command, labels=False)
    out = command.add_argument_group("output")
    out.add_argument("--out", metavar="FILE", help="CSV to write [to the screen]")
    out.add_argument("--device", default="auto", help="cpu, cuda, ... [auto]")
    out.add_argument("--quiet", action="store_true", help="no progress bar")


def _info(commands: Any, shared: argparse.ArgumentParser) -> None:
    summary = "show a dataset in figures, or this installation"
    command = _command(commands, "info", summary, "info NCI1", parents=[shared])
    command.set_defaults(run="info.info")
    _source(command)
    _reading(command, labels=True)
    command.add_argument("--json", action="store_true", help="the same for machines")


def _completion(commands: Any, shared: argparse.ArgumentParser) -> None:
    summary = "print a script that lets the shell complete commands"
    example = "completion bash > ~/.local/share/bash-completion/completions/haarpool"
    command = _command(commands, "completion", summary, example, parents=[shared])
    command.set_defaults(run="info.completion")
    command.add_argument("shell", choices=["bash", "zsh"])


_SOURCE = "name of a dataset, folder in TU layout, CSV with SMILES, or .pt list of Data"


def _source(command: Any, note: str = "") -> None:
    command.add_argument("source", metavar="DATASET", nargs="?", help=_SOURCE + note)


def _reading(command: Any, *, labels: bool) -> None:
    data = command.add_argument_group("data")
    data.add_argument("--root", metavar="DIR", help="folder that holds datasets [HAARPOOL_DATA]")
    data.add_argument("--smiles", metavar="COL", help="column of a CSV with the molecules [smiles]")
    if labels:
        data.add_argument(
            "--target", dest="targets", metavar="COL[,COL]", help="its columns with the labels"
        )
        data.add_argument(
            "--task", choices=["classification", "regression"], help="[what the labels look like]"
        )
    data.add_argument(
        "--strict", action="store_true", help="stop at a bad SMILES; else it is left out"
    )


def _manners(group: Any) -> None:
    group.add_argument("--json", action="store_true", help="output as JSON, for machines")
    group.add_argument("--quiet", action="store_true", help="no progress bar")


def _clustering(command: Any, methods: str) -> Any:
    chain = command.add_argument_group("chain")
    chain.add_argument(
        "--method", metavar=methods, help="clustering [spectral]; see `haarpool methods`"
    )
    chain.add_argument("--ratio", metavar="R[,R]", help="nodes kept per step [0.5]")
    chain.add_argument("--sizes", metavar="N,N | paper", help="clusters per step, instead of ratio")
    chain.add_argument("--symmetrize", action="store_true", help="one-way edges count both ways")
    chain.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the method; may be repeated",
    )
    return chain


def _chain(commands: Any, shared: argparse.ArgumentParser) -> None:
    command = _command(
        commands,
        "chain",
        "compute the chains of all graphs of a dataset, into the cache",
        "chain NCI1 --method spectral --levels 3 --jobs 2 --stats",
        parents=[shared],
    )
    command.set_defaults(run="chain.chain")
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
    _manners(show)


def _dataset(command: Any) -> None:
    command.add_argument("dataset", metavar="DATASET", help=_SOURCE)
    command.add_argument("--root", metavar="DIR", help="folder that holds datasets [HAARPOOL_DATA]")


def _recipe(command: Any) -> None:
    recipe = _clustering(command, "A[,B]")
    recipe.add_argument(
        "--levels", type=int, metavar="K", help="steps [as many as it takes to one]"
    )
    recipe.add_argument(
        "--open", action="store_true", help="do not merge all nodes in the last step"
    )
    recipe.add_argument("--seed", type=int, default=0, metavar="S", help="[0]")
    recipe.add_argument(
        "--features", action="store_true", help="show the method node labels and attributes"
    )


def _methods(commands: Any, shared: argparse.ArgumentParser) -> None:
    summary = "list the clustering methods and their options"
    command = _command(commands, "methods", summary, "methods", parents=[shared])
    command.set_defaults(run="chain.methods")
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
    command.set_defaults(run="chain.plot_chain")
    _dataset(command)
    command.add_argument("--graph", type=int, default=0, metavar="I", help="from 0 [0]")
    command.add_argument(
        "--out", default="chain.png", metavar="FILE", help="png, pdf, svg [chain.png]"
    )
    _recipe(command)


def _cache(commands: Any, shared: argparse.ArgumentParser) -> None:
    summary = "show or empty the cache of chains"
    command = _command(commands, "cache", summary, "cache --info", parents=[shared])
    command.set_defaults(run="chain.cache")
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--info", action="store_true", help="where it is, how many chains, how large")
    what.add_argument("--clear", action="store_true", help="remove all chains")
    command.add_argument("--cache", metavar="DIR", help="folder of the cache [HAARPOOL_CACHE]")
    command.add_argument("--json", action="store_true", help="the same for machines")
