"""Recipes: all parameters of a chain in one place."""

import inspect
import pickle
from dataclasses import fields

import numpy as np
import pytest

import haarpool as hp
from haarpool.chains.recipe import PARAMETERS, Recipe, with_options
from haarpool.data import AddHaarChain
from haarpool.training.config import RunConfig

RING = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
# Every parameter with a value that is not its default.
OTHERS = {
    "num_levels": 2,
    "ratio": (0.6, 0.4),
    "top": None,
    "method": "matching",
    "seed": 3,
    "sizes": (4, 2),
    "order": "index",
    "measure": "mass",
    "symmetrize": True,
    "options": {"resolution": 2.0},
}


def test_every_parameter_is_tested_here():
    assert tuple(OTHERS) == PARAMETERS


@pytest.mark.parametrize("name", OTHERS)
def test_functions_and_transforms_take_every_parameter(name):
    given = {name: OTHERS[name]} | ({"method": "louvain"} if name == "options" else {})
    if name == "options":
        pytest.importorskip("sknetwork", reason="the extra haarpool[cluster] is not installed")
    recipe = Recipe(**given)
    assert recipe.parameters().keys() >= {name}
    assert Recipe(**recipe.parameters()) == recipe
    chain = hp.build_chain(RING, **given)
    assert hp.build_chain(RING, recipe) == chain
    assert hp.precompute([RING], recipe, cache=False)[0] == chain
    assert hp.precompute([RING], cache=False, **given)[0] == chain
    transform = AddHaarChain(**given)
    assert transform.recipe == recipe
    assert f"{name}=" in repr(transform)


def test_parameters_by_position_and_defaults():
    values = {"num_levels": 2, "ratio": 0.4, "top": None, "method": "matching", "seed": 5}
    assert Recipe(*values.values()) == Recipe(**values)
    assert hp.build_chain(RING, *values.values()) == hp.build_chain(RING, **values)
    assert Recipe().parameters() == {}


