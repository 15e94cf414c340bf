"""Runs of `haarpool train`, and what they leave in their folders."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from helpers.commands import run_main


def train(*arguments, **environment) -> dict:
    """Train in this process; return the result."""
    return json.loads(run_main("train", *arguments, "--json", **environment).out)


def numbers(folder):
    """All that a run measured, less its times."""
    lines = [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    result = json.loads(Path(folder, "result.json").read_text())
    del result["seconds"], result["folds"]
    return lines, result, Path(folder, "test.csv").read_text()


def same_weights(one, other):
    ours, theirs = (load_file(Path(folder, "model.safetensors")) for folder in (one, other))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours)
