"""Flags come from the settings, and error messages of the library name them in the shell."""

import argparse
from dataclasses import fields

import pytest

from haarpool import HaarPoolError
from haarpool.chains.recipe import Recipe
from haarpool.cli.flags import shell_words
from haarpool.cli.parser import make_parser
from haarpool.training.config import RunConfig


def options_of(command):
    """The flags of a command by the parameter that they set."""
    (commands,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {action.dest: action.option_strings for action in commands.choices[command]._actions}


def test_every_setting_of_a_run_is_a_flag():
    options = options_of("train")
    for setting in fields(RunConfig):
        if setting.name != "chain":
            assert f"--{setting.name.replace('_', '-')}" in options[setting.name]


@pytest.mark.parametrize("command", ["train", "chain"])
def test_every_parameter_of_a_chain_is_a_flag(command):
    from_the_network = {"num_levels", "top"} if command == "train" else {"top"}  # --open
    names = {one.name for one in fields(Recipe) if one.metadata} - from_the_network
    assert names <= options_of(command).keys()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 3}, "--epochs 3"),
        ({"num_levels": ...}, "--levels"),
        ({"batch_size": 1}, "--batch-size 1"),
        ({"symmetrize": True}, "--symmetrize"),
        ({"top": None}, "--open"),
        ({"sizes": [4, 2]}, "--sizes 4,2"),
        ({"tied": (0, 1, 1)}, "--tied 0,1,1"),
        ({"pooling": {"ratio": 0.8}}, "--pooling ratio=0.8"),
        ({"targets": "COLUMN"}, "--target COLUMN"),
        ({"resume": "runs/a"}, "haarpool train --resume runs/a"),
        ({"y": ...}, "y"),  # no flag
        ({"in_channels": 3}, "in_channels=3"),
    ],
)
def test_messages_have_flags_in_the_place_of_parameters(values, message):
    (name,) = values
    error = HaarPoolError("a thing", "x", f"pass {{{name}}}", parameter="lr", **values)
    assert error.in_words(shell_words) == f"expected --lr a thing, got x; pass {message}"


def test_text_of_users_stays():
    path = "runs/lr=1,{seed}"
    error = HaarPoolError(f"a run at {path}", f"{{lr}} in {path}", "pass {lr}", lr=0.1)
    assert (
        error.in_words(shell_words)
        == f"expected a run at {path}, got {{lr}} in {path}; pass --lr 0.1"
    )
    assert str(error) == f"expected a run at {path}, got {{lr}} in {path}; pass lr=0.1"
