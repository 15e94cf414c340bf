"""Compute a fingerprint of every number that haarpool gives, to compare two versions of the code.

Only public names and the shell command are used, so the same script runs before and after a change:

    python benchmarks/fingerprint.py before.json
    ... change the code ...
    python benchmarks/fingerprint.py after.json --compare before.json

Needs HAARPOOL_DATA and the extras `chem` and `cluster`. Takes about five minutes on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Batch

import haarpool as hp
from haarpool.data import AddHaarChain
from haarpool.nn import HaarConv, HaarPooling, HaarReadout, HaarUnpooling, build_model

DATASETS = ("MUTAG", "PROTEINS", "NCI1", "BZR", "IMDB-BINARY")
NETWORKS = (
    "GC16-HP-FC16",
    "2GIN16-HP-GIN16-HP-SAGE16-SUM-FC16",
    "GAT16-EIG-CHEB16-AP-FC16-FC8",
    "GC16-SP-GC16-TP-MP-FC16",
    "GC16-DP-GC16-SUM-FC16",
    "GC16-STRUCT-GC16-S2S-FC16",
    "GC16-LAP-GC16-SORT-FC16",
)
ESOL = ("{data}/molecules/ESOL.csv", "--target", "measured log solubility in mols per litre")
RUNS = {
    "default": ["MUTAG", "--epochs", "6", "--repeats", "2"],
    "paper": ["MUTAG", "--preset", "paper", "--epochs", "6", "--split", "kfold:3"],
    "proteins": ["PROTEINS", "--preset", "paper", "--epochs", "2", "--tied", "authors"],
    "weights": ["BZR", "--epochs", "3", "--class-weights", "--monitor", "loss", "--seed", "3"],
    "cluster": ["IMDB-BINARY", "--epochs", "2", "--method", "matching", "--ratio", "0.3"],
    "qm7": ["qm7", "--preset", "paper", "--epochs", "2"],
    "molecules": [*ESOL, "--epochs", "2", "--split", "scaffold"],
    "eigen": ["MUTAG", "--arch", "GC16-EIG-GC16-SUM-FC16", "--epochs", "2", "--method", "kmeans"],
    "symmetrize": [
        "MUTAG",
        "--epochs",
        "2",
        "--sizes",
        "8,4",
        "--symmetrize",
        "--features",
        "degree",
    ],
}


def digest(values: Iterable[Any]) -> str:
    """Return a short hash of texts, arrays and tensors."""
    state = sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().numpy()
        state.update(value.tobytes() if isinstance(value, np.ndarray) else str(value).encode())
    return state.hexdigest()[:16]


def chains() -> dict[str, str]:
    """Hash the chains of real datasets and of every clustering method."""
    hashes = {}
    for name in DATASETS:
        dataset = hp.load_dataset(name)
        for method in ("spectral", "matching"):
            built = hp.precompute(dataset, 3, method=method, cache=False, progress=False)
            hashes[f"{name} {method}"] = digest(chain.digest for chain in built)
    graphs = [hp.load_dataset("MUTAG")[i] for i in range(40)]
    for method in hp.clusterings():
        built = hp.precompute(graphs, top=None, num_levels=2, method=method, cache=False, seed=1)
        hashes[f"MUTAG 40 {method}"] = digest(chain.digest for chain in built)
    more: dict[str, dict[str, Any]] = {
        "paper": {"sizes": "paper", "num_levels": 2},
        "sizes": {"sizes": [5, 2]},
        "ratios": {"ratio": [0.6, 0.3], "top": None},
        "mass": {"num_levels": 2, "measure": "mass", "order": "index"},
        "levels": {},
        "options": {"num_levels": 2, "method": "kmeans", "n_init": 3, "features": "x"},
    }
    for name, parameters in more.items():
        built = hp.precompute(graphs, cache=False, **parameters)
        hashes[f"MUTAG 40 {name}"] = digest(chain.digest for chain in built)
    return hashes


CACHED: tuple[dict[str, Any], ...] = (
    {"num_levels": 3},
    {"num_levels": 2, "measure": "mass", "order": "index", "symmetrize": True},
    {"sizes": "paper", "num_levels": 2, "method": "matching", "seed": 3},
    {"num_levels": 2, "method": "kmeans", "n_init": 3, "features": "x"},
)


def cached(cache: Path) -> dict[str, int]:
    """Count the chains that are computed though a cache of the earlier version holds them."""
    dataset = hp.load_dataset("MUTAG")
    if not cache.exists():
        for parameters in CACHED:
            hp.precompute(dataset, cache=cache, **parameters)
    return {str(p): hp.precompute(dataset, cache=cache, **p).computed for p in CACHED}


def transforms() -> dict[str, str]:
    """Hash transforms of single chains and of plans."""
    hashes = {}
    graphs = [nx.karate_club_graph(), nx.path_graph(9), nx.barabasi_albert_graph(200, 2, seed=0)]
    for measure in ("children", "mass"):
        for order in ("index", "degree"):
            built = [hp.build_chain(g, 3, top=None, measure=measure, order=order) for g in graphs]
            plan = hp.TransformPlan.from_chains(built)
            rng = np.random.default_rng(0)
            for level in (0, 1):
                x = rng.standard_normal((plan.sizes[level], 5))
                c = hp.adjoint(plan, x, level)
                z = hp.compress(plan, x, level)
                parts = [c, z, hp.expand(plan, z, level), hp.forward_transform(plan, c, level)]
                parts += hp.split(plan, c, level)
                parts += [hp.threshold(plan, c, 0.3, level=level)]
                parts += [hp.haar_basis(chain, level).toarray() for chain in built]
                parts += [
                    hp.algorithm1(built[0], rng.standard_normal(built[0].sizes[level]), level)
                ]
                hashes[f"{measure} {order} {level}"] = digest(parts)
    return hashes


def layers() -> dict[str, str]:
    """Hash layers and networks, forward and backward."""
    hashes = {}
    dataset = hp.load_dataset("MUTAG")
    columns = dataset[0].num_node_features
    for measure in ("children", "mass"):
        transform = AddHaarChain(num_levels=2, top=None, measure=measure)
        batch = Batch.from_data_list([transform(dataset[i]) for i in range(30)])
        torch.manual_seed(0)
        for domain in ("haar", "vertex"):
            for details in (None, "energy", "full"):
                x = batch.x.clone().requires_grad_()
                out = HaarPooling(0, domain, details)(x, batch)
                (out.x.square().sum()).backward()
                parts = [part for part in (*out, x.grad) if part is not None]
                if details == "full":
                    parts.append(HaarUnpooling(0, domain)(out.x, batch, out.details))
                hashes[f"pooling {measure} {domain} {details}"] = digest(parts)
        hashes[f"readout {measure}"] = digest([HaarReadout()(batch.x, batch)])
        hashes[f"conv {measure}"] = digest([HaarConv(columns, 8, 2)(batch.x, batch)])
    for arch in NETWORKS:
        torch.manual_seed(0)
        model = build_model(arch, columns, 2)
        transform = model.transform(seed=0) or (lambda data: data)
        batch = Batch.from_data_list([transform(dataset[i]) for i in range(30)])
        loss = model.loss(model(batch), batch.y)
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        hashes[f"network {arch}"] = digest([loss, *gradients])
    return hashes


def runs() -> dict[str, Any]:
    """Hash what `haarpool train`, `predict` and the estimators give."""
    hashes: dict[str, Any] = {}
    data = os.environ["HAARPOOL_DATA"]
    command = [sys.executable, "-m", "haarpool"]
    with tempfile.TemporaryDirectory() as temporary:
        environment = os.environ | {"HAARPOOL_CACHE": f"{temporary}/cache", "OMP_NUM_THREADS": "1"}
        for name, arguments in RUNS.items():
            out = Path(temporary) / name
            given = [argument.format(data=data) for argument in arguments]
            subprocess.run(
                [*command, "train", *given, "--out", str(out), "--quiet"],
                check=True, stdout=subprocess.DEVNULL, env=environment,
            )  # fmt: skip
            result = json.loads((out / "result.json").read_text())
            config = json.loads((out / "config.json").read_text())
            hashes[f"{name} scores"] = result["scores"]
            hashes[f"{name} chains"] = (config["chain"] or {}).get("digest")
            hashes[f"{name} data"] = config["data"]["digest"]
            for file in ("test.csv", "split.json"):
                hashes[f"{name} {file}"] = digest([(out / file).read_text()])
        for name, source in (("default", "MUTAG"), ("molecules", f"{data}/molecules/ESOL.csv")):
            predicted = subprocess.run(
                [*command, "predict", str(Path(temporary) / name), source, "--quiet"],
                check=True, capture_output=True, text=True, env=environment,
            ).stdout  # fmt: skip
            hashes[f"predict {name}"] = digest(list(csv.reader(predicted.splitlines())))
    model = hp.HaarClassifier(epochs=4, seed=2).fit("MUTAG")
    hashes["classifier"] = digest([model.predict_proba("MUTAG")])
    return hashes


def main() -> None:
    """Write a fingerprint; compare it with another one if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", help="JSON file to write")
    parser.add_argument(
        "--cache",
        default="build/fingerprint-cache",
        help="chain cache, kept between the two versions",
    )
    parser.add_argument("--compare", metavar="FILE", help="fingerprint of the earlier version")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    hashes = chains() | transforms() | layers() | runs()
    hashes |= {
        f"computed again {key}": value for key, value in cached(Path(arguments.cache)).items()
    }
    Path(arguments.file).write_text(json.dumps(hashes, indent=1) + "\n")
    print(f"{len(hashes)} entries in {arguments.file}")
    if arguments.compare:
        other = json.loads(Path(arguments.compare).read_text())
        # As JSON has them: tuples are lists there.
        new = json.loads(Path(arguments.file).read_text())
        different = [key for key in {**new, **other} if new.get(key) != other.get(key)]
        print(f"{len(different)} of {len(other)} entries differ", *different, sep="\n  ")
        sys.exit(bool(different))


if __name__ == "__main__":
    main()
