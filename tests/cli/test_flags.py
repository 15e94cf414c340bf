"""Flags come from the settings, and error messages of the library name them in the shell."""

import argparse
import ast
import pickle
import re
from dataclasses import fields
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import haarpool as hp
from haarpool import HaarPoolError, HaarPoolWarning
from haarpool.chains.recipe import Recipe
from haarpool.cli import _show_warning
from haarpool.cli.flags import shell_words
from haarpool.cli.parser import COMMANDS, make_parser
from haarpool.data import AddHaarChain
from haarpool.training.config import RunConfig
from helpers.commands import run_main


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


def test_help_says_what_labels_of_nodes_change():
    shown = " ".join(run_main("train", "--help").out.split())
    for text in (
        "(default: haarnet; haarunet for labels of nodes)",
        "(default: spectral; matching for haarunet)",
        "(default: children; mass for haarunet)",
        "--split RULE stratified, random, nodes, scaffold,",
        "graphs or signals per training step",
    ):
        assert text in shown


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
        ({"train_run": ...}, "`haarpool train`"),
        ({"y": ...}, "y"),  # no flag
        ({"in_channels": 3}, "in_channels=3"),
        ({"chain.ratio": 0.5}, "--ratio 0.5"),
        ({"chain.top": None}, "--open"),
        ({"pooling.ratio": 0.8}, "--pooling ratio=0.8"),
        ({"pooling.ratio": ...}, "ratio of --pooling"),
        ({"options.n_init": 3}, "--option n_init=3"),
        ({"chain.options.n_init": 3}, "--option n_init=3"),
        ({"chain.options": {"n_init": 3}}, "--option n_init=3"),
    ],
)
def test_messages_have_flags_in_the_place_of_parameters(values, message):
    (name,) = values
    error = HaarPoolError("a thing", "x", f"pass {{{name}}}", parameter="lr", **values)
    assert error.in_words(shell_words) == f"expected --lr a thing, got x; pass {message}"


def test_only_the_shell_knows_words_of_the_shell():
    """Texts elsewhere mention parameters, which each front end writes in its own words."""
    package = Path(hp.__file__).parent
    word = re.compile(rf"(?<![\w-])--[a-z]|\bhaarpool ({'|'.join(COMMANDS)})\b")
    formats = {"haarpool chain 1"}  # of files
    found = []
    for path in sorted(set(package.rglob("*.py")) - set((package / "cli").rglob("*.py"))):
        tree = ast.parse(path.read_text())
        alone = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}  # docstrings
        found += [
            f"{path.relative_to(package)}:{one.lineno}"
            for one in ast.walk(tree)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
            if id(one) not in alone and one.value not in formats and word.search(one.value)
        ]
    assert found == []


def test_text_of_users_stays():
    path = "runs/lr=1,{seed}"
    error = HaarPoolError(f"a run at {path}", f"{{lr}} in {path}", "pass {lr}", lr=0.1)
    assert (
        error.in_words(shell_words)
        == f"expected a run at {path}, got {{lr}} in {path}; pass --lr 0.1"
    )
    assert str(error) == f"expected a run at {path}, got {{lr}} in {path}; pass lr=0.1"


def test_warnings_have_flags_too(capsys):
    warning = HaarPoolWarning(
        "{patience} has no effect with {monitor}", patience=..., monitor="last"
    )
    assert str(warning) == 'patience has no effect with monitor="last"'
    assert warning.in_words(shell_words) == "--patience has no effect with --monitor last"
    assert str(pickle.loads(pickle.dumps(warning))) == str(warning)
    assert str(HaarPoolWarning("a {text} of others")) == "a {text} of others"
    _show_warning(warning)
    assert capsys.readouterr().err == f"haarpool: {warning.in_words(shell_words)}\n"


