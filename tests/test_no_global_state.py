"""Importing and using the package changes no other library, and nothing global remembers a call."""

import json

from helpers.commands import run_python

CODE = """
import importlib, json, os, pkgutil, sys
import sklearn  # it sets variables of OpenMP
import torch_geometric.data, torch_geometric.loader, torch_geometric.nn, torch_geometric.transforms

environment = dict(os.environ)
classes = {
    value
    for name, module in list(sys.modules.items()) if name.startswith("torch_geometric")
    for value in vars(module).values()
    if isinstance(value, type) and value.__module__.startswith("torch_geometric")
}

def attributes():
    return {
        f"{one.__module__}.{one.__qualname__}.{name}": value
        for one in classes for name, value in vars(one).items() if not name.startswith("__")
    }

before = attributes()

import haarpool as hp
from haarpool.data import AddHaarChain

for module in pkgutil.walk_packages(hp.__path__, "haarpool."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
after = attributes()
changed = [key for key in before | after if before.get(key) is not after.get(key)]

def containers():
    owners = {name: module for name, module in sys.modules.items() if name.startswith("haarpool")}
    owners |= {
        f"{module}.{name}": value
        for module, owner in owners.items()
        for name, value in vars(owner).items()
        if isinstance(value, type) and value.__module__ == module
    }
    return {
        f"{owner}.{name}": [*map(id, value), *map(id, getattr(value, "values", list)())]
        for owner, names in owners.items()
        for name, value in vars(names).items()
        if not name.startswith("__") and (
            isinstance(value, dict | list | set) or type(value).__name__.startswith("Weak")
        )
    }

empty = containers()

def use():
    graphs = hp.load_dataset("rings")
    chain = hp.build_chain(graphs[0], num_levels=2)
    hp.threshold(chain, hp.adjoint(chain, graphs[0].x), keep=0.5)
    data = [AddHaarChain(num_levels=2)(graphs[i]) for i in range(3)]
    (batch,) = torch_geometric.loader.DataLoader(data, batch_size=3)
    hp.nn.HaarPooling(0)(batch.x, batch)
    hp.HaarClassifier(arch="GC8-HP-FC8", epochs=1).fit(graphs).predict(graphs)

use()
full = containers()
remembered = [key for key, value in empty.items() if full[key] != value]
print(json.dumps({
    "pyg": changed + [key for key, value in attributes().items() if after.get(key) is not value],
    "environment": [k for k in environment.keys() | os.environ if
                    environment.get(k) != os.environ.get(k)],
    "remembered": remembered,
    "containers": len(empty),
}))
"""
# Memory that the next call takes instead of new memory: it has no values.
SCRATCH = ["haarpool.haar.kernels.cpu._spare_memory"]


def test_imports_and_calls_leave_no_traces():
    result = json.loads(run_python(CODE).out.splitlines()[-1])
    assert result["pyg"] == []
    assert result["environment"] == []
    assert [key for key in result["remembered"] if key not in SCRATCH] == []
    assert result["containers"] > 30
