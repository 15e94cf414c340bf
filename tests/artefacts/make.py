"""Write the artefacts of the installed version: `python tests/artefacts/make.py 0.1.0`.

Run it once per format, with the version that writes it; later versions only read the files.
`tests/test_artefacts.py` loads, predicts, resumes and reports from all of them.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

import haarpool as hp
from haarpool.data import AddHaarChain

COMMAND = [sys.executable, "-m", "haarpool"]
NETWORK = ("--width", "8", "--epochs", "6", "--threads", "1", "--device", "cpu", "--quiet")
CACHED = (
    {"num_levels": 2},
    {"num_levels": 2, "method": "matching", "measure": "mass", "order": "index"},
    {"sizes": "paper", "num_levels": 2, "seed": 3},
    {"num_levels": 2, "method": "kmeans", "options": {"n_init": 3}, "features": "x"},
)
METHODS = ("haarpool", "gin", "csm", "best", "best-mixture", "best-nested")  # of result lines
INPUTS = {"classification": "rings", "regression": "molecules.csv"}
STOPPED_AT = {"classification": 9, "regression": 3}  # the checkpoint that is not written

# Run the command; Ctrl-C arrives before a checkpoint is written.
INTERRUPTED = """
import os, sys
from haarpool.cli import main
replace, left = os.replace, int(sys.argv[1])
def counted(source, target, **options):
    global left
    left -= str(target).endswith("checkpoint.safetensors")
    if left == 0:
        raise KeyboardInterrupt
    return replace(source, target, **options)
os.replace = counted
sys.argv = ["haarpool", *sys.argv[2:]]
sys.exit(main())
"""


def haarpool(*arguments: str | Path) -> str:
    """Run the command; return what it prints."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def write_molecules(path: Path) -> None:
    """Write 60 molecules: chains and rings with one group, and the number of their atoms."""
    groups = ("", "O", "N", "C(=O)O", "Cl", "C#N")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "smiles", "size"])
        for n in range(1, 6):
            for group in groups:
                for kind, carbons in (("chain", "C" * n), ("ring", "C1" + "C" * (n + 1) + "C1")):
                    heavy = sum(letter in "CON" for letter in carbons + group)
                    writer.writerow([f"{kind}{n}{group}", carbons + group, heavy])


def write_runs(folder: Path) -> None:
    """Train a run of each kind, and interrupt another one with the same settings."""
    rings = ("train", "rings", "--ensemble", "2", *NETWORK)
    molecules = ("train", "molecules.csv", "--target", "size", "--task", "regression",
                 "--method", "matching", "--repeats", "2", *NETWORK)  # fmt: skip
    for name, arguments in (("classification", rings), ("regression", molecules)):
        haarpool(*arguments, "--out", name)
        haarpool("predict", name, INPUTS[name], "--quiet", "--out", f"{name}.csv")
        stopped = [sys.executable, "-c", INTERRUPTED, str(STOPPED_AT[name]), *arguments]
        ended = subprocess.run([*stopped, "--out", f"{name}-interrupted"], check=False)
        assert ended.returncode == 130
        (folder / name / "report.html").unlink()  # written again by the tests
    for path in folder.glob("regression*/config.json"):  # valid on any machine
        path.write_text(path.read_text().replace(f"{folder}{os.sep}", ""))


def write_estimator(folder: Path) -> None:
    """Save a classifier whose classes are numbers that do not begin at 0."""
    graphs = hp.load_dataset("rings")
    labels = [7 if int(graph.y) else -1 for graph in graphs]
    model = hp.HaarClassifier(width=8, epochs=6, threads=1, device="cpu").fit(graphs, labels)
    model.save(folder / "estimator")
    np.savetxt(folder / "estimator.csv", model.predict_proba(graphs), "%.6g", ",")


def write_chains(folder: Path) -> None:
    """Write a chain cache, a saved chain and graphs with chains; record what is in them."""
    rings = hp.load_dataset("rings")
    graphs = [rings[g] for g in range(0, 240, 12)]
    digests = []
    for parameters in CACHED:
        chains = hp.precompute(graphs, cache=folder / "cache", **parameters)
        digests.append([chain.digest for chain in chains])
    chain = hp.build_chain(graphs[0], 3, top=None, measure="mass")
    chain.save(folder / "chain.npz")
    transform = AddHaarChain(num_levels=2, measure="mass")
    torch.save([transform(graph.clone()) for graph in graphs[:5]], folder / "graphs.pt")
    x = np.arange(chain.sizes[0], dtype=np.float64) ** 2
    expected = {
        "cached": [{"parameters": p, "digests": d} for p, d in zip(CACHED, digests, strict=True)],
        "chain": {
            "text": str(chain),
            "digest": chain.digest,
            "parents": [parents.tolist() for parents in chain.parents],
            "adjoint": hp.adjoint(chain, x).tolist(),
        },
        "graphs": [list(transform(graph).chain_sizes) for graph in graphs[:5]],
    }
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def write_lines(source: Path, target: Path) -> None:
    """Copy three lines of each method."""
    target.mkdir(parents=True)
    kept = dict.fromkeys(METHODS, 3)
    with open(target / "MUTAG.jsonl", "w") as file:
        for text in (source / "MUTAG.jsonl").read_text().splitlines(keepends=True):
            line = json.loads(text)
            if line["protocol"] == "random" and kept.get(line["method"]):
                kept[line["method"]] -= 1
                file.write(text)


def main() -> None:
    """Write all artefacts to the folder of a version."""
    here = Path(__file__).resolve().parent
    folder = here / sys.argv[1]
    folder.mkdir()
    os.chdir(folder)
    os.environ["HAARPOOL_DATA"] = ""
    write_molecules(folder / "molecules.csv")
    write_runs(folder)
    write_estimator(folder)
    write_chains(folder)
    write_lines(here.parents[1] / "results" / "table1", folder / "lines" / "table1")


if __name__ == "__main__":
    main()
