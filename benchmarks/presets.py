"""Compare settings by their validation scores: how the preset "best" is chosen.

    HAARPOOL_DATA=... python -m benchmarks.presets [--processes 2] [--only NAME ...] [--rank]

Each candidate is trained on ten datasets, five splits each, all candidates on the same splits.
Candidates are ranked on each dataset by their mean validation score, and chosen by their mean rank.
Test scores are not computed. Each training is one line of `results/presets.jsonl`; those that are
there are not run again. `--rank` prints the ranks of the lines that are there.

How the epoch is chosen (`RunConfig.monitor`) is part of the choice, and needs no other training. A
score at an epoch that was chosen on the same graphs is too good, so one half of the validation part
chooses the epoch for the other half, and the other way round; the score is the mean of both.

Many processes share a GPU well under NVIDIA's MPS (`nvidia-cuda-mps-control -d`); without it their
kernels take turns.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from benchmarks.chemprop_peer import TARGETS
from benchmarks.common import new_parser, train_missing
from haarpool._versions import find_versions
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import read_lines
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.tasks import SCORES
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, find_device
from haarpool.training.loop import Trainer
from haarpool.training.run import start_run

SPLITS = 5
# The scores that the field uses.
DATASETS = {
    "MUTAG": "accuracy",
    "PROTEINS": "accuracy",
    "NCI1": "accuracy",
    "NCI109": "accuracy",
    "Mutagenicity": "accuracy",
    "BZR": "accuracy",
    "IMDB-BINARY": "accuracy",
    "ESOL": "rmse",
    "BBBP": "roc_auc",
    "BACE": "roc_auc",
}
MONITORS = ("last", "loss", "score")
GIN: dict[str, Any] = {
    "arch": "3GIN64-HP-GIN64-SUM-FC64", "domain": "vertex", "epochs": 100, "batch_size": 32,
    "lr": 0.005, "weight_decay": 0.0, "schedule": "cosine",
}  # fmt: skip
NET: dict[str, Any] = {
    "arch": "haarnet", "domain": "vertex", "epochs": 100, "batch_size": 0, "lr": 0.002,
    "weight_decay": 1e-4, "schedule": "one-cycle", "optimizer": "adamw", "label_smoothing": 0.05,
    "dropout": 0.3,
}  # fmt: skip
SHORT = NET | {"dropout": 0.5, "epochs": 50}
CANDIDATES: dict[str, dict[str, Any]] = {
    "GIN, one pooling": GIN,
    "net": NET,
    "net, dropout 0": NET | {"dropout": 0.0},
    "net, dropout 0.5": NET | {"dropout": 0.5},
    "net, no pooling": NET | {"arch": "haarnet:levels=0"},
    "net, one pooling": NET | {"arch": "haarnet:levels=1"},
    "net, three poolings": NET | {"arch": "haarnet:levels=3"},
    "net, 128 wide": NET | {"arch": "haarnet:width=128"},
    "net, 50 epochs": NET | {"epochs": 50},
    "short": SHORT,
    "short, rate 0.004": SHORT | {"lr": 0.004},
    "short, walks": SHORT | {"features": "auto+walks"},
    "short, three convolutions": SHORT | {"arch": "haarnet:depth=3"},
}


@cache
def dataset(name: str) -> Graphs:
    """Read a dataset."""
    if name not in TARGETS:
        return read_graphs(name)
    path = Path(os.environ["HAARPOOL_DATA"]) / "molecules" / f"{name}.csv"
    return read_graphs(path, targets=list(TARGETS[name]))


def train(name: str, candidate: str, split: int) -> list[Line]:
    """Train a candidate on one split; return its line."""
    torch.set_num_threads(1)
    graphs, metric = dataset(name), DATASETS[name]
    settings = CANDIDATES[candidate]
    config = RunConfig(**settings, monitor="last", threads=1, repeats=SPLITS)
    group = ProcessGroup(device=find_device("auto"))
    run = start_run(graphs, config, group, progress=False)
    start, trainer = time.perf_counter(), Trainer(run, split)
    outputs = []
    while not trainer.progress.is_complete(config):
        trainer.run_epoch(lambda: None)
        outputs.append(trainer.outputs(trainer.split.validation))
    return [{
        "dataset": name, "candidate": candidate, "split": split, "metric": metric,
        "validation": {m: score_of(trainer, outputs, m, metric) for m in MONITORS},
        "seconds": round(time.perf_counter() - start, 1), "settings": settings,
        "split_hash": trainer.split.digest(), "device": group.device.type,
        **find_versions("torch"),
    }]  # fmt: skip


def score_of(trainer: Trainer, outputs: Sequence[Tensor], monitor: str, metric: str) -> float:
    """Score the halves of the validation part, each at the epoch that the other half chooses.

    Args:
        trainer: The trainer.
        outputs: Outputs for the validation part, of all epochs.
        monitor: As in `RunConfig`.
        metric: Name of the score.
    """
    part = trainer.split.validation
    targets = trainer.targets[part].reshape(len(part), -1)[:, 0]
    order = np.argsort(targets, kind="stable")  # both halves have all classes
    halves, scores = (order[0::2], order[1::2]), []
    for chooses, other in (halves, halves[::-1]):
        results = [trainer.evaluate(output[chooses], part[chooses]) for output in outputs]
        best = len(outputs) - 1
        if monitor == "loss":
            best = min(range(len(outputs)), key=lambda e: results[e][0])
        if monitor == "score":
            signed = [(trainer.task.higher_is_better(score), -loss) for loss, score in results]
            best = max(range(len(outputs)), key=signed.__getitem__)
        predicted = trainer.predictions(outputs[best][other])
        scores.append(trainer.task.score(predicted, trainer.targets[part[other]])[metric])
    return float(np.mean(scores))


def current_lines(path: Path) -> list[Line]:
    """Return the lines of a file whose settings are still those of their candidate."""
    return [x for x in read_lines(path) if CANDIDATES.get(x["candidate"]) == x["settings"]]


def ranks(lines: Iterable[Line]) -> list[tuple[float, str, dict[str, float]]]:
    """Return for each candidate with all lines its mean rank and its mean scores, best first."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        for monitor, score in line["validation"].items():
            scores[f"{line['candidate']}, {monitor}", line["dataset"]].append(score)
    names = [f"{candidate}, {monitor}" for candidate in CANDIDATES for monitor in MONITORS]
    complete = [c for c in names if all(len(scores[c, d]) == SPLITS for d in DATASETS)]
    means = np.array([[np.mean(scores[c, d]) for d in DATASETS] for c in complete])
    signs = [1 if SCORES[metric].lower_is_better else -1 for metric in DATASETS.values()]
    places = rankdata(signs * means, axis=0).mean(axis=1).tolist() if complete else []
    rows = (dict(zip(DATASETS, row, strict=True)) for row in means.tolist())
    return sorted(zip(places, complete, rows, strict=True), key=lambda one: one[:2])


