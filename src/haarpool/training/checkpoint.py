"""Save and restore a run between two epochs."""

from __future__ import annotations

import torch
from torch import Tensor

from haarpool.training.loop import Epoch, Progress, Trainer
from haarpool.training.run import RepeatResult, Run, make_network
from haarpool.training.run_folder import CHECKPOINT, RunFolder
from haarpool.training.trained_model import model_tensors, scale_from, strip_prefix


def save_checkpoint(run: Run, trainer: Trainer | None, folder: RunFolder) -> None:
    """Write everything that is needed to continue a run.

    Args:
        run: The run with its complete repeats.
        trainer: Trainer of the current repeat; None between two repeats.
        folder: Folder of the run.
    """
    tensors: dict[str, Tensor] = {} if trainer is None else trainer.tensors()
    if run.model is not None:
        tensors |= {f"model.{k}": v for k, v in model_tensors(run.model).items()}
    for repeat, result in enumerate(run.results):
        tensors[f"predicted.{repeat}"] = torch.from_numpy(result.predicted)
    notes = {
        "progress": None if trainer is None else trainer.progress,
        "model_of": run.model_repeat,
        "outcomes": [
            {"best_epoch": r.best_epoch, "validation": r.validation, "test": r.test}
            for r in run.results
        ],
    }
    folder.write_tensors(CHECKPOINT, tensors, notes)


def load_checkpoint(run: Run, folder: RunFolder) -> Trainer | None:
    """Bring a run to the state of its checkpoint.

    Args:
        run: The run as `start_run` returns it.
        folder: Folder of the run.

    Returns:
        The trainer of the repeat that was in progress, or None between two repeats.
    """
    trainer, reached = None, (0, 0)
    if folder.has(CHECKPOINT):
        tensors, notes = folder.read_tensors(CHECKPOINT)
        for repeat, values in enumerate(notes["outcomes"]):
            predicted = tensors[f"predicted.{repeat}"].numpy()
            run.results.append(RepeatResult(**values, predicted=predicted))
        run.model_repeat = notes["model_of"]
        if run.model_repeat >= 0:
            network = make_network(run.config, run.graphs, run.encoding).to(run.group.device)
            weights = strip_prefix("model.", tensors)
            network.load_state_dict(strip_prefix("network.", weights))
            run.model = run.trained_model(network, scale_from(weights))
        reached = (len(run.results), 0)
        if notes["progress"] is not None:
            trainer = run.trainer(len(run.results))
            trainer.restore(Progress(*notes["progress"]), tensors)
            reached = (trainer.repeat, trainer.progress.epoch)
    # Epochs after the checkpoint are trained again, so their lines are dropped.
    lines = [m for m in folder.read_metrics() if (m["repeat"], m["epoch"]) <= reached]
    run.epochs += [Epoch(**line) for line in lines]
    if run.group.is_main:
        folder.write_metrics(lines)
    return trainer
