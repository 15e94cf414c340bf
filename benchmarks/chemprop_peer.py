"""Train chemprop with its default settings on the splits of haarpool, one JSON line per result.

    python -m venv chemprop-env && chemprop-env/bin/pip install torch==2.13.0 chemprop==2.3.1
    HAARPOOL_DATA=... python -m benchmarks.chemprop_peer --chemprop chemprop-env/bin/chemprop
        [--out results/chemprop.jsonl] [--only ESOL-random ...] [--threads 1] [--device gpu]

chemprop stays in an environment of its own. It gets the molecules that haarpool reads, with the
part of each molecule in a column. Its predictions of the test part are scored by haarpool.

An ensemble is trained once per split. Its mean is the result with members=5, its first network the
result with members=1. Finished runs are skipped, so a stopped benchmark continues where it was.
Without --only, it takes about eight hours on one core.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import new_parser
from haarpool._files import write_text
from haarpool._numbers import mean_and_std
from haarpool._types import Floats
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import read_lines
from haarpool.datasets import Graphs, find_dataset, read_graphs
from haarpool.datasets.splits import Split, make_splits
from haarpool.errors import HaarPoolWarning
from haarpool.tasks import find_task

REPEATS = 5
EPOCHS = 50
TARGETS = {
    "ESOL": ("measured log solubility in mols per litre",),
    "BACE": ("Class",),
    "BBBP": ("BBBP",),
    "Tox21": (
        "NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD",
        "NR-PPAR-gamma", "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53",
    ),
}  # fmt: skip
METRIC = {"ESOL": "rmse"}  # elsewhere roc_auc
# (dataset, split, networks): the order of the runs.
PLAN = (
    ("ESOL", "random", 5),
    ("BACE", "random", 5),
    ("BBBP", "random", 5),
    ("Tox21", "random", 1),
    ("BBBP", "scaffold", 1),
    ("BACE", "scaffold", 1),
)
PACKAGES = ("chemprop", "torch", "lightning", "rdkit", "numpy")


class Job(NamedTuple):
    """One call of `chemprop train`.

    Attributes:
        dataset: Name of the dataset.
        rule: Rule of `make_splits`.
        seed: Number of the repeat; it chooses the weights, and the split if that is random.
        networks: Number of networks to train.
    """

    dataset: str
    rule: str
    seed: int
    networks: int

    def __str__(self) -> str:
        return f"{self.dataset}-{self.rule}-{self.seed}"


class Machine(NamedTuple):
    """Where chemprop runs.

    Attributes:
        chemprop: Its executable.
        device: "cpu" or "gpu".
        threads: Number of threads.
    """

    chemprop: Path
    device: str
    threads: int


def read_molecules(dataset: str) -> Graphs:
    """Read a dataset with targets as numbers, so that several columns of classes are allowed."""
    path = find_dataset(Path(os.environ["HAARPOOL_DATA"]) / "molecules" / f"{dataset}.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HaarPoolWarning)  # invalid SMILES are skipped
        return read_graphs(str(path), targets=TARGETS[dataset], task="regression", progress=False)


def train(
    job: Job, graphs: Graphs, split: Split, machine: Machine
) -> tuple[Floats, dict[str, float], list[str]]:
    """Train the networks of a job in a folder that is deleted afterwards.

    Returns:
        (networks, n, T) predictions of the test part, in its order; seconds, and those of the
        processor, which other programs change less; arguments of the call, without paths.
    """
    names = TARGETS[job.dataset]
    arguments = [
        "--task-type", "regression" if job.dataset == "ESOL" else "classification",
        "--epochs", str(EPOCHS),
        "--ensemble-size", str(job.networks),
        "--pytorch-seed", str(job.seed * job.networks),  # network i adds i
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="chemprop-") as folder:
        table, out, log = (Path(folder) / name for name in ("data.csv", "out", "log.txt"))
        _write_table(table, graphs, split, names)
        command = [str(machine.chemprop), "train", "--data-path", str(table)]
        command += ["--output-dir", str(out), "--smiles-columns", "smiles"]
        command += ["--splits-column", "split", "--accelerator", machine.device]
        command += ["--target-columns", *names, *arguments]
        environment = os.environ | {"OMP_NUM_THREADS": str(machine.threads)}
        start, cpu_start = time.perf_counter(), _cpu_seconds()
        with open(log, "w") as file:
            status = subprocess.run(command, stdout=file, stderr=file, env=environment).returncode
        times = {"seconds": time.perf_counter() - start, "cpu_seconds": _cpu_seconds() - cpu_start}
        if status:
            last = log.read_text().strip().rpartition("\n")[2]
            raise RuntimeError(f"chemprop ended with an error: {last}")
        files = [out / f"model_{i}" / "test_predictions.csv" for i in range(job.networks)]
        ids = [graphs.ids[g] for g in split.test] if graphs.ids else []
        predictions = np.stack([_read_predictions(file, ids, names) for file in files])
    return predictions, times, arguments


def _cpu_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _write_table(path: Path, graphs: Graphs, split: Split, names: Sequence[str]) -> None:
    """Write SMILES, targets and part of each labelled molecule, in the order of `graphs`."""
    part_names = zip(("train", "val", "test"), split, strict=True)
    parts = {g: name for name, part in part_names for g in part.tolist()}
    assert graphs.ids is not None
    assert graphs.targets is not None
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *names, "split"])
        for g in sorted(parts):
            cells = ["" if np.isnan(value) else float(value) for value in graphs.targets[g]]
            writer.writerow([graphs.ids[g], *cells, parts[g]])


def _read_predictions(path: Path, ids: Sequence[str], names: Sequence[str]) -> Floats:
    """Read the (n, T) predictions of one network; check that they are for these molecules."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if [row["smiles"] for row in rows] != list(ids):
        raise RuntimeError(f"{path} does not have the molecules of the test part in their order")
    return np.array([[float(row[name]) for name in names] for row in rows])


