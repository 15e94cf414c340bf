"""The package as installed: lazy imports, names, typing, version."""

import ast
from importlib import metadata, resources
from pathlib import Path

import pytest

import haarpool as hp
from haarpool import nn
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


def test_settings_are_checked_without_torch():
    code = (
        "import sys;"
        "from haarpool.training.config import RunConfig;"
        "RunConfig(arch='3GC8-HP-FC8', chain={'method': 'matching', 'ratio': 0.4});"
        "print('torch' in sys.modules)"
    )
    assert run_python(code).out == "False\n"


@pytest.mark.slow
def test_layers_load_only_pyg():
    code = (
        "import sys; from haarpool.nn import *;"
        "print({'networkx.drawing', 'matplotlib', 'sklearn', 'torch_scatter'} & set(sys.modules))"
    )
    assert run_python(code).out == "set()\n"


def imports_for_type_checkers(module):
    """The names under `if TYPE_CHECKING`."""
    source = ast.parse(Path(module.__file__).read_text())
    first, _ = (statement for statement in source.body if isinstance(statement, ast.If))
    return [alias.asname for statement in first.body for alias in statement.names]


@pytest.mark.parametrize(("module", "own"), [(hp, ["__version__"]), (nn, [])])
def test_every_name_is_there_and_listed(module, own):
    assert sorted(module.__all__) == module.__all__ == dir(module)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert {*imports_for_type_checkers(module), *own} == set(module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'adjiont'"):
        module.adjiont  # noqa: B018  # the access is the test


@pytest.mark.parametrize("module", [hp, nn])
def test_no_name_is_also_a_module(module):
    """Importing a submodule would put it in the place of the name."""
    package = resources.files(module)
    modules = {entry.name.removesuffix(".py") for entry in package.iterdir()}
    assert not modules & set(module.__all__)


def test_version_and_typing_marker():
    assert hp.__version__ == metadata.version("haarpool")
    assert resources.files("haarpool").joinpath("py.typed").is_file()
