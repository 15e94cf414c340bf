"""Time `haarpool train` and `chemprop train` on tables of molecules, one after the other.

    HAARPOOL_DATA=... python -m benchmarks.training_time --chemprop chemprop-env/bin/chemprop
        [--out results/training_time.json] [--rounds 2] [--threads 2]

Both commands start from the table and train one network on the processor, with their default
settings and on the same split; haarpool also builds its chains. The fastest of the rounds counts,
since other programs on the machine only make it slower.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.chemprop_peer import TARGETS, Job, Machine, read_molecules, versions
from benchmarks.chemprop_peer import train as train_chemprop
from benchmarks.common import new_parser
from benchmarks.measure import run_haarpool
from haarpool._files import write_text
from haarpool._versions import find_versions
from haarpool.datasets.splits import make_splits

DATASETS = ("ESOL", "BBBP", "BACE")


def time_haarpool(dataset: str) -> float:
    """Run `haarpool train`; return its seconds."""
    table = Path(os.environ["HAARPOOL_DATA"]) / "molecules" / f"{dataset}.csv"
    with tempfile.TemporaryDirectory(prefix="haarpool-") as folder:
        command = ("train", table, "--device", "cpu", "--target", *TARGETS[dataset])
        options = ("--split", "random", "--out", f"{folder}/run")
        return run_haarpool(*command, *options, HAARPOOL_CACHE=f"{folder}/cache")[1]


def time_chemprop(dataset: str, machine: Machine) -> float:
    """Run `chemprop train` on the split of `time_haarpool`; return its seconds."""
    graphs = read_molecules(dataset)
    split = make_splits("random", graphs, seed=0, repeats=1)[0]
    return train_chemprop(Job(dataset, "random", 0, 1), graphs, split, machine)[1]["seconds"]


def main() -> None:
    """Run both commands on each dataset, and write their times."""
    parser = new_parser(__doc__, "training_time.json")
    parser.add_argument("--chemprop", type=Path, required=True, help="executable of chemprop")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of chemprop [all]")
    arguments = parser.parse_args()
    machine = Machine(arguments.chemprop, "cpu", arguments.threads)
    rows: list[dict[str, Any]] = []
    for dataset in DATASETS:
        ours, others = [], []
        for _ in range(arguments.rounds):
            ours.append(round(time_haarpool(dataset), 1))
            others.append(round(time_chemprop(dataset, machine), 1))
            print(f"{dataset}: haarpool {ours[-1]} s, chemprop {others[-1]} s", flush=True)
        rows.append(
            {"dataset": dataset, "haarpool": ours, "chemprop": others}
            | {"ratio": round(min(ours) / min(others), 3)}
        )
    about = {
        "unit": "seconds", "threads": arguments.threads, "cores": os.cpu_count(),
        "versions": find_versions("torch") | {"chemprop": versions(machine.chemprop)},
    }  # fmt: skip
    write_text(arguments.out, json.dumps({"about": about, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