# A bad value of each parameter of a chain, and how the message begins in Python and in the shell.
BAD = {
    "num_levels": (0, "num_levels in 1", "--levels in 1"),
    "ratio": (3, "ratio in (0, 1)", "--ratio in (0, 1)"),
    "top": (2, "top 1", "--top 1"),
    "method": ("magic", 'method "', '--method "'),
    "seed": (-1, "seed in 0", "--seed in 0"),
    "sizes": ([1, 3], "sizes >= 1", "--sizes >= 1"),
    "order": ("size", 'order "index"', '--order "index"'),
    "measure": ("area", 'measure "children"', '--measure "children"'),
    "symmetrize": ("yes", "symmetrize True", "--symmetrize True"),
    "options": (3, "options as a mapping", "--option as a mapping"),
}
OPTIONS = {  # of one method
    "unknown": ("spectral", {"eps": 1}, "options for method", "--option for method"),
    "misspelt": ("kmeans", {"n_inti": 3}, "options for method", "--option for method"),
    "number": ("kmeans", {"n_init": 0}, "n_init of options >= 1", "n_init of --option >= 1"),
}
MORE = {
    "dataset": (3, "dataset as a list"),
    "features": (3, "features as an array"),
    "n_jobs": (0, "n_jobs >= 1"),
    "cache": (3, "cache as True"),
    "progress": ("yes", "progress as True"),
}


def assert_words(make, name, python, shell):
    with pytest.raises(HaarPoolError) as caught:
        make()
    error = caught.value
    assert error.parameter == name
    assert str(error).startswith(f"expected {python}")
    assert error.in_words(shell_words).startswith(f"expected {shell}")
    assert not re.search(r"\{[\w.]+\}", str(error))
    return error


def test_every_parameter_of_a_chain_is_here():
    assert BAD.keys() == {one.name for one in fields(Recipe) if one.init}
    others = {one.name for one in fields(Recipe)}
    parameters = {name for name in signature(hp.precompute).parameters if name not in others}
    assert MORE.keys() == parameters


@pytest.mark.parametrize("name", BAD)
def test_errors_of_parameters_of_a_chain_name_them(name):
    value, python, shell = BAD[name]
    for make in (
        lambda: Recipe(**{name: value}),
        lambda: hp.build_chain(np.eye(3), **{name: value}),
        lambda: hp.precompute([np.eye(3)], **{name: value}),
        lambda: AddHaarChain(**{name: value}),
    ):
        assert_words(make, name, python, shell)
    if name not in ("num_levels", "top"):  # which the architecture decides
        nested = python.replace(name, f"{name} of chain", 1)
        chain = {name: value}
        error = assert_words(lambda: RunConfig(chain=chain), f"chain.{name}", nested, shell)
        assert name not in error.values  # all of them are inside of the setting


@pytest.mark.parametrize("name", OPTIONS)
def test_errors_of_options_of_a_method_name_them(name):
    method, options, python, shell = OPTIONS[name]
    parameter = "options" if name != "number" else f"options.{next(iter(options))}"
    assert_words(lambda: Recipe(method=method, options=options), parameter, python, shell)
    chain = {"method": method, **options}
    nested = python.replace("options", "options of chain", 1)
    assert_words(lambda: RunConfig(chain=chain), f"chain.{parameter}", nested, shell)


@pytest.mark.parametrize("name", MORE)
def test_errors_of_the_other_parameters_of_precompute(name):
    value, python = MORE[name]
    given = {"dataset": [np.eye(3)], "cache": False} | {name: value}
    with pytest.raises(HaarPoolError) as caught:
        hp.precompute(**given)
    assert caught.value.parameter == name
    assert str(caught.value).startswith(f"expected {python}")


def test_a_setting_of_a_chain_is_shown_as_it_is_passed():
    with pytest.raises(HaarPoolError, match=r'got 3; pass for example chain={"ratio": 0.5}'):
        hp.HaarClassifier(chain={"ratio": 3}).fit("rings")
    with pytest.raises(HaarPoolError) as caught:
        RunConfig(chain={"ratio": 3})
    assert caught.value.in_words(shell_words).endswith("got 3; pass for example --ratio 0.5")


@pytest.mark.parametrize("name", ["chain", "features"])
def test_errors_of_the_other_parameters_of_the_transform(name):
    for value in ("x", 3) if name == "chain" else (3,):
        with pytest.raises(HaarPoolError, match=f"expected {name} as ") as caught:
            AddHaarChain(**{name: value})
        assert caught.value.parameter == name
