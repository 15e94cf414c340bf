"""Signatures of public functions, as editors and type checkers read them."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import haarpool as hp
from haarpool.data import AddHaarChain, ChainArguments
from haarpool.nn.strings.build import LayerOptions
from haarpool.nn.strings.registry import registered_layers

ROOT = Path(__file__).parents[1]
IMPORTS = """
import numpy as np
import haarpool as hp
from haarpool.chains.recipe import Recipe
from haarpool.data import AddHaarChain
from haarpool.nn import build_model
from typing import Any
graph = [[0, 1], [1, 0]]

def pairs(adjacency: object, num_clusters: int, *, seed: int) -> list[int]:
    return [0, 0]
"""
CORRECT = """
chain: hp.Chain = hp.build_chain(graph, 2)
chain = hp.build_chain(graph, num_levels=2, ratio=[0.5, 0.4], top=None, seed=1, order="index")
chain = hp.build_chain(graph, sizes=np.array([4, 2]), method="matching", measure="mass")
chain = hp.build_chain(graph, sizes="paper", method=pairs, symmetrize=True)
chain = hp.build_chain(graph, method="kmeans", options={"n_init": 3}, features=np.eye(2))
chain = hp.build_chain(graph, Recipe(3, method="matching"))
chains: hp.Chains = hp.precompute([graph], Recipe(3), cache=False)
chains = hp.precompute([graph], 3, ratio=0.4, features="x", n_jobs=2, progress=False)
chain = chains[0]
AddHaarChain(2, top=None, method="kmeans", options={"n_init": 3}, features="x")
AddHaarChain(chain=lambda data: hp.build_chain(data, 3))
hp.register("pairs", version="1")(pairs)
dataset = hp.load_dataset("rings", features="degree", seed=1)
model: hp.HaarClassifier = hp.HaarClassifier(epochs=3, chain={"method": "matching"}).fit(dataset)
values: hp.HaarRegressor = hp.HaarRegressor(ensemble=2, monitor="loss", device="cpu")
values = hp.HaarRegressor(task="counts")
network = build_model("GC8-DP-SUM", 3, 2, dropout=0.1, num_clusters=8)
network.transform(seed=1, method="kmeans", options={"n_init": 3})
own: dict[str, Any] = {"share": 0.8}
build_model("GC8-TOY-SUM", 3, 2, **own)
epochs: int = model.epochs
"""
# What mypy says of a line, or a part of it.
WRONG = {
    "hp.build_chain(graph, num_levls=2)": 'Unexpected keyword argument "num_levls"',
    "hp.build_chain(graph, method='kmeans', n_init=3)": 'Unexpected keyword argument "n_init"',
    "hp.build_chain(graph, order='size')": "incompatible type \"Literal['size']\"",
    "hp.build_chain(graph, seed='one')": 'incompatible type "str"; expected "int"',
    "number: int = hp.build_chain(graph, 2)": 'expression has type "Chain"',
    "other: int = hp.precompute([graph], 2)": 'expression has type "Chains"',
    "hp.precompute([graph], num_levls=2)": 'Unexpected keyword argument "num_levls"',
    "AddHaarChain(num_levls=2)": 'Unexpected keyword argument "num_levls"',
    "Recipe(num_levls=2)": 'Unexpected keyword argument "num_levls"',
    "hp.HaarClassifier(epoch=3)": 'Unexpected keyword argument "epoch"',
    "hp.HaarRegressor(epochs='3')": 'incompatible type "str"; expected "int"',
    "hp.HaarRegressor(schedule='linear')": "incompatible type \"Literal['linear']\"",
    "hp.HaarClassifier(task=3)": 'incompatible type "int"; expected "str"',
    "build_model('GC8-HP', 3, 2, droput=0.1)": 'Unexpected keyword argument "droput"',
    "build_model('GC8-TP-SUM', 3, 2, ratio='x')": 'incompatible type "str"; expected "float"',
    "network.transform(sed=3)": 'Unexpected keyword argument "sed"',
    "hp.load_dataset('rings', feature='x')": 'Unexpected keyword argument "feature"',
    "hp.adjiont(graph)": 'Module has no attribute "adjiont"',
}


def errors_of(file):
    """Run mypy with the settings of the project; return its errors by line of the file."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", file]
    environment = os.environ | {"MYPYPATH": "src"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    errors, lines = {}, file.read_text().splitlines()
    for line in run.stdout.splitlines():
        path, number, kind, text = line.split(":", 3)
        assert Path(path).name == file.name, run.stdout  # the folder may be that of an earlier run
        if kind == " error":
            errors.setdefault(lines[int(number) - 1], []).append(text)
    return errors


@pytest.mark.slow
def test_mypy_accepts_correct_calls_and_finds_each_mistake(tmp_path):
    file = tmp_path / "example.py"
    file.write_text(IMPORTS + CORRECT + "\n".join(WRONG))
    errors = errors_of(file)
    assert errors.keys() == WRONG.keys()
    for line, (error,) in errors.items():
        assert WRONG[line] in error


def test_options_for_type_checkers_are_those_of_layers():
    options = {name for layer in registered_layers().values() for name in layer.options}
    assert LayerOptions.__annotations__.keys() <= options | {"cluster_ratio"}


def test_arguments_for_type_checkers_are_those_of_the_transform():
    names = {*inspect.signature(AddHaarChain).parameters} - {"num_levels", "top"}
    assert ChainArguments.__annotations__.keys() == names


FUNCTIONS = [getattr(hp, name) for name in hp.__all__ if name != "__version__"] + [AddHaarChain]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_parameters_are_written_out(function):
    if not (inspect.isclass(function) and issubclass(function, Exception)):  # as Python has it
        kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
