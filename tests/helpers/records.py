"""Invented records of runs, and their files, for tests of the report."""

import csv
import json
from pathlib import Path

import numpy as np

from haarpool.report import RunRecord, write_report
from haarpool.training.run_folder import FORMAT


def score(values):
    std = float(np.std(values)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "std": std, "each": [*values]}


def record(
    task="classification", repeats=3, epochs=30, classes=2, targets=1, changes=(), members=1
):
    """Make a record like that of a real run; `changes` replace entries of the data section."""
    random = np.random.default_rng(0)
    test, regression = 19, task == "regression"
    several = task == "multilabel"
    data = {
        "source": "MUTAG",
        "name": "MUTAG",
        "task": task,
        "classes": [] if regression else [f"class {c}" for c in range(classes)],
        "target_names": [f"energy {t}" for t in range(targets)]
        if regression or several
        else ["label"],
        "features": "labels",
        "width": 7,
        "digest": "5e" * 32,
        "summary": {
            "graphs": 188,
            "nodes_per_graph": {"mean": 17.93, "least": 10, "most": 28},
            "classes": {"-1": 63, "1": 125},
            "isolated nodes": 0,
        },
    } | dict(changes)
    x = np.arange(1, epochs + 1)
    log, best = [], []
    for repeat, member in np.ndindex(repeats, members):
        train = 0.3 + 0.4 * np.exp(-x / 8) + 0.01 * random.standard_normal(epochs)
        validation = train + 0.08 + 0.002 * x + 0.03 * random.standard_normal(epochs)
        best.append(int(validation.argmin()) + 1)
        log += [
            {
                "repeat": repeat,
                "member": member,
                "epoch": int(e),
                "train_loss": float(a),
                "validation_loss": float(b),
                "validation_score": float(1.1 - b),
                "seconds": 0.1,
            }
            for e, a, b in zip(x, train, validation, strict=True)
        ]
    names = ["mae", "rmse"] if regression else ["accuracy", "f1"]
    names = ["roc_auc", *names] if several else names
    each = random.uniform(0.7, 0.95, (len(names), 2, repeats))
    n = repeats * test
    if regression:
        target = random.normal(-1500, 220, (n, targets))
        prediction = target + random.normal(0, 60, (n, targets))
        target[::7, 0] = np.nan
    elif several:
        target = random.integers(0, 2, (n, targets)).astype(float)
        prediction = random.random((n, targets))
        target[::7, 0] = np.nan
        target[:, -1] = 1.0  # without a ROC curve
    else:
        target = random.integers(0, classes, n)
        prediction = np.where(random.random(n) < 0.8, target, random.integers(0, classes, n))
    return RunRecord(
        config={
            "format": FORMAT,
            "command": f"haarpool train MUTAG --repeats {repeats}",
            "versions": {"haarpool": "0.1.0", "python": "3.11.2", "torch": "2.11.0"},
            "device": "cpu",
            "data": data,
            "model": {"arch": "GC60-HP-FC60-FC180-FC60", "domain": "haar", "num_parameters": 12345},
            "chain": {"method": "spectral", "seed": 0, "num_levels": 1, "top": 1, "ratio": 0.5},
            "training": {
                "epochs": epochs,
                "lr": 0.01,
                "repeats": repeats,
                "split": "random",
                "monitor": "loss",
            },
        },
        epochs=log,
        result={
            "metric": names[0],
            "scores": {
                name: {"test": score(a.tolist()), "validation": score(b.tolist())}
                for name, (a, b) in zip(names, each, strict=True)
            },
            "repeats": repeats,
            "folds": None,
            "best_epoch": best[::members],
            **_members(names, best, repeats, members),
            **_targets(names, data["target_names"], repeats, regression or several),
            "model_of_repeat": repeats // 2,
            "example_graph": 17,
            "graphs": {
                "train": [150] * repeats,
                "validation": [19] * repeats,
                "test": [19] * repeats,
            },
            "seconds": 12.3,
        },
        target=target,
        prediction=prediction,
    )


def _members(names, best, repeats, members):
    """Make the part of a result about the members of an ensemble."""
    if members == 1:
        return {"ensemble": 1, "members": None}
    scores = score([0.5] * repeats) | {"each": [[0.5] * members] * repeats}
    epochs = np.reshape(best, (repeats, members)).tolist()
    parts = {"test": scores, "validation": scores}
    return {
        "ensemble": members,
        "members": {"scores": dict.fromkeys(names, parts), "best_epoch": epochs},
    }


def _targets(names, targets, repeats, several):
    """Make the part of a result about several targets, the last of which is not defined."""
    if not several or len(targets) < 2:
        return {"targets": None, "scored_targets": None}
    undefined = {"mean": None, "std": None, "each": [None] * repeats}
    each = {
        target: dict.fromkeys(names, dict.fromkeys(("test", "validation"), value))
        for target, value in zip(
            targets, [score([0.25] * repeats)] * (len(targets) - 1) + [undefined], strict=True
        )
    }
    counts = [len(targets) - 1] * repeats
    return {"targets": each, "scored_targets": {"test": counts, "validation": counts}}


def write_run(folder: Path, run: RunRecord) -> Path:
    """Write the files of a run that its report is made from."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(run.config))
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in run.epochs))
    (folder / "result.json").write_text(json.dumps(run.result))
    data, (repeats, size) = run.config["data"], (run.result["repeats"], len(run.target))
    repeat, graph = np.arange(size) * repeats // size, np.arange(size)
    with open(folder / "test.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["repeat", "graph", "..."])
        for row in zip(repeat, graph, run.target, run.prediction, strict=True):
            shown = np.concatenate([np.atleast_1d(values) for values in row[2:]]).tolist()
            if data["task"] == "classification":
                shown = [data["classes"][c] for c in shown]
            writer.writerow([*row[:2], *shown])
    if run.chain is not None:
        run.chain.save(folder / "example_chain.npz")
    return folder


def report_of(folder: Path, run: RunRecord) -> Path:
    """Write a run and its report."""
    return write_report(write_run(folder, run))
