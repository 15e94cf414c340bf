"""Train the repeats of a run, and their members, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from haarpool._progress import ProgressOption
from haarpool._types import Floats, Ints
from haarpool.training.checkpoint import load_checkpoint, save_checkpoint, save_member
from haarpool.training.devices import deterministic, num_threads
from haarpool.training.loop import Trainer
from haarpool.training.preparation import choose_threads
from haarpool.training.progress import RunProgress
from haarpool.training.run import SCORED, Member, Result, Run
from haarpool.training.run_folder import CHECKPOINT, RunFolder
from haarpool.training.trained_model import average, predict_batches

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
    """Train the members of a repeat that are not complete, the first one with `trainer` if given.

    A checkpoint of a member is at least `every` seconds after the one before.
    """
    for member in range(len(run.members), run.config.ensemble):
        trainer = trainer or Trainer(run, run.repeat, member)
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


def train_repeat(run: Run, repeat: int, folder: RunFolder | None = None) -> Run:
    """Train one repeat of a run alone, with the same result as among all repeats.

    The run does not change, so that its data can serve several repeats.

    Args:
        run: The run, from `start_run`.
        repeat: Number of the repeat.
        folder: Folder of this repeat alone, with checkpoints; the training continues from the last
            one. By default there are none.

    Returns:
        The run with this repeat alone: its `result`, epochs and members.
    """
    run = replace(run, first_repeat=repeat, epochs=[], members=[], results=[])
    with _execution(run):
        trainer = None if folder is None else _load(run, folder)
        shown = RunProgress(run, progress=False)
        _train_members(run, trainer, folder, shown, every=SECONDS_PER_CHECKPOINT)
    run.results.append(_result(run, repeat))
    return run


def predict_graphs(run: Run, members: Sequence[Member], graphs: Ints) -> Floats:
    """Predict (n,) graphs of the dataset of a run: the mean over the members of a repeat."""
    networks, size = [member.network for member in members], 8 * run.config.batch_size
    scale, names = members[0].scale, run.graphs.names
    return average(predict_batches(networks, scale, names, run.batches, graphs, size))


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
        trainer.predictions(trainer.outputs(part))
        for part in (trainer.split.validation, trainer.split.test)
    ]
    return Member(trainer.network, trainer.scale, trainer.progress.best_epoch, *predicted)


def _complete_repeat(run: Run) -> None:
    """Compute the scores of a repeat; keep its model if it is the first with the best score."""
    task, repeat = run.network.task, len(run.results)
    run.results.append(_result(run, repeat))
    main = task.scores[0].name
    scores = [task.higher_is_better(result.validation[main]) for result in run.results]
    if np.argmax(scores) == repeat:
        run.model_repeat = repeat
        run.model = run.trained_model(run.members)
    run.members = []


def _result(run: Run, repeat: int) -> Result:
    """Compute the scores of the members of a repeat and of their mean prediction."""
    task, targets, names = run.network.task, run.graphs.targets, run.graphs.names
    assert targets is not None
    split = run.splits[repeat]
    true = {part: targets[split.rows(getattr(split, part), run.graphs)] for part in SCORED}
    mean = {part: average(np.stack([getattr(m, part) for m in run.members])) for part in true}

    def result(best_epoch: int, outputs: Mapping[str, Floats], **more: Any) -> Result:
        pairs = [(outputs[part], labels) for part, labels in true.items()]
        validation, test = (task.score(*pair, names) if len(pair[1]) else {} for pair in pairs)
        return Result(best_epoch, validation, test, **more)

    several = len(task.column_names(names)) > 1
    return result(
        run.members[0].best_epoch,
        mean,
        members=[result(member.best_epoch, member._asdict()) for member in run.members],
        targets={p: task.score_targets(mean[p], true[p], names) for p in true} if several else None,
        predicted=mean["test"],
    )
