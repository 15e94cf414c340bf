"""Save and restore a run between two epochs.

The checkpoint of an epoch has the network that is being trained. A complete member does not change
any more, so it is written once, to a file of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from haarpool.training.loop import Progress, Trainer
from haarpool.training.run import SCORED, Epoch, Member, Result, Run, make_network
from haarpool.training.run_folder import CHECKPOINT, MEMBER, RunFolder
from haarpool.training.trained_model import model_tensors, scale_from, strip_prefix


def save_checkpoint(run: Run, trainer: Trainer | None, folder: RunFolder) -> None:
    """Write everything that is needed to continue a run.

    Args:
        run: The run with its complete repeats and members; `save_member` has written these.
        trainer: Trainer of the current member; None between two members.
        folder: Folder of the run.
    """
    tensors: dict[str, Tensor] = {} if trainer is None else trainer.tensors()
    for repeat, result in enumerate(run.results):
        tensors[f"predicted.{repeat}"] = torch.from_numpy(result.predicted)
    notes = {
        "progress": None if trainer is None else trainer.progress,
        "model_of": run.model_repeat,
        "members": len(run.members),
        "outcomes": [
            {"validation": result.validation, "test": result.test, "targets": result.targets}
            | {"members": [member[:3] for member in result.members]}
            for result in run.results
        ],
    }
    folder.write_tensors(CHECKPOINT, tensors, notes)
    if trainer is None:  # a better repeat may have replaced others
        needed = {MEMBER.format(run.model_repeat, m) for m in range(run.config.ensemble)}
        needed |= {MEMBER.format(run.repeat, m) for m in range(len(run.members))}
        _remove_members(folder, needed)


def save_member(run: Run, folder: RunFolder) -> None:
    """Write the member that was completed last."""
    member = run.members[-1]
    tensors = model_tensors(run.trained_model([member]))
    tensors |= {f"predicted.{part}": torch.from_numpy(getattr(member, part)) for part in SCORED}
    name = MEMBER.format(run.repeat, len(run.members) - 1)
    folder.write_tensors(name, tensors, {"best_epoch": member.best_epoch})


def load_checkpoint(run: Run, folder: RunFolder) -> Trainer | None:
    """Bring a run from `start_run` to the state of its checkpoint.

    Returns:
        The trainer of the member that was in progress, or None between two members.
    """
    trainer, reached = None, (0, 0, 0)
    if folder.has(CHECKPOINT):
        tensors, notes = folder.read_tensors(CHECKPOINT)
        for repeat, values in enumerate(notes["outcomes"]):
            values["members"] = [Result(*member) for member in values["members"]]
            predicted = tensors[f"predicted.{repeat}"].numpy()
            best = values["members"][0].best_epoch
            run.results.append(Result(best, **values, predicted=predicted))
        run.model_repeat = notes["model_of"]
        if run.model_repeat >= 0:
            members = range(run.config.ensemble)
            run.model = run.trained_model(
                [_load_member(run, folder, run.model_repeat, member) for member in members]
            )
        repeat = run.repeat
        run.members = [_load_member(run, folder, repeat, m) for m in range(notes["members"])]
        reached = (repeat, len(run.members), 0)
        if notes["progress"] is not None:
            trainer = Trainer(run, repeat, len(run.members))
            trainer.restore(Progress(*notes["progress"]), tensors)
            reached = (*reached[:2], trainer.progress.epoch)
    # Epochs after the checkpoint are trained again, so their lines are dropped.
    epochs = [Epoch(**line) for line in folder.read_metrics()]
    run.epochs += [one for one in epochs if (one.repeat, one.member, one.epoch) <= reached]
    if run.group.is_main:
        folder.write_metrics(epoch._asdict() for epoch in run.epochs)
    return trainer


def remove_checkpoint(folder: RunFolder) -> None:
    """Delete the files that a complete run does not need."""
    folder.remove(CHECKPOINT)  # the first one: without it a run is complete
    _remove_members(folder)


def _load_member(run: Run, folder: RunFolder, repeat: int, member: int) -> Member:
    tensors, notes = folder.read_tensors(MEMBER.format(repeat, member))
    network = make_network(run.config, run.graphs, run.encoding).to(run.group.device)
    network.load_state_dict(strip_prefix("network.", tensors))
    predicted = [tensors[f"predicted.{part}"].numpy() for part in SCORED]
    return Member(network, scale_from(tensors, network.task), notes["best_epoch"], *predicted)


def _remove_members(folder: RunFolder, needed: set[str] | None = None) -> None:
    for path in folder.path.glob(MEMBER.format("*", "*")):
        if path.name not in (needed or ()):
            folder.remove(path.name)
