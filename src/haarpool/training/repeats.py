"""Going through the repeats of a run, with a checkpoint after every epoch."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from haarpool._files import written_whole
from haarpool.nn import Architecture, Network
from haarpool.training.devices import repeatable
from haarpool.training.loop import Epoch, Fit, Progress
from haarpool.training.metrics import LOWER_IS_BETTER, SCORES, scores_of
from haarpool.training.run import Outcome, Run, make_network
from haarpool.training.run_folder import CHECKPOINT, RESULT, TEST, RunFolder
from haarpool.training.trained_model import (
    Scale,
    TrainedModel,
    model_tensors,
    save_model,
    scale_from,
    strip_prefix,
    threads_for,
    to_predictions,
)


def go(
    run: Run, folder: RunFolder | None = None, *, resume: bool = False, progress: bool | None = None
) -> Run:
    """Train all repeats that are not done yet.

    Args:
        run: from `start_run`.
        folder: where to keep it; only the leader of the team writes.
        resume: whether to go on from the checkpoint there.
        progress: whether to show a bar; `None` shows it on a terminal.
    """
    arch, config = Architecture.parse(run.config.arch), run.config
    with (
        threads_for(arch, run.graphs, config.batch_size, config.threads),
        repeatable(run.team.device),
    ):
        return _go(run, folder, resume, progress)


def _go(run: Run, folder: RunFolder | None, resume: bool, progress: bool | None) -> Run:
    fit = None
    if resume and folder is not None:
        try:
            fit = _restore(run, folder)
        except (KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
            raise folder.damaged(CHECKPOINT, error) from error
    keep = folder if run.team.leads else None
    hidden = (None if progress is None else not progress) if run.team.leads else True
    for repeat in range(len(run.outcomes), len(run.splits)):
        fit = fit or _new_fit(run, repeat)
        steps = math.ceil(len(run.splits[repeat].train) / run.config.batch_size)
        label = f"{run.graphs.name} {repeat + 1}/{len(run.splits)}"
        total, done = run.config.epochs * steps, fit.progress.epoch * steps
        with tqdm(
            total=total, initial=done, desc=label, unit=" steps", disable=hidden, leave=False
        ) as bar:
            while not fit.progress.stops(run.config):
                epoch = fit.run_epoch(bar.update)
                run.epochs.append(epoch)
                bar.set_postfix_str(_shown(epoch, fit))
                if keep is not None:
                    keep.append(epoch._asdict())
                    _save(run, fit, keep)
        _finish(run, fit)
        fit = None
        if keep is not None:
            _save(run, None, keep)
    return run


def _shown(epoch: Epoch, fit: Fit) -> str:
    metric = SCORES[fit.task][0]
    return (
        f"loss {epoch.train_loss:.3f}, validation {metric} {epoch.validation_score:.3f}, "
        f"best epoch {fit.progress.best_epoch}"
    )


def _new_fit(run: Run, repeat: int) -> Fit:
    network = make_network(run.config, run.graphs, run.encoding, repeat).to(run.team.device)
    split = run.splits[repeat]
    return Fit(network, run.batches, run.graphs, split, run.config, repeat, run.team)


def _finish(run: Run, fit: Fit) -> None:
    """Judge the best epoch of a repeat; the model of the repeat that validates best is kept."""
    fit.take_best()
    scores, output = {}, {}
    for part in ("validation", "test"):
        graphs = getattr(fit.split, part)
        output[part] = fit.outputs(graphs)
        predicted = to_predictions(output[part], fit.task, fit.scale)
        scores[part] = scores_of(fit.task, predicted, fit.targets[graphs]) if len(graphs) else {}
    outcome = Outcome(fit.progress.best_epoch, scores["validation"], scores["test"], predicted)
    run.outcomes.append(outcome)
    metric = SCORES[fit.task][0]
    each = [outcome.validation[metric] for outcome in run.outcomes]
    best = int(np.argmin(each) if metric in LOWER_IS_BETTER else np.argmax(each))
    if best == len(each) - 1:
        run.model_of, run.trained = best, _trained(run, fit.network, fit.scale)


def _trained(run: Run, network: Network, scale: Scale | None) -> TrainedModel:
    graphs, config = run.graphs, run.config
    names = (graphs.classes, graphs.target_names)
    return TrainedModel(network.eval(), run.encoding, network.task, *names, scale, config.chain)


# ---------------------------------------------------------------------- checkpoints


def _save(run: Run, fit: Fit | None, folder: RunFolder) -> None:
    """All that it takes to go on: the repeat that is under way, and those that are done."""
    tensors: dict[str, Tensor] = {} if fit is None else fit.tensors()
    if run.trained is not None:
        tensors |= {f"model.{k}": v for k, v in model_tensors(run.trained).items()}
    notes = {
        "progress": None if fit is None else fit.progress,
        "model_of": run.model_of,
        "outcomes": [
            {"best_epoch": o.best_epoch, "validation": o.validation, "test": o.test}
            for o in run.outcomes
        ],
    }
    for r, outcome in enumerate(run.outcomes):
        tensors[f"predicted.{r}"] = torch.from_numpy(outcome.predicted)
    folder.write_tensors(CHECKPOINT, tensors, notes)


def _restore(run: Run, folder: RunFolder) -> Fit | None:
    """Bring a run to where its checkpoint was taken; the repeat that was under way, if one was."""
    fit, reached = None, (0, 0)
    if folder.has(CHECKPOINT):
        tensors, notes = folder.read_tensors(CHECKPOINT)
        for r, outcome in enumerate(notes["outcomes"]):
            run.outcomes.append(Outcome(**outcome, predicted=tensors[f"predicted.{r}"].numpy()))
        run.model_of = notes["model_of"]
        if run.model_of >= 0:
            network = make_network(run.config, run.graphs, run.encoding).to(run.team.device)
            own = strip_prefix("model.", tensors)
            network.load_state_dict(strip_prefix("network.", own))
            run.trained = _trained(run, network, scale_from(own))
        reached = (len(run.outcomes), 0)
        if notes["progress"] is not None:
            fit = _new_fit(run, len(run.outcomes))
            fit.restore(Progress(*notes["progress"]), tensors)
            reached = (fit.repeat, fit.progress.epoch)
    # Lines of epochs behind the checkpoint are dropped: these epochs come again.
    known = [line for line in folder.lines() if (line["repeat"], line["epoch"]) <= reached]
    run.epochs += [Epoch(**line) for line in known]
    if run.team.leads:
        folder.keep_lines(known)
    return fit


# ---------------------------------------------------------------------- results


def write_results(run: Run, folder: RunFolder) -> None:
    """The model, the predictions for the test parts, the scores."""
    assert run.trained is not None
    save_model(run.trained, folder)
    with written_whole(folder.path / TEST) as partial, open(partial, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["repeat", "graph", *_columns(run)])
        writer.writerows(_rows(run))
    folder.write_json(RESULT, run.result())


def _columns(run: Run) -> list[str]:
    graphs = run.graphs
    if graphs.task == "classification":
        return ["target", "prediction", *(f"p({name})" for name in graphs.classes)]
    names = graphs.target_names
    return [f"{kind} {name}" for kind in ("target", "prediction") for name in names]


def _rows(run: Run) -> Iterator[list[Any]]:
    graphs, targets = run.graphs, run.graphs.targets
    assert targets is not None
    for repeat, (split, outcome) in enumerate(zip(run.splits, run.outcomes, strict=True)):
        for g, predicted in zip(split.test, outcome.predicted, strict=True):
            if graphs.task == "classification":
                names = [graphs.classes[i] for i in (targets[g], predicted.argmax())]
                yield [repeat, g, *names, *map(_digits, predicted)]
            else:
                yield [repeat, g, *map(_digits, [*targets[g], *predicted])]


def _digits(value: float) -> str:
    return f"{value:.6g}"
