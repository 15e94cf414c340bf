"""Flags come from the settings, and error messages of the library name them in the shell."""

import argparse
from dataclasses import fields

import pytest

from haarpool import HaarPoolError
from haarpool.chains.recipe import Recipe
from haarpool.cli.flags import with_flags
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
    ("expected", "remedy", "message"),
    [
        ("epochs >= 1", "pass epochs=3", "expected --epochs >= 1, got x; pass --epochs 3"),
        ("num_levels in 1..9", "ok", "expected --levels in 1..9, got x; ok"),
        ('domain "haar" or "vertex"', "ok", 'expected --domain "haar" or "vertex", got x; ok'),
        ("batch_size=1", "ok", "expected --batch-size 1, got x; ok"),
        ("edges", "pass symmetrize=True", "expected edges, got x; pass --symmetrize"),
        ("a top", "use top=None, or less", "expected a top, got x; use --open, or less"),
        ("labels", "name them with targets=", "expected labels, got x; name them with --target"),
        ("sizes", "pass sizes=[4, 2]", "expected sizes, got x; pass --sizes 4,2"),
        ("sizes", 'pass sizes="paper"', "expected sizes, got x; pass --sizes paper"),
        ("a split", "pass split=random", "expected a split, got x; pass --split random"),
        ("x", "pass tied=(0, 1, 1)", "expected x, got x; pass --tied 0,1,1"),
        ("x", 'pass pooling={"ratio": 0.8}', "expected x, got x; pass --pooling ratio=0.8"),
        ("x", 'pass options={"xi": 0.1}', "expected x, got x; pass --option xi=0.1"),
        ("x", "pass --pooling ratio=0.8", "expected x, got x; pass --pooling ratio=0.8"),
        ("ratio of pooling= in (0, 1)", "ok", "expected ratio of --pooling in (0, 1), got x; ok"),
        # Words that are no parameters stay, and so do paths and architectures.
        ("x", "pass arch=net:seed=1,lr=2", "expected x, got x; pass --arch net:seed=1,lr=2"),
        ("x", "write net:lr=1,seed=2", "expected x, got x; write net:lr=1,seed=2"),
        ("a run at runs/lr=1,seed=3", "ok", "expected a run at runs/lr=1,seed=3, got x; ok"),
        ("a method of ours", "check the seed", "expected a method of ours, got x; check the seed"),
    ],
)  # fmt: skip
def test_messages_name_flags(expected, remedy, message):
    assert with_flags(HaarPoolError(expected, "x", remedy)) == message