def main() -> None:
    """Train what is missing, and print the ranks."""
    parser = new_parser(__doc__, "presets.jsonl")
    parser.add_argument("--only", nargs="*", default=list(CANDIDATES), metavar="NAME")
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS), metavar="NAME")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--rank", action="store_true", help="print the ranks and stop")
    arguments = parser.parse_args()
    if not arguments.rank:
        lines = current_lines(arguments.out)
        done = {(x["dataset"], x["candidate"], x["split"]) for x in lines}
        tasks = [
            (name, candidate, split)
            for candidate in arguments.only
            for split in range(SPLITS)
            for name in arguments.datasets
            if (name, candidate, split) not in done
        ]
        train_missing(train, tasks, arguments.out, arguments.processes)
    print(f"{'rank':>5}  {'candidate, epoch by':28} " + "  ".join(f"{d[:6]:>6}" for d in DATASETS))
    ranked = ranks(current_lines(arguments.out))
    for rank, candidate, means in ranked:
        print(f"{rank:5.2f}  {candidate:28} " + "  ".join(f"{v:6.3f}" for v in means.values()))
    complete = {candidate.rpartition(", ")[0] for _, candidate, _ in ranked}
    if missing := [candidate for candidate in CANDIDATES if candidate not in complete]:
        print(f"not ranked, since trainings are missing: {'; '.join(missing)}")


if __name__ == "__main__":
    main()
