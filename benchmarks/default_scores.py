"""Measure the default network on all datasets, beside the same without pooling and chemprop.

    HAARPOOL_DATA=... python -m benchmarks.default_scores [--processes 2]
        [--only NAME ...] [--table]

Where five members are trained on a split, one line of `results/default_scores.jsonl` has the scores
of their mean (members=5), another those of the first alone (members=1). Finished lines are skipped.
Then it writes the tables of README.md and docs/scores.md; `--table` does only that.
`python -m benchmarks.chemprop_peer` writes the lines of chemprop.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import ttest_ind

from benchmarks import RESULTS
from benchmarks.chemprop_peer import TARGETS
from benchmarks.common import new_parser, train_missing, write_tables
from benchmarks.presets import DATASETS, dataset
from haarpool._numbers import DASH, mean_and_std
from haarpool._versions import find_versions
from haarpool.comparison.document import markdown_table
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import read_lines
from haarpool.comparison.statistics import Estimate
from haarpool.datasets.splits import make_splits
from haarpool.nn import HaarNetArchitecture, parse_architecture
from haarpool.tasks import SCORES
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, find_device
from haarpool.training.presets import BEST
from haarpool.training.run import start_run
from haarpool.training.train import train_run

METRICS = DATASETS | {"Tox21": "roc_auc"}
METHODS = ("haarpool", "haarpool, no pooling")
PAGES = (Path("README.md"), Path("docs/scores.md"))


class Plan(NamedTuple):
    """What is trained on a dataset.

    Attributes:
        dataset: Name of the dataset.
        rule: Rule of `make_splits`; "scaffold" is one split, with other weights in every repeat.
        repeats: Number of repeats.
        members: Number of members; without pooling it is one.
    """

    dataset: str
    rule: str
    repeats: int
    members: int


PLAN = [
    *(Plan(name, "random", 10, 5) for name in DATASETS if name not in TARGETS),
    *(Plan(name, "random", 5, 5) for name in DATASETS if name in TARGETS),
    Plan("Tox21", "random", 5, 1),
    Plan("BBBP", "scaffold", 5, 1),
    Plan("BACE", "scaffold", 5, 1),
]


def settings(plan: Plan, method: str, seed: int) -> RunConfig:
    """Return the default settings, or the same without pooling."""
    config = RunConfig(**BEST, ensemble=plan.members, split=plan.rule, seed=seed)
    if method == "haarpool":
        return config
    arch = parse_architecture(config.arch)
    assert isinstance(arch, HaarNetArchitecture)
    return replace(config, arch=str(replace(arch, levels=0)), ensemble=1)


def train(plan: Plan, seed: int, method: str) -> list[Line]:
    """Train the members of one split; return the line of their mean and of the first alone."""
    torch.set_num_threads(1)
    graphs, metric = dataset(plan.dataset), METRICS[plan.dataset]
    split = make_splits(plan.rule, graphs, seed=0, repeats=plan.repeats)[seed]
    config = settings(plan, method, seed)
    start = time.perf_counter()
    group = ProcessGroup(device=find_device("auto"))
    run = train_run(
        start_run(graphs, config, group, progress=False, splits=[split]), progress=False
    )
    result, first = run.results[0], run.results[0].members[0]
    seconds = (time.perf_counter() - start) / config.ensemble
    shared = {
        "dataset": plan.dataset, "method": method, "split": plan.rule, "seed": seed,
        "metric": metric, "split_hash": split.digest(), "device": group.device.type,
        **find_versions("torch"), "config": config.to_json(), "status": "ok",
    }  # fmt: skip
    return [
        shared
        | {"members": members, "value": one.test[metric], "validation": one.validation[metric]}
        | {"scores": one.test, "seconds": round(seconds * members, 1)}
        for members, one in {1: first, config.ensemble: result}.items()
    ]


def current_lines(path: Path) -> list[Line]:
    """Return the lines of a file that ended well; ours only if settings are still the same."""
    return [line for line in read_lines(path) if line["status"] == "ok" and _is_current(line)]


def _is_current(line: Line) -> bool:
    if line["method"] not in METHODS:
        return True
    plan = next(p for p in PLAN if p[:2] == (line["dataset"], line["split"]))
    return RunConfig.from_json(line["config"]) == settings(plan, line["method"], line["seed"])


def run_all(arguments: argparse.Namespace) -> None:
    """Run what is missing."""
    lines = current_lines(arguments.out)
    done = {(x["dataset"], x["split"], x["seed"], x["method"]) for x in lines}
    tasks = [
        (plan, seed, method)
        for method in METHODS
        for plan in PLAN
        if plan.dataset in arguments.only
        for seed in range(plan.repeats)
        if (*plan[:2], seed, method) not in done
    ]
    train_missing(train, tasks, arguments.out, arguments.processes)


def paired_difference(ours: Sequence[float], others: Sequence[float]) -> Estimate:
    """Compare scores on the same random splits, whose test part is 1/8 of the training part."""
    return Estimate.of(np.subtract(ours, others).tolist(), overlap=1 / 8)


def unpaired_difference(ours: Sequence[float], others: Sequence[float]) -> Estimate:
    """Compare scores of several weights on one split, by Welch's interval."""
    test = ttest_ind(ours, others, equal_var=False)
    low, high = test.confidence_interval(0.95)
    return Estimate(float(np.mean([low, high])), math.nan, float(high - low) / 2, 1, len(ours))


