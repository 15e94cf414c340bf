"""Train the repeats of a run, and their members, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from haarpool._progress import ProgressOption
from haarpool._types import Floats, Ints
from haarpool.datasets.splits import Split
from haarpool.training.checkpoint import load_checkpoint, save_checkpoint, save_member
from haarpool.training.devices import deterministic, num_threads
from haarpool.training.loop import Epoch, Trainer
from haarpool.training.metrics import (
    LOWER_IS_BETTER,
    SCORES,
    scores_of,
    scores_of_targets,
)
from haarpool.training.preparation import choose_threads
from haarpool.training.progress import RunProgress
from haarpool.training.run import (
    Member,
    MemberResult,
    RepeatResult,
    Run,
    Scores,
    make_network,
)
from haarpool.training.run_folder import CHECKPOINT, RunFolder
from haarpool.training.trained_model import average, to_predictions

SECONDS_PER_CHECKPOINT = 20.0  # of a repeat that is trained alone; an epoch may take milliseconds


def train_run(
    run: Run,
    folder: RunFolder | None = None,
    *,
    resume: bool = False,
    progress: ProgressOption = None,
) -> Run:
    """Train all repeats that are not complete, with a checkpoint after every epoch.

    Args:
        run: The run, from `start_run`.
        folder: Folder of the run; only rank 0 writes to it.
        resume: Continue from the checkpoint in the folder.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with a line of text for each repeat, and every 30 seconds.
    """
    writable = folder if run.group.is_main else None
    with _execution(run):
        trainer = _load(run, folder) if resume and folder is not None else None
        shown = RunProgress(run, progress, trainer)
        while len(run.results) < len(run.splits):
            _train_members(run, trainer, writable, shown)
            trainer = None
            _complete_repeat(run)
            shown.end_repeat()
            if writable is not None:
                save_checkpoint(run, None, writable)
    return run


def _load(run: Run, folder: RunFolder) -> Trainer | None:
    """Bring a run to the state of its checkpoint; return the trainer that was in progress."""
    try:
        return load_checkpoint(run, folder)
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        raise folder.damaged(CHECKPOINT, error) from error


def _train_members(
    run: Run,
    trainer: Trainer | None,
    folder: RunFolder | None,
    shown: RunProgress,
    *,
    every: float = 0.0,
) -> None:
    """Train the members of a repeat that are not complete.

    Args:
        run: The run.
        trainer: Trainer of the next member, if it is in progress.
        folder: Folder of the checkpoints; `None` writes none.
        shown: Shows the progress.
        every: Least number of seconds between two checkpoints of a member.
    """
    for member in range(len(run.members), run.config.ensemble):
        trainer = trainer or run.trainer(run.repeat, member)
        saved = time.monotonic()
        with shown.bar(trainer) as bar:
            while not trainer.progress.is_complete(run.config):
                epoch = trainer.run_epoch(bar.update)
                run.epochs.append(epoch)
                shown.end_epoch(epoch, trainer, bar)
                if folder is not None:
                    folder.append_metrics(epoch._asdict())
                    if time.monotonic() - saved >= every:
                        save_checkpoint(run, trainer, folder)
                        saved = time.monotonic()
        run.members.append(_complete_member(trainer))
        trainer = None
        if folder is not None:
            save_member(run, folder)
            save_checkpoint(run, None, folder)


class TrainedRepeat(NamedTuple):
    """A repeat that was trained alone.

    Attributes:
        result: Its result.
        epochs: Metrics of all epochs.
        members: Its trained networks.
    """

    result: RepeatResult
    epochs: list[Epoch]
    members: list[Member]


def train_repeat(run: Run, repeat: int, folder: RunFolder | None = None) -> TrainedRepeat:
    """Train one repeat of a run alone, with the same result as among all repeats.

    The run does not change, so that its data can serve several repeats.

    Args:
        run: The run, from `start_run`.
        repeat: Number of the repeat.
        folder: Folder of this repeat alone, with checkpoints; the training continues from the last
            one. By default there are none.
    """
    network = make_network(run.config, run.graphs, run.encoding)
    run = replace(run, network=network, first_repeat=repeat, epochs=[], members=[], results=[])
    with _execution(run):
        trainer = None if folder is None else _load(run, folder)
        shown = RunProgress(run, progress=False)
        _train_members(run, trainer, folder, shown, every=SECONDS_PER_CHECKPOINT)
    result = _repeat_result(run, run.members, run.splits[repeat])
    return TrainedRepeat(result, run.epochs, run.members)


@torch.no_grad()
def predict_graphs(run: Run, members: Sequence[Member], graphs: Ints) -> Floats:
    """Predict graphs of the dataset of a run: the mean over the members of a repeat.

    Args:
        run: The run.
        members: The members.
        graphs: (n,) Numbers of graphs.
    """
    outputs = []
    for member in members:
        network = member.network.eval()
        parts = [
            network(run.batches.take(chosen)).float().cpu()
            for chosen in run.batches.chunks(graphs, 8 * run.config.batch_size)
        ]
        outputs.append(to_predictions(torch.cat(parts), network.task, member.scale))
    return average(np.stack(outputs))


@contextmanager
def _execution(run: Run) -> Iterator[None]:
    """Set threads and algorithms, on which the last digits depend."""
    config = run.config
    threads = choose_threads(run.network, run.graphs, config.batch_size, config.threads)
    is_fixed = run.network.has_static_shapes  # sums have a fixed order
    with num_threads(threads), deterministic(run.group.device, algorithms=not is_fixed):
        yield


def _complete_member(trainer: Trainer) -> Member:
    """Predict the validation and test part with the weights of the kept epoch."""
    trainer.load_best()
    predicted = [
        to_predictions(trainer.outputs(part), trainer.task, trainer.scale)
        for part in (trainer.split.validation, trainer.split.test)
    ]
    return Member(trainer.network, trainer.scale, trainer.progress.best_epoch, *predicted)


def _complete_repeat(run: Run) -> None:
    """Compute the scores of a repeat; keep its model if it has the best validation score."""
    members, repeat = run.members, len(run.results)
    run.results.append(_repeat_result(run, members, run.splits[repeat]))
    if _best_repeat(run) == repeat:
        run.model_repeat = repeat
        run.model = run.trained_model(members)
    run.members = []


def _repeat_result(run: Run, members: Sequence[Member], split: Split) -> RepeatResult:
    """Compute the scores of the members of a repeat and of their mean prediction."""
    task, targets = run.network.task, run.graphs.targets
    assert targets is not None
    several = task != "classification" and len(run.graphs.target_names) > 1
    of_members: list[dict[str, Scores]] = [{} for _ in members]
    of_targets: dict[str, list[Scores]] = {}
    scores: dict[str, Scores] = {}
    for part in ("validation", "test"):
        true = targets[getattr(split, part)]
        predicted = np.stack([getattr(member, part) for member in members])
        mean = average(predicted)
        scores[part] = scores_of(task, mean, true) if len(true) else {}
        for one, output in zip(of_members, predicted, strict=True):
            one[part] = scores_of(task, output, true) if len(true) else {}
        if several:
            of_targets[part] = scores_of_targets(task, mean, true)
    results = [
        MemberResult(member.best_epoch, **one)
        for member, one in zip(members, of_members, strict=True)
    ]
    return RepeatResult(**scores, predicted=mean, members=results, targets=of_targets)


def _best_repeat(run: Run) -> int:
    """Return the first repeat with the best validation score; the first one if none is defined."""
    metric = SCORES[run.network.task][0]
    sign = -1 if metric in LOWER_IS_BETTER else 1
    score = [sign * result.validation[metric] for result in run.results]
    return int(np.argmax(np.nan_to_num(score, nan=-np.inf)))
