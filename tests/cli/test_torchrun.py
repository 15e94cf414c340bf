"""`haarpool train` in several processes, started by torchrun."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from helpers.commands import run_process
from helpers.runs import numbers, train
from helpers.tolerances import LOOSER

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_data")]


def test_two_processes_train_one_model():
    """Same split, gradients averaged over all graphs, scores over all ranks, one writer."""
    arguments = ["rings", "--arch", "GC8-HP-GC8-HP-FC8", "--epochs", "5", "--dropout", "0",
                 "--batch-size", "31", "--repeats", "2", "--class-weights"]  # fmt: skip
    train(*arguments, "--out", "one")
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2)
    command = (*torchrun, "--standalone", "-m", "haarpool", "train")
    out = run_process(*command, *arguments, "--out", "two", "--json").out
    (result,) = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert result["folder"] == "two"
    config = json.loads(Path("two/config.json").read_text())
    assert config["processes"] == 2
    assert (
        config["split_digests"] == json.loads(Path("one/config.json").read_text())["split_digests"]
    )
    one, two = numbers("one"), numbers("two")
    assert len(one[0]) == len(two[0]) == 10
    for ours, theirs in zip(one[0], two[0], strict=True):
        for key, value in ours.items():
            assert value == pytest.approx(theirs[key], rel=LOOSER["training"]), key
    for key, value in load_file("one/model.safetensors").items():
        np.testing.assert_allclose(
            value, load_file("two/model.safetensors")[key], atol=LOOSER["training"]
        )
