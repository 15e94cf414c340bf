"""The settings of a run: each wrong value is an error that names its parameter."""

from dataclasses import fields

import numpy as np
import pytest

from haarpool import HaarClassifier, HaarPoolError
from haarpool.cli.flags import flag_of, shell_words
from haarpool.datasets import read_graphs
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, find_device
from haarpool.training.run import start_run
from helpers.commands import run_main
from helpers.errors import error_with

WRONG = {
    "arch": "GC64-XX9",
    "features": 3,
    "domain": "time",
    "dropout": 1.5,
    "width": 0,
    "tied": "mine",
    "pooling": 0.5,
    "chain": 3,
    "epochs": 0,
    "lr": -1,
    "weight_decay": -1,
    "batch_size": -1,
    "patience": 0,
    "monitor": "accuracy",
    "schedule": "linear",
    "optimizer": "sgd",
    "label_smoothing": 1,
    "class_weights": "yes",
    "seed": -1,
    "repeats": 0,
    "ensemble": 0,
    "split": 0.5,
    "precision": "float16",
    "compile": "yes",
    "threads": -1,
}


def test_all_settings_are_here():
    assert list(WRONG) == [one.name for one in fields(RunConfig)]


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_their_parameter_in_both_words(name):
    with error_with(f"expected {name} ") as caught:
        RunConfig(**{name: WRONG[name]})
    assert caught.value.parameter == name
    if name != "chain":  # its parameters have flags
        shown = caught.value.in_words(shell_words)
        assert shown.startswith(f"expected {flag_of(name)} ")


def test_ends_of_limits_that_are_defaults():
    assert RunConfig(label_smoothing=0, threads=np.int64(0)) == RunConfig()
    assert type(RunConfig(label_smoothing=0).label_smoothing) is float


@pytest.mark.parametrize("value", ["mine", (0, "1"), (0.5, 1), 3])
def test_tied_is_checked(value):
    with error_with('expected tied "authors", or a number', "pass for example tied=(0, 1, 1)"):
        RunConfig(tied=value)


def test_a_wrong_option_of_a_pooling_names_the_setting():
    with error_with("expected pooling options of GC8-HP-FC8, which has none"):
        RunConfig(arch="GC8-HP-FC8", pooling={"ratio": 0.5})


def test_features_of_a_dataset_and_devices():
    config, graphs = RunConfig(features="colours"), read_graphs("rings")
    with error_with("expected features of rings out of labels, ", "'colours'"):
        start_run(graphs, config, ProcessGroup(), progress=False)
    with error_with("expected device of this machine, got 'gpu9'"):
        find_device("gpu9")


@pytest.mark.parametrize(
    ("flag", "value"), [("arch", "XX9"), ("features", "foo"), ("device", "foo"), ("tied", "a")]
)
def test_messages_of_the_shell_start_with_the_flag(flag, value, without_data):
    err = run_main("train", "rings", f"--{flag}", value, "--quiet", code=2).err
    assert f"expected --{flag} " in err


@pytest.mark.parametrize("name", ["compile", "class_weights"])
def test_estimators_check_booleans(name):
    with pytest.raises(HaarPoolError, match=f"expected {name} True, False, 0 or 1, got 'yes'"):
        HaarClassifier(**{name: "yes"}).fit("rings", np.arange(240) % 2)
