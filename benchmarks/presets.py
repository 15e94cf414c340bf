"""Compare settings by their validation score: how the preset "best" was chosen.

    HAARPOOL_DATA=... python benchmarks/presets.py [--out results/presets.json] [--only NAME ...]

Each candidate is trained on the datasets below with the same splits and ranked by its mean
validation score. Test scores are not used. Takes about half an hour on one core.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup
from haarpool.training.presets import PAPER
from haarpool.training.results import run_result
from haarpool.training.run import start_run
from haarpool.training.train import train_run

REPEATS = {"MUTAG": 10, "PROTEINS": 3}
GIN = {
    "epochs": 100, "patience": 100, "batch_size": 32, "lr": 0.005, "weight_decay": 0.0,
    "schedule": "cosine", "monitor": "score", "domain": "vertex",
}  # fmt: skip
CANDIDATES: dict[str, dict[str, Any] | None] = {
    "paper": None,
    "no pooling": GIN | {"arch": "4GIN64-SUM-FC64"},
    "one pooling": GIN | {"arch": "3GIN64-HP-GIN64-SUM-FC64"},
    "one pooling, with degrees": GIN
    | {"arch": "3GIN64-HP-GIN64-SUM-FC64", "features": "labels+degree"},
    "one pooling, Haar domain": GIN | {"arch": "3GIN64-HP-GIN64-SUM-FC64", "domain": "haar"},
    "two poolings": GIN | {"arch": "2GIN64-HP-GIN64-HP-GIN64-SUM-FC64"},
    "two poolings to one node": GIN | {"arch": "2GIN64-HP-GIN64-HP-FC64"},
    "one pooling, GCN": GIN | {"arch": "3GC64-HP-GC64-SUM-FC64"},
    "one pooling, lower rate": GIN | {"arch": "3GIN64-HP-GIN64-SUM-FC64", "lr": 0.001},
}  # fmt: skip


def evaluate(name: str, settings: dict[str, Any] | None) -> dict[str, Any]:
    """Train one candidate; return its validation scores per dataset and their mean."""
    scores: dict[str, Any] = {}
    for dataset, repeats in REPEATS.items():
        fields = dict(settings or PAPER[dataset.lower()]) | {"threads": 1, "repeats": repeats}
        run = start_run(read_graphs(dataset), RunConfig(**fields), ProcessGroup(), progress=False)
        result = run_result(train_run(run, progress=False))
        scores[dataset] = result["scores"][result["metric"]]["validation"]
        print(f"{name:28} {dataset:10} {100 * scores[dataset]['mean']:.1f} "
              f"± {100 * scores[dataset]['std']:.1f}, {repeats} repeats", flush=True)  # fmt: skip
    mean = sum(scores[dataset]["mean"] for dataset in REPEATS) / len(REPEATS)
    return {"settings": settings or "settings of the paper", "mean": mean, "validation": scores}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/presets.json"))
    parser.add_argument("--only", nargs="+", choices=list(CANDIDATES), default=list(CANDIDATES))
    arguments = parser.parse_args()
    results = {name: evaluate(name, CANDIDATES[name]) for name in arguments.only}
    ranked = dict(sorted(results.items(), key=lambda item: -item[1]["mean"]))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    about = {"repeats": REPEATS, "torch": torch.__version__, "candidates": ranked}
    arguments.out.write_text(json.dumps(about, indent=1))
    print(f"best: {next(iter(ranked))}; written to {arguments.out}")


if __name__ == "__main__":
    main()
