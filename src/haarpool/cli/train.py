"""`haarpool train`: train, evaluate and save a model."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haarpool._text import count, shorten
from haarpool.cli.chain_arguments import chain_parameters, named_values
from haarpool.cli.flags import add_settings, shell_words
from haarpool.cli.loading import load_for_arch, load_modules
from haarpool.cli.parser import (
    add_data,
    add_output,
    add_recipe,
    new_command,
    target_columns,
)
from haarpool.cli.terminal import print_entry, print_note, progress_option, wrap
from haarpool.datasets.readers.registry import sources
from haarpool.errors import HaarPoolError
from haarpool.training.config import RunConfig
from haarpool.training.presets import BEST, PRESETS, preset

if TYPE_CHECKING:
    from haarpool.tasks import Score
    from haarpool.training.devices import ProcessGroup
    from haarpool.training.run import Run
    from haarpool.training.run_folder import RunFolder

NETWORK = ("arch", "features", "domain", "dropout", "width", "tied", "pooling")
TRAINING = tuple(one.name for one in fields(RunConfig) if one.metadata and one.name not in NETWORK)
RUNS = "runs"  # folder of runs without --out
DATASET = "digits"  # without a name; it needs no network
READING = ("source", "root", "task", "smiles", "targets", "strict")


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    command = new_command(
        commands,
        "train",
        "train, evaluate and save a model",
        "train NCI1 --arch 3GIN64-HP-GIN64-SUM-FC64 --repeats 10 --out runs/nci1",
    )
    loads = (
        "haarpool.chains.clustering",
        "haarpool.datasets.reading",
        "haarpool.training.run_folder",
    )
    command.set_defaults(run=run, loads=loads)
    command.add_argument(
        "source", metavar="DATASET", nargs="?", help=f"{sources()} (default: {DATASET})"
    )
    add_data(command, labels=True)
    network = command.add_argument_group("network")
    network.add_argument(
        "--preset", choices=PRESETS, default="best", help="settings to start from (default: best)"
    )
    by_labels = {"arch": "haarnet; haarunet for labels of nodes"}
    add_settings(network, RunConfig, NETWORK, {**BEST, **by_labels})
    add_recipe(
        command, method="spectral; matching for haarunet", measure="children; mass for haarunet"
    )
    training = command.add_argument_group("training")
    add_settings(training, RunConfig, TRAINING, BEST)
    training.add_argument("--device", default="auto", help="cpu, cuda, ... (default: auto)")
    output = add_output(command)
    output.add_argument(
        "--out", metavar="DIR", help="folder of the run (default: runs/NAME-1, runs/NAME-2, ...)"
    )
    output.add_argument("--resume", metavar="DIR", help="continue an interrupted run")


def run(arguments: Namespace) -> None:
    """Train a new run or continue an earlier one, then print its scores."""
    _check(arguments)
    load_modules(
        ("torch", "haarpool.training.train", "haarpool.training.results", "haarpool.report"),
        arguments,
    )
    from haarpool.training.devices import join_process_group

    with join_process_group(arguments.device) as group:
        begin = _resume_run if arguments.resume else _new_run
        current, folder = begin(arguments, group)
        if current is not None:
            if group.is_main:
                _announce(current, folder, arguments)
            _train(current, folder, arguments)
        if group.is_main:
            _print_result(folder, arguments)


def _check(arguments: Namespace) -> None:
    """Raise errors that need no torch, before it is imported."""
    from haarpool.datasets import find_dataset
    from haarpool.datasets.splits import check_rule
    from haarpool.tasks import find_task
    from haarpool.training.run_folder import RunFolder

    if arguments.resume:
        _check_alone(arguments)
        RunFolder.open(arguments.resume).check_trained()
        return
    arguments.source = arguments.source or DATASET
    find_task(arguments.task)
    load_for_arch(arguments.arch, arguments)
    config = _config(arguments)
    if config.split != "auto":
        check_rule(config.split)
    _read_arguments(arguments)
    if arguments.out:
        RunFolder.check_new(arguments.out)
    find_dataset(arguments.source, arguments.root, download=False)


def _check_alone(arguments: Namespace) -> None:
    """Raise an error if `--resume` comes together with settings."""
    allowed = ("resume", "device", "json", "quiet", "debug", "run", "loads")
    others = {name: value for name, value in vars(arguments).items() if name not in allowed}
    given = {n: value for n, value in others.items() if value is not None and value is not False}
    if changed := [name for name, value in given.items() if value not in ([], "best")]:
        raise HaarPoolError(
            "{resume} without other settings: a run continues with its own",
            ", ".join(shell_words(name) for name in changed),
            "leave these out, or start a new run",
            resume=...,
        )


def _announce(current: Run, folder: RunFolder, arguments: Namespace) -> None:
    """Print what is trained, before it is."""
    plan = _describe_plan(current)
    if arguments.json:
        if plan and not arguments.quiet:
            print_note(plan)
        return
    if targets := folder.config()["data"]["read"].get("targets"):
        print(f"target      {', '.join(targets)}")
    print(f"features    {current.encoding.describe()}")
    if plan:
        print(f"plan        {plan}")
    sys.stdout.flush()


def _describe_plan(current: Run) -> str:
    """Return how many trainings a run consists of, and why; "" if it is one."""
    from haarpool.datasets.splits import num_folds

    config, splits = current.config, len(current.splits)
    folds = num_folds(config.split, current.graphs) or 1
    repeats, of_file = splits // folds, splits > folds * config.repeats
    factors = [(folds, "folds"), (repeats, "splits" if of_file else "repeats")]
    named = [f"{n} {name}" for n, name in [*factors, (config.ensemble, "members")] if n > 1]
    total = splits * config.ensemble
    return f"{total} trainings ({' × '.join(named)})" if named else ""


def _new_run(arguments: Namespace, group: ProcessGroup) -> tuple[Run, RunFolder]:
    from haarpool.datasets import read_graphs
    from haarpool.datasets.splits import as_json
    from haarpool.training.results import describe_run
    from haarpool.training.run import start_run
    from haarpool.training.run_folder import RunFolder

    config, read = _config(arguments), _read_arguments(arguments)
    progress = progress_option(arguments)
    with group.main_first():
        graphs = read_graphs(**read, progress=progress if group.is_main else False)
    new = start_run(graphs, config, group, progress=progress, strict=arguments.strict)
    if not group.is_main:  # it writes nothing
        return new, RunFolder(arguments.out or RUNS)
    command = shlex.join(["haarpool", *sys.argv[1:]])
    content = describe_run(new, command, read), as_json(new.splits)
    if arguments.out:
        return new, RunFolder.create(arguments.out, *content)
    return new, RunFolder.create(Path(RUNS, graphs.name), *content, numbered=True)


def _resume_run(arguments: Namespace, group: ProcessGroup) -> tuple[Run | None, RunFolder]:
    from haarpool.datasets import read_graphs
    from haarpool.datasets.splits import make_splits
    from haarpool.training.results import describe_run
    from haarpool.training.run import start_run
    from haarpool.training.run_folder import CHECKPOINT, CONFIG, RESULT, SPLIT, RunFolder

    folder = RunFolder.open(arguments.resume)
    if folder.has(RESULT) and not folder.has(CHECKPOINT):
        return None, folder  # it is complete
    saved = folder.config()
    try:
        folder.check_registered()
        config, read = RunConfig.from_json(saved["training"]), saved["data"]["read"]
        if not folder.has(SPLIT):
            raise folder.damaged(SPLIT, "it does not exist")
        graphs = read_graphs(**read)
        splits = make_splits(str(folder.path / SPLIT), graphs)
        resumed = start_run(
            graphs, config, group, progress=progress_option(arguments), splits=splits
        )
        now = describe_run(resumed, "", read)
        hashes = {
            "data": (now["data"]["digest"], saved["data"]["digest"]),
            "split": (now["split_digests"], saved["split_digests"]),
            "chains": (now["chain"], saved["chain"]),
        }
    except (KeyError, TypeError) as error:
        raise folder.damaged(CONFIG, error) from error
    for name, (new, old) in hashes.items():
        if new != old:
            raise HaarPoolError(
                f"the same {name} as when {folder.path} was started",
                f"different {name}",
                "start a new run",
            )
    return resumed, folder


def _train(current: Run, folder: RunFolder, arguments: Namespace) -> None:
    import torch

    from haarpool.report import write_report
    from haarpool.training.checkpoint import remove_checkpoint
    from haarpool.training.results import write_results
    from haarpool.training.train import train_run

    group = current.group
    try:
        with folder.locked() if group.is_main else nullcontext():
            resume = bool(arguments.resume)
            train_run(current, folder, resume=resume, progress=progress_option(arguments))
            if group.is_main:  # the checkpoint stays until everything is written
                write_results(current, folder)
                write_report(folder.path)
                remove_checkpoint(folder)
    except KeyboardInterrupt:
        path = shlex.quote(str(folder.path))
        raise KeyboardInterrupt(
            f"interrupted; continue with: haarpool train --resume {path}"
        ) from None
    except torch.OutOfMemoryError as error:
        raise HaarPoolError(
            f"enough memory on {group.device}",
            str(error).split(". ")[0],
            "lower the batch size, now {batch_size}",
            batch_size=current.config.batch_size,
        ) from error


def _print_result(folder: RunFolder, arguments: Namespace) -> None:
    from haarpool.tasks import find_task
    from haarpool.training.results import scored_targets, small_test_part
    from haarpool.training.run_folder import REPORT, RESULT

    result = folder.read_json(RESULT)
    if doubt := small_test_part(result):
        unit = result.get("parts_of", "graphs").removesuffix("s")
        doubt += "" if result["folds"] else f"; --split kfold:K tests every {unit} once"
    if arguments.json:
        if doubt:
            print_note(doubt)
        print(json.dumps(result | {"folder": str(folder.path)}))
        return
    repeats, members = result["repeats"], result.get("members")
    counted = count(repeats, "repeat")
    if (folds := result["folds"] or 1) > 1:
        counted = f"{folds} folds" + (f", {repeats // folds} times" if repeats > folds else "")
    if members:
        counted += f", mean prediction of {result['ensemble']} members"
    if result.get("targets"):
        counted += f", mean over {scored_targets(result)} targets"
    headline = find_task(folder.config()["data"]["task"]).headline
    scores = result["scores"]
    print(f"{result['dataset']}, {result['arch']}")
    print(f"test {_show_scores(headline, scores, 'test')} ({counted})")
    print(f"validation {_show_scores(headline, scores, 'validation')}")
    if members:
        print(f"single members: test {_show_scores(headline, members['scores'], 'test')}")
    if doubt:
        print_entry("warning", wrap(doubt, 12), 10)
    print(f"report      {folder.path / REPORT}")
    print(f"prediction  haarpool predict {shlex.quote(str(folder.path))} INPUT")


def _show_scores(headline: Sequence[Score], scores: Mapping[str, Any], part: str) -> str:
    """Return the main score of a part and those that people compare beside it."""
    return ", ".join(
        f"{one.short} {_show_score(one, scores[one.name][part])}"
        for one in headline
        if one.name in scores
    )


def _show_score(score: Score, statistics: Mapping[str, Any]) -> str:
    from haarpool.training.results import num_defined

    if statistics["mean"] is None:
        return "not defined"
    defined, repeats = num_defined(statistics), len(statistics["each"])
    where = "" if defined == repeats else f" in {defined} of {repeats} repeats"
    return f"{score.show(statistics['mean'], statistics['std'])}{where}"


def _config(arguments: Namespace) -> RunConfig:
    """Return the settings of the preset, changed by the arguments."""
    from haarpool.chains.recipe import PARAMETERS

    settings = dict(preset(arguments.preset, arguments.source))
    given = {name: getattr(arguments, name) for name in (*NETWORK, *TRAINING)}
    if settings == BEST:
        settings["arch"] = "auto"
    settings |= {name: value for name, value in given.items() if value is not None}
    chain = dict(settings.get("chain", {}))
    if arguments.method not in (None, chain.get("method", "spectral")):
        # The options of the preset belong to its method.
        chain = {name: value for name, value in chain.items() if name in PARAMETERS}
    chain |= chain_parameters(arguments) | {"seed": settings.get("seed", 0)}
    settings["chain"] = chain
    if arguments.tied is not None:
        settings["tied"] = _tied(arguments.tied)
    if arguments.pooling is not None:
        settings["pooling"] = named_values(arguments.pooling.split(","), "pooling", ratio=0.8)
    return RunConfig(**settings)


def _tied(text: str) -> Any:
    numbers = text.split(",")
    return tuple(map(int, numbers)) if all(one.isdecimal() for one in numbers) else text


def _read_arguments(arguments: Namespace) -> dict[str, Any]:
    """Return the arguments of `read_graphs`, with absolute paths: a run may be resumed anywhere."""
    from haarpool.datasets import local_source

    read = {name: getattr(arguments, name) for name in READING}
    read["targets"], columns = target_columns(arguments)
    if columns is not None and not read["targets"]:
        got, remedy = "no column besides SMILES", "add a column of labels to the file"
        if columns:
            got = f"{len(columns):,} besides SMILES: {shorten(columns)}"
            remedy = "choose one or several with {targets}"
        raise HaarPoolError(
            f"as a column of {read['source']} to predict",
            got,
            remedy,
            parameter="targets",
            targets=["COLUMN", "COLUMN"],
        )
    path = local_source(read["source"], read["root"])
    if path is not None:
        read["source"] = str(path)
    if read["root"] is not None:
        read["root"] = str(Path(read["root"]).resolve())
    return read