Scores = Mapping[str, float]  # of a method, by split


def difference(plan: Plan, ours: Scores, others: Scores) -> Estimate | None:
    """Return how far we are ahead; None unless both have all repeats."""
    if min(len(ours), len(others)) < plan.repeats:
        return None
    sign = -1 if SCORES[METRICS[plan.dataset]].lower_is_better else 1
    compare = paired_difference if plan.rule == "random" else unpaired_difference
    splits = sorted(ours)  # for the scaffold split the seeds of the weights
    return compare(*([sign * each[split] for split in splits] for each in (ours, others)))


def read_scores(*paths: Path) -> dict[tuple[str, str], dict[tuple[str, int], dict[str, float]]]:
    """Return scores by (dataset, rule), then by (method, members), then by split."""
    scores: dict[tuple[str, str], Any] = defaultdict(lambda: defaultdict(dict))
    for line in (line for path in paths for line in current_lines(path)):
        split = line["split_hash"] if line["split"] == "random" else str(line["seed"])
        key = (line["method"], line["members"])
        scores[line["dataset"], line["split"]][key][split] = line["value"]
    return scores


def make_tables(path: Path, peer: Path) -> dict[str, str]:
    """Return the tables "summary" (molecules), "graphs" and "molecules", and the line "pooling"."""
    scores = read_scores(path, peer)
    summary = [["", "one network", "five members", "chemprop, one", "chemprop, five"]]
    graphs = [["", "one network", "five members", "one without pooling", "pooling adds"]]
    molecules = [["", "one network", "chemprop", "ahead by", "five members"]]
    molecules[0] += ["chemprop, five", "ahead by", "one without pooling", "pooling adds"]
    gains = list[float]()
    for plan in PLAN:
        cell, percent = scores[plan.dataset, plan.rule], METRICS[plan.dataset] == "accuracy"
        kinds = [("haarpool", 1), ("haarpool", 5), ("chemprop", 1), ("chemprop", 5)]
        one, five, peer_one, peer_five = (cell[kind] for kind in kinds)
        plain = cell["haarpool, no pooling", 1]
        name = f"{plan.dataset}, {'%' if percent else SCORES[METRICS[plan.dataset]].short}"
        name += ", scaffold split" * (plan.rule == "scaffold")
        texts = [_mean(each, percent, plan.repeats) for each in (one, five, peer_one, peer_five)]
        if set(texts) == {DASH}:
            continue
        gain = difference(plan, one, plain)
        if gain and not SCORES[METRICS[plan.dataset]].lower_is_better and plan.rule == "random":
            gains.append(100 * gain.mean)
        pooling = [_mean(plain, percent, plan.repeats), _text(gain, percent)]
        if percent:
            graphs.append([name, *texts[:2], *pooling])
        else:
            first = [texts[0], texts[2], _text(difference(plan, one, peer_one))]
            second = [texts[1], texts[3], _text(difference(plan, five, peer_five))]
            molecules.append([name, *first, *second, *pooling])
            summary.append([name, *(text.partition(" ")[0] for text in texts)])
    # README has a row per method.
    columns = [list(column) for column in zip(*summary, strict=True)]
    tables = {"summary": columns, "graphs": graphs, "molecules": molecules}
    note = (
        f"On the mean of {len(gains)} datasets with accuracy or ROC-AUC, random splits, pooling "
        f"adds {mean(gains):+.2f} points."
    )
    return {name: markdown_table(rows) for name, rows in tables.items()} | {"pooling": note}


def _text(difference: Estimate | None, percent: bool = False) -> str:
    """Return a difference and its interval, in percent or as it is."""
    if difference is None:
        return DASH
    factor, digits = (100, 1) if percent else (1, 3)
    values = (difference.mean, *difference.interval)
    middle, low, high = (f"{factor * value:+.{digits}f}" for value in values)
    return f"{middle} [{low}, {high}]"


def _mean(scores: Scores, percent: bool, repeats: int) -> str:
    """Return mean and standard deviation, if no repeat is missing."""
    if len(scores) < repeats:
        return DASH
    values = [100 * value if percent else value for value in scores.values()]
    return mean_and_std(mean(values), stdev(values), 1 if percent else 3)


def main() -> None:
    """Train what is missing, and write the tables."""
    parser = new_parser(__doc__, "default_scores.jsonl")
    parser.add_argument("--peer", type=Path, default=RESULTS / "chemprop.jsonl")
    parser.add_argument("--only", nargs="*", default=list(METRICS), metavar="NAME")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only write the tables")
    arguments = parser.parse_args()
    if not arguments.table:
        run_all(arguments)
    write_tables(make_tables(arguments.out, arguments.peer), PAGES)


if __name__ == "__main__":
    main()