def score(dataset: str, prediction: Floats, target: Floats) -> dict[str, Any]:
    """Compute all scores of (n, T) predictions; for several targets also each ROC-AUC."""
    task = "regression" if dataset == "ESOL" else "multilabel"
    scores: dict[str, Any] = dict(find_task(task).score(prediction, target))
    if target.shape[1] > 1:
        areas = [each.get("roc_auc") for each in find_task(task).score_targets(prediction, target)]
        scores["roc_auc_of"] = dict(zip(TARGETS[dataset], areas, strict=True))
    return scores


def results_of(job: Job, machine: Machine) -> Iterator[Line]:
    """Train a job and yield its results: one network and, if there are more, their mean."""
    graphs = read_molecules(job.dataset)
    split = make_splits(job.rule, graphs, seed=0, repeats=REPEATS)[job.seed]
    predictions, times, arguments = train(job, graphs, split, machine)
    assert graphs.targets is not None
    target, metric = graphs.targets[split.test], METRIC.get(job.dataset, "roc_auc")
    config = {"device": machine.device, "threads": machine.threads, "nice": os.nice(0)}
    for members in sorted({1, job.networks}):
        scores = score(job.dataset, predictions[:members].mean(axis=0), target)
        share = members / job.networks
        yield {
            "dataset": job.dataset, "method": "chemprop", "split": job.rule, "seed": job.seed,
            "members": members, "metric": metric, "value": scores[metric], "scores": scores,
            "split_hash": split.digest(),
            **{name: round(share * spent, 2) for name, spent in times.items()},
            "versions": versions(machine.chemprop), "config": {"arguments": arguments} | config,
            "status": "ok",
        }  # fmt: skip


def versions(chemprop: Path) -> dict[str, str]:
    """Return the versions of the packages in the environment of chemprop."""
    code = f"from importlib.metadata import version; print(*map(version, {PACKAGES}))"
    output = subprocess.check_output([chemprop.parent / "python", "-c", code], text=True)
    return dict(zip(PACKAGES, output.split(), strict=True))


def print_summary(results: Sequence[Line]) -> None:
    """Print mean and standard deviation of each kind of run, and the time of one network."""
    groups = defaultdict[tuple[Any, ...], list[Line]](list)
    for row in results:
        if row["status"] == "ok":
            groups[row["dataset"], row["split"], row["members"]].append(row)
    for (dataset, rule, members), rows in groups.items():
        values = [row["value"] for row in rows]
        spread = mean_and_std(mean(values), stdev(values) if len(values) > 1 else None, 3)
        seconds = mean(row["cpu_seconds"] / members for row in rows)
        print(
            f"{dataset:6} {rule:9} {members} member(s)  {rows[0]['metric']} {spread}  "
            f"({len(rows)} runs, {seconds:.0f} s of one core per network)"
        )


def main() -> None:
    """Train what is missing, and print a summary."""
    parser = new_parser(__doc__, "chemprop.jsonl")
    kinds = [f"{dataset}-{rule}" for dataset, rule, _ in PLAN]
    parser.add_argument("--chemprop", type=Path, required=True, help="executable of chemprop")
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--threads", type=int, default=1, help="threads of chemprop [1]")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    arguments = parser.parse_args()
    machine = Machine(arguments.chemprop, arguments.device, arguments.threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends chemprop too
    for dataset, rule, networks in PLAN:
        if f"{dataset}-{rule}" not in arguments.only:
            continue
        for seed in range(REPEATS):
            job = Job(dataset, rule, seed, networks)
            others, of_job = list[Any](), list[Any]()
            for row in read_lines(arguments.out):
                is_of_job = (row["dataset"], row["split"], row["seed"]) == job[:3]
                (of_job if is_of_job else others).append(row)
            if any(row["status"] == "ok" for row in of_job):
                continue
            try:
                rows = list(results_of(job, machine))
            except RuntimeError as error:
                about = {"dataset": dataset, "method": "chemprop", "split": rule, "seed": seed}
                rows = [about | {"status": "failed", "error": str(error)}]
            lines = [json.dumps(row) + "\n" for row in (*others, *rows)]
            write_text(arguments.out, "".join(lines))
            values = ", ".join(f"{row.get('value', row['status'])}" for row in rows)
            print(f"{job}: {values}", flush=True)
    print_summary(read_lines(arguments.out))


if __name__ == "__main__":
    main()