@pytest.mark.parametrize("function", [hp.build_chain, hp.precompute, AddHaarChain])
def test_signatures_are_those_of_the_recipe(function):
    parameters = inspect.signature(function).parameters
    expected = {one.name: (one.default, one.type) for one in fields(Recipe) if one.init}
    assert [name for name in parameters if name in expected] == list(expected)
    for name, (default, annotation) in expected.items():
        assert parameters[name].default == default
        if name not in ("num_levels", "ratio", "sizes"):  # a Recipe, and any iterables, are taken
            assert parameters[name].annotation == annotation
    kinds = {parameter.kind for parameter in parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def test_options_stand_beside_the_parameters_in_files():
    for data in (
        {"method": "metis", "recursive": False},
        {"method": "metis", "options": {"recursive": False}},
    ):
        assert with_options(data) == {"method": "metis", "options": {"recursive": False}}
        config = RunConfig(arch="GC8-HP-FC8", chain=data)
        assert config.recipe() == Recipe(1, method="metis", options={"recursive": False})
        assert RunConfig.from_json(config.to_json()) == config
    assert with_options({"seed": 1, "options": None}) == {"seed": 1, "options": None}
    with pytest.raises(hp.HaarPoolError, match="level=3; check the spelling"):
        RunConfig(chain={"level": 3})


def test_a_recipe_survives_pickling_and_prints_itself():
    recipe = Recipe(sizes=np.array([8, 2]), method="kmeans", options={"n_init": 3})
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    text = "Recipe(num_levels=2, method='kmeans', sizes=(8, 2), options={'n_init': 3})"
    assert repr(recipe) == text
    assert hash(recipe) == hash(Recipe(sizes=(8, 2), method="kmeans", options={"n_init": 3}))


def test_sizes_may_be_an_array():
    assert hp.build_chain(RING, sizes=np.array([3, 1])).sizes == (12, 3, 1)
    assert hp.build_chain(RING, ratio=np.array([0.5, 0.5]), top=None).sizes == (12, 6, 3)


def test_cache_keys_hold_only_what_decides_clusters(tmp_path):
    graphs = [RING, np.eye(5)]
    assert hp.precompute(graphs, 2, cache=tmp_path).computed == 2
    for name in ("order", "measure", "symmetrize"):
        again = hp.precompute(graphs, 2, cache=tmp_path, **{name: OTHERS[name]})
        assert again.cached == 2
    assert again[0] == hp.build_chain(RING, 2, symmetrize=True)
    assert hp.precompute(graphs, 2, seed=1, cache=tmp_path).computed == 2


def test_the_cache_key_of_version_0_1_0():
    """Caches of earlier versions are still read."""
    assert Recipe(3, method="metis", options={"recursive": False}).cluster_key() == {
        "num_levels": 3,
        "ratio": 0.5,
        "top": 1,
        "sizes": None,
        "seed": 0,
        "options": (("recursive", False),),
        "method": "metis",
        "version": "1",
    }


def test_arguments_by_name_and_as_a_recipe():
    assert hp.precompute(dataset=[RING], num_levels=2, cache=False)[0].num_levels == 2
    assert hp.build_chain(num_levels=2, graph=RING) == hp.build_chain(RING, 2)
    assert hp.build_chain(RING, Recipe(2)) == hp.build_chain(RING, 2)
    with pytest.raises(TypeError, match="'graph'"):
        hp.build_chain(num_levels=2)
    for more in ({"seed": 7}, {"ratio": 7}):
        with pytest.raises(hp.HaarPoolError, match="a Recipe alone"):
            hp.build_chain(RING, Recipe(3), **more)
        with pytest.raises(hp.HaarPoolError, match="a Recipe alone"):
            AddHaarChain(Recipe(2), **more)


def test_coarse_graphs_of_graphs_without_edges():
    chain = hp.build_chain(np.zeros((200, 200)), num_levels=3)
    other = hp.Chain.from_parents(chain.parents, adjacency=np.zeros((200, 200)))
    for level in range(4):
        assert chain.adjacency(level).dtype == other.adjacency(level).dtype == np.float64


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"num_levels": 0}, r"num_levels in 1\.\.1000, got 0"),
        ({"num_levels": 2, "sizes": [3]}, "sizes with 2 values, one per level, got 1"),
        ({"num_levels": 2, "ratio": [0.5]}, "ratio with 2 values, one per level, got 1"),
        ({"sizes": [1, 3]}, "sizes >= 1 that never grow"),
        ({"sizes": np.array([0.5])}, "sizes >= 1 that never grow"),
        ({"sizes": "authors"}, "sizes >= 1 that never grow"),
        ({"ratio": 1.0}, r"ratio in \(0, 1\), got 1.0"),
        ({"ratio": []}, "one per level"),
        ({"top": 2}, "top 1"),
        ({"top": True}, "top 1"),
        ({"symmetrize": "yes"}, "symmetrize True or False"),
        ({"order": "size"}, 'order "index" or "degree"'),
        ({"measure": "area"}, 'measure "children" or "mass"'),
        ({"seed": -1}, "seed in 0"),
        ({"method": "magic"}, "magic"),
        ({"options": {"level": 3}}, "level=3"),
        ({"options": ["level"]}, "options as a mapping"),
    ],
)
def test_errors(parameters, message):
    for function in (hp.build_chain, hp.precompute):
        with pytest.raises(hp.HaarPoolError, match=message):
            function([RING], **parameters)
    with pytest.raises(hp.HaarPoolError, match=message):
        AddHaarChain(**parameters)


@pytest.mark.parametrize("function", [hp.build_chain, hp.precompute])
def test_misspelt_parameters(function):
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_levls'"):
        function([RING], num_levls=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_levls'"):
        AddHaarChain(num_levls=2)
