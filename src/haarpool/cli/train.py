"""`haarpool train`: from a dataset to a trained, judged and saved model."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from haarpool.cli.chain import chain_settings
from haarpool.datasets import local_source, read_graphs
from haarpool.datasets.splits import as_json, make_splits
from haarpool.errors import HaarPoolError
from haarpool.report import Predictions, RunRecord, write_report
from haarpool.training.config import RunConfig
from haarpool.training.devices import Team, join_team
from haarpool.training.presets import preset
from haarpool.training.repeats import go, write_results
from haarpool.training.run import Run, describe, start_run
from haarpool.training.run_folder import CHECKPOINT, REPORT, RESULT, SPLIT, RunFolder

# Arguments of the command that are settings of the run by the same name.
_SETTINGS = (
    "arch", "features", "domain", "dropout", "width", "epochs", "lr", "weight_decay", "batch_size",
    "patience", "monitor", "schedule", "class_weights", "seed", "repeats", "split", "precision",
    "compile", "threads",
)  # fmt: skip
_READING = ("source", "root", "task", "smiles", "targets", "strict")


def train(arguments: Namespace) -> None:
    """`haarpool train`."""
    with join_team(arguments.device) as team:
        begin = _resume if arguments.resume else _begin
        run, folder = begin(arguments, team)
        if run is not None:
            _go(run, folder, arguments)
        if team.leads:
            _show(folder, arguments)


def _begin(arguments: Namespace, team: Team) -> tuple[Run, RunFolder]:
    """A new run, in a new folder."""
    arguments.source = arguments.source or "MUTAG"
    config, read = _config(arguments), _reading(arguments)
    out = Path(arguments.out) if arguments.out else None
    if out is not None and team.leads:
        RunFolder.check_new(out)  # before the work
    with team.leader_first():
        graphs = read_graphs(**read)
    run = start_run(graphs, config, team, progress=_bars(arguments))
    out = out or _free(Path("runs"), graphs.name)
    folder = RunFolder(out)
    if team.leads:
        about = describe(run, _command(), read)
        folder = RunFolder.create(out, about, as_json(run.splits))
    return run, folder


def _resume(arguments: Namespace, team: Team) -> tuple[Run | None, RunFolder]:
    """An earlier run, with the settings that it had."""
    own = ("resume", "device", "json", "quiet", "debug", "run")
    given = {name: value for name, value in vars(arguments).items() if name not in own}
    if changed := [n for n, value in given.items() if value not in (None, [], False, "best")]:
        raise HaarPoolError(
            "--resume by itself: a run goes on as it was begun",
            ", ".join(changed),
            "leave these out, or start a new run",
        )
    folder = RunFolder.open(arguments.resume)
    if folder.has(RESULT) and not folder.has(CHECKPOINT):
        return None, folder  # it is complete
    saved = folder.config()
    try:
        config, read = RunConfig.from_json(saved["training"]), saved["data"]["read"]
        if not folder.has(SPLIT):
            raise folder.damaged(SPLIT, "it is not there")
        graphs = read_graphs(**read)
        splits = make_splits(str(folder.path / SPLIT), graphs)
        run = start_run(graphs, config, team, progress=_bars(arguments), splits=splits)
        now, then = describe(run, "", read), saved
        hashes = {
            "data": (now["data"]["digest"], then["data"]["digest"]),
            "split": (now["split_digests"], then["split_digests"]),
            "chains": (now["chain"], then["chain"]),
        }
    except (KeyError, TypeError) as error:
        raise folder.damaged("config.json", error) from error
    for what, (own, saved_one) in hashes.items():
        if own != saved_one:
            raise HaarPoolError(
                f"the same {what} as when {folder.path} was begun",
                f"another {what}",
                "start a new run",
            )
    return run, folder


def _go(run: Run, folder: RunFolder, arguments: Namespace) -> None:
    try:
        with folder.locked() if run.team.leads else nullcontext():
            _train(run, folder, arguments)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; go on with: haarpool train --resume {folder.path}"
        ) from None
    except torch.OutOfMemoryError as error:
        raise HaarPoolError(
            f"enough memory on {run.team.device}",
            str(error).split(". ")[0],
            f"lower --batch-size, now {run.config.batch_size}",
        ) from error


def _train(run: Run, folder: RunFolder, arguments: Namespace) -> None:
    go(run, folder, resume=bool(arguments.resume), progress=_bars(arguments))
    if run.team.leads:
        _keep(run, folder)


def _keep(run: Run, folder: RunFolder) -> None:
    """All results; as long as one is missing, the checkpoint stays."""
    write_results(run, folder)
    chains = run.chains
    shown = (chains.example, f"graph {chains.number}") if chains else (None, "")
    write_report(folder.path, _record(run, folder), *shown)
    folder.remove(CHECKPOINT)


def _record(run: Run, folder: RunFolder) -> RunRecord:
    """What the report shows."""
    graph = np.concatenate([split.test for split in run.splits])
    repeat = np.repeat(np.arange(len(run.splits)), [len(split.test) for split in run.splits])
    predicted = np.concatenate([outcome.predicted for outcome in run.outcomes])
    if run.graphs.task == "classification":
        predicted = predicted.argmax(axis=1)
    assert run.graphs.targets is not None
    test = Predictions(repeat, graph, run.graphs.targets[graph], predicted)
    epochs = [epoch._asdict() for epoch in run.epochs]
    return RunRecord(folder.config(), epochs, run.result(), test)


def _show(folder: RunFolder, arguments: Namespace) -> None:
    result = folder.read_json(RESULT)
    if arguments.json:
        print(json.dumps(result | {"folder": str(folder.path)}))
        return
    metric, many = result["metric"], result["repeats"]
    scores = result["scores"][metric]
    repeats = "1 repeat" if many == 1 else f"{many} repeats"
    if folds := result["folds"]:
        repeats = f"{folds} folds" + (f", {many // folds} times" if many > folds else "")
    shown = {part: _number(metric, scores[part]) for part in ("test", "validation")}
    print(f"{result['dataset']}, {result['arch']}")
    print(f"test {metric} {shown['test']} ({repeats}), validation {shown['validation']}")
    print(f"report      {folder.path / REPORT}")
    print(f"prediction  haarpool predict {shlex.quote(str(folder.path))} INPUT")


def _number(metric: str, found: Mapping[str, Any]) -> str:
    factor, unit, digits = (100, " %", ".1f") if metric == "accuracy" else (1, "", ".4g")
    spread = "" if found["std"] is None else f" ± {factor * found['std']:{digits}}"
    return f"{factor * found['mean']:{digits}}{spread}{unit}"


def _config(arguments: Namespace) -> RunConfig:
    """The preset, and what the command says differently."""
    settings = dict(preset(arguments.preset, str(arguments.source)))
    given = {name: getattr(arguments, name) for name in _SETTINGS}
    settings |= {name: value for name, value in given.items() if value is not None}
    chain = dict(settings.get("chain", {})) | chain_settings(arguments)
    settings["chain"] = chain | {"seed": settings.get("seed", 0)}
    if arguments.tied is not None:
        settings["tied"] = _tied(arguments.tied)
    return RunConfig(**settings)


def _tied(text: str) -> Any:
    numbers = text.split(",")
    if text != "authors" and not all(number.isdecimal() for number in numbers):
        raise HaarPoolError(
            "--tied authors or numbers", f"{text!r}", "say for example --tied 0,1,1"
        )
    return text if text == "authors" else tuple(map(int, numbers))


def _reading(arguments: Namespace) -> dict[str, Any]:
    read = {name: getattr(arguments, name) for name in _READING}
    read["targets"] = [one for one in (read["targets"] or "").split(",") if one]
    if (path := local_source(read["source"], read["root"])) is not None:
        read["source"] = str(path)  # so that it is found from wherever the run is resumed
    if read["root"] is not None:
        read["root"] = str(Path(read["root"]).resolve())
    return read


def _free(parent: Path, name: str) -> Path:
    """The first folder runs/NAME-1, runs/NAME-2, ... that is not there."""
    return next(p for n in count(1) if not (p := parent / f"{name}-{n}").exists())


def _bars(arguments: Namespace) -> bool | None:
    return False if arguments.quiet else None


def _command() -> str:
    return shlex.join(["haarpool", *sys.argv[1:]])
