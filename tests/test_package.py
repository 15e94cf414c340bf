"""The package as installed: lazy imports, names, typing, version."""

from importlib import metadata, resources

import pytest

import haarpool as hp
from helpers.commands import run_python


def test_import_loads_nothing_heavy():
    loaded = "import sys, haarpool; print({'numpy', 'scipy', 'torch'} & set(sys.modules))"
    assert run_python(loaded).out == "set()\n"


def test_chains_and_bases_need_neither_torch_nor_pyg():
    code = (
        "import sys, haarpool as hp;"
        "hp.haar_basis(hp.build_chain([[0, 1], [1, 0]], 1));"
        "print({'torch', 'torch_geometric', 'networkx', 'matplotlib'} & set(sys.modules))"
    )
    assert run_python(code).out == "set()\n"


@pytest.mark.slow
def test_layers_load_only_pyg():
    code = (
        "import sys, haarpool.nn;"
        "print({'networkx.drawing', 'matplotlib', 'sklearn', 'torch_scatter'} & set(sys.modules))"
    )
    assert run_python(code).out == "set()\n"


def test_every_name_is_there_and_listed():
    assert sorted(hp.__all__) == hp.__all__ == dir(hp)
    for name in hp.__all__:
        assert getattr(hp, name) is not None
    assert set(hp._HOME) | {"__version__"} == set(hp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'adjiont'"):
        hp.adjiont  # noqa: B018  # the access is the test


def test_no_name_is_also_a_module():
    """Importing a submodule would put it in the place of the name."""
    package = resources.files("haarpool")
    modules = {entry.name.removesuffix(".py") for entry in package.iterdir()}
    assert not modules & set(hp.__all__)


def test_version_and_typing_marker():
    assert hp.__version__ == metadata.version("haarpool")
    assert resources.files("haarpool").joinpath("py.typed").is_file()
