"""Compute a fingerprint of every number that haarpool gives, and compare it with the one on file.

Only public names and the shell command are used, so the same script runs before and after a change:

    python -m benchmarks.fingerprint                  # compare with results/fingerprint-cpu.json
    python -m benchmarks.fingerprint --device cuda    # compare with results/fingerprint-cuda.json

Last digits depend on the processor and on versions of libraries. On another machine than that of
the file, make one with the code before the change, and compare with it after the change:

    python -m benchmarks.fingerprint --write --file before.json
    ... change the code ...
    python -m benchmarks.fingerprint --file before.json

Needs HAARPOOL_DATA. Without the extras `chem` and `cluster` their entries are missing and
count as different. Takes about five minutes on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Batch

import haarpool as hp
from benchmarks import RESULTS
from benchmarks.results import processor_name
from haarpool._versions import RUN, find_versions
from haarpool.data import AddHaarChain
from haarpool.errors import MissingExtraError
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
        *("MUTAG", "--epochs", "2", "--sizes", "8,4", "--symmetrize", "--features", "degree")
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
        given: dict[str, Any] = {"top": None, "num_levels": 2, "method": method, "seed": 1}
        with suppress(MissingExtraError):
            built = hp.precompute(graphs, cache=False, **given)
            hashes[f"MUTAG 40 {method}"] = digest(chain.digest for chain in built)
    more: dict[str, dict[str, Any]] = {
        "paper": {"sizes": "paper", "num_levels": 2},
        "sizes": {"sizes": [5, 2]},
        "ratios": {"ratio": [0.6, 0.3], "top": None},
        "mass": {"num_levels": 2, "measure": "mass", "order": "index"},
        "levels": {},
        "options": {
            "num_levels": 2,
            "method": "kmeans",
            "options": {"n_init": 3},
            "features": "x",
        },
    }
    for name, parameters in more.items():
        built = hp.precompute(graphs, cache=False, **parameters)
        hashes[f"MUTAG 40 {name}"] = digest(chain.digest for chain in built)
    return hashes


def transforms(device: str = "cpu") -> dict[str, str]:
    """Hash transforms of single chains and of plans."""
    hashes = {}
    graphs = [nx.karate_club_graph(), nx.path_graph(9), nx.barabasi_albert_graph(200, 2, seed=0)]
    for measure in ("children", "mass"):
        for order in ("index", "degree"):
            built = [hp.build_chain(g, 3, top=None, measure=measure, order=order) for g in graphs]
            plan = hp.TransformPlan.from_chains(built, device)
            rng = np.random.default_rng(0)
            for level in (0, 1):
                x = torch.from_numpy(rng.standard_normal((plan.sizes[level], 5))).to(device)
                c = hp.adjoint(plan, x, level)
                z = hp.compress(plan, x, level)
                parts: list[Any] = [c, z, hp.expand(plan, z, level)]
                parts += [hp.forward_transform(plan, c, level), *hp.split(plan, c, level)]
                parts += [hp.threshold(plan, c, 0.3, level=level)]
                parts += [hp.haar_basis(chain, level).toarray() for chain in built]
                parts += [
                    hp.algorithm1(built[0], rng.standard_normal(built[0].sizes[level]), level)
                ]
                hashes[f"{measure} {order} {level}"] = digest(parts)
    return hashes


def layers(device: str = "cpu") -> dict[str, str]:
    """Hash layers and networks, forward and backward."""
    hashes = {}
    dataset = hp.load_dataset("MUTAG")
    columns = dataset[0].num_node_features
    for measure in ("children", "mass"):
        transform = AddHaarChain(num_levels=2, top=None, measure=measure)
        batch = Batch.from_data_list([transform(dataset[i]) for i in range(30)]).to(device)
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
        conv = HaarConv(columns, 8, 2).to(device)
        hashes[f"conv {measure}"] = digest([conv(batch.x, batch)])
    for arch in NETWORKS:
        torch.manual_seed(0)
        model = build_model(arch, columns, 2).to(device)
        prepare = model.transform(seed=0) or (lambda data: data)
        batch = Batch.from_data_list([prepare(dataset[i]) for i in range(30)]).to(device)
        output, auxiliary = model.output_and_auxiliary(batch)
        loss = model.loss(output, batch.y)
        if auxiliary is not None:
            loss = loss + auxiliary
        loss.backward()  # type: ignore[no-untyped-call]
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        hashes[f"network {arch}"] = digest([loss, *gradients])
    return hashes


def runs(device: str) -> dict[str, Any]:
    """Hash what `haarpool train`, `predict` and the estimators give."""
    hashes: dict[str, Any] = {}
    has_rdkit = find_spec("rdkit") is not None
    data = os.environ["HAARPOOL_DATA"]
    command = [sys.executable, "-m", "haarpool"]
    with tempfile.TemporaryDirectory() as temporary:
        environment = os.environ | {"HAARPOOL_CACHE": f"{temporary}/cache", "OMP_NUM_THREADS": "1"}
        names = [name for name in RUNS if name != "molecules" or has_rdkit]

        def train(name: str) -> None:
            given = [argument.format(data=data) for argument in RUNS[name]]
            out = f"{temporary}/{name}"
            subprocess.run(
                [*command, "train", *given, "--out", out, "--quiet", "--device", device],
                check=True, stdout=subprocess.DEVNULL, env=environment,
            )  # fmt: skip

        with ThreadPoolExecutor(os.cpu_count()) as pool:  # each run in a process of its own
            list(pool.map(train, names))
        for name in names:
            out = Path(temporary) / name
            result = json.loads((out / "result.json").read_text())
            config = json.loads((out / "config.json").read_text())
            hashes[f"{name} scores"] = result["scores"]
            hashes[f"{name} chains"] = (config["chain"] or {}).get("digest")
            hashes[f"{name} data"] = config["data"]["digest"]
            for file in ("test.csv", "split.json"):
                hashes[f"{name} {file}"] = digest([(out / file).read_text()])
        sources = {"default": "MUTAG", "molecules": f"{data}/molecules/ESOL.csv"}
        for name in ("default", "molecules")[: 1 + has_rdkit]:
            out = Path(temporary) / name
            predicted = subprocess.run(
                [*command, "predict", str(out), sources[name], "--quiet", "--device", device],
                check=True, capture_output=True, text=True, env=environment,
            ).stdout  # fmt: skip
            hashes[f"predict {name}"] = digest(list(csv.reader(predicted.splitlines())))
    model = hp.HaarClassifier(epochs=4, seed=2, device=device).fit("MUTAG")
    hashes["classifier"] = digest([model.predict_proba("MUTAG")])
    return hashes


def describe_machine(device: str) -> dict[str, str | None]:
    """Return what the last digits may depend on."""
    machine = {"processor": processor_name()} | find_versions(*RUN, "scikit-learn", "rdkit")
    return machine | ({"gpu": torch.cuda.get_device_name()} if device == "cuda" else {})


def differences(new: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Return the entries that differ, or that one of the two does not have."""
    keys = dict.fromkeys([*before, *new])
    return [key for key in keys if key not in new or key not in before or new[key] != before[key]]


