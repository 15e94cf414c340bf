"""Train the repeats of a run one after the other."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
from tqdm import tqdm

from haarpool.nn import parse_architecture
from haarpool.training.checkpoint import load_checkpoint, save_checkpoint
from haarpool.training.devices import deterministic, num_threads
from haarpool.training.loop import Epoch, Trainer
from haarpool.training.metrics import LOWER_IS_BETTER, SCORES, scores_of
from haarpool.training.preparation import choose_threads
from haarpool.training.run import RepeatResult, Run, Scores
from haarpool.training.run_folder import CHECKPOINT, RunFolder
from haarpool.training.trained_model import to_predictions


def train_run(
    run: Run, folder: RunFolder | None = None, *, resume: bool = False, progress: bool | None = None
) -> Run:
    """Train all repeats that are not complete, with a checkpoint after every epoch.

    Args:
        run: The run, from `start_run`.
        folder: Folder of the run; only rank 0 writes to it.
        resume: Continue from the checkpoint in the folder.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal.
    """
    config = run.config
    threads = choose_threads(
        parse_architecture(config.arch), run.graphs, config.batch_size, config.threads
    )
    hidden = (None if progress is None else not progress) if run.group.is_main else True
    writable = folder if run.group.is_main else None
    # Networks whose sums have a fixed order need no slower algorithms to be deterministic.
    fixed = nullcontext() if run.network.has_static_shapes else deterministic(run.group.device)
    with num_threads(threads), fixed:
        trainer = None
        if resume and folder is not None:
            try:
                trainer = load_checkpoint(run, folder)
            except (KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
                raise folder.damaged(CHECKPOINT, error) from error
        for repeat in range(len(run.results), len(run.splits)):
            trainer = trainer or run.trainer(repeat)
            with _progress_bar(run, trainer, hidden) as bar:
                while not trainer.progress.is_complete(config):
                    epoch = trainer.run_epoch(bar.update)
                    run.epochs.append(epoch)
                    bar.set_postfix_str(_describe_epoch(epoch, trainer))
                    if writable is not None:
                        writable.append_metrics(epoch._asdict())
                        save_checkpoint(run, trainer, writable)
            _complete_repeat(run, trainer)
            trainer = None
            if writable is not None:
                save_checkpoint(run, None, writable)
    return run


def _progress_bar(run: Run, trainer: Trainer, hidden: bool | None) -> tqdm:
    steps = math.ceil(len(trainer.split.train) / run.config.batch_size)
    return tqdm(
        total=run.config.epochs * steps,
        initial=trainer.progress.epoch * steps,
        desc=f"{run.graphs.name} {trainer.repeat + 1}/{len(run.splits)}",
        unit=" steps",
        disable=hidden,
        leave=False,
    )


def _describe_epoch(epoch: Epoch, trainer: Trainer) -> str:
    metric = SCORES[trainer.task][0]
    return (
        f"loss {epoch.train_loss:.3f}, validation {metric} {epoch.validation_score:.3f}, "
        f"best epoch {trainer.progress.best_epoch}"
    )


def _complete_repeat(run: Run, trainer: Trainer) -> None:
    """Evaluate the best epoch of a repeat; keep its model if it has the best validation score."""
    trainer.load_best()
    scores: dict[str, Scores] = {}
    for part in ("validation", "test"):
        graphs = getattr(trainer.split, part)
        predicted = to_predictions(trainer.outputs(graphs), trainer.task, trainer.scale)
        targets = trainer.targets[graphs]
        scores[part] = scores_of(trainer.task, predicted, targets) if len(graphs) else {}
    best_epoch = trainer.progress.best_epoch
    run.results.append(RepeatResult(best_epoch, scores["validation"], scores["test"], predicted))
    metric = SCORES[trainer.task][0]
    validation = [result.validation[metric] for result in run.results]
    best = int(np.argmin(validation) if metric in LOWER_IS_BETTER else np.argmax(validation))
    if best == trainer.repeat:
        run.model_repeat = best
        run.model = run.trained_model(trainer.network, trainer.scale)