def main() -> None:
    """Compute a fingerprint; write it, or compare it with the one on file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--file", type=Path, help="default: results/fingerprint-DEVICE.json")
    parser.add_argument("--write", action="store_true", help="write the file")
    arguments = parser.parse_args()
    path: Path = arguments.file or RESULTS / f"fingerprint-{arguments.device}.json"
    if not arguments.write and not path.exists():
        parser.error(f"no file {path}; make it with --write and the code before the change")
    device = arguments.device
    torch.set_num_threads(1)
    if device == "cuda":  # or the last bits of gradients change from call to call
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    machine = describe_machine(device)
    hashes = chains() | transforms(device) | layers(device) | runs(device)
    if arguments.write:
        content = {"machine": machine, "fingerprint": hashes}
        path.write_text(json.dumps(content, indent=1) + "\n")
        print(f"{len(hashes)} entries in {path}")
        return
    before = json.loads(path.read_text())
    new = json.loads(json.dumps(hashes))  # tuples are lists there
    different = differences(new, before["fingerprint"])
    print(f"{len(different)} of {len(before['fingerprint'])} entries differ")
    print(*(f"  {key}" for key in different), sep="\n", end="\n" * bool(different))
    for name, value in before["machine"].items():
        if machine.get(name) != value:
            print(f"the file is from another machine: {name} {value}, here {machine.get(name)}")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
