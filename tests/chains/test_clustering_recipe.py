"""The recipe of a clustering in CONTRIBUTING: one new file, and nothing else changes."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import haarpool as hp
from helpers.commands import run_process

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPE = re.search(r"### A clustering.*?```python\n(.*?)```", TEXT, re.S)[1]
NAME = re.search(r'@register\("(\w+)"', RECIPE)[1]


def run_python(*arguments, folder):
    """Run Python with the package in a folder."""
    return run_process(sys.executable, *arguments, env=os.environ | {"PYTHONPATH": str(folder)})


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder with a copy of the package that has the new file, and a file that is broken."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "haarpool"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(hp.__file__).parent, package, ignore=ignored)
    (package / "chains/clustering" / f"{NAME}.py").write_text(RECIPE)
    return folder


def test_a_new_clustering_is_one_file(copy):
    code = (
        "import sys, networkx as nx, haarpool as hp;"
        f"chain = hp.build_chain(nx.path_graph(9), 2, method='{NAME}', top=None);"
        f"print(hp.clusterings()['{NAME}'], chain.sizes[0]);"
        "print({'torch', 'sklearn', 'sknetwork', 'pymetis'} & set(sys.modules))"
    )
    summary = re.search(r'    """(.*)\."""', RECIPE)[1]
    assert run_python("-c", code, folder=copy).out == f"{summary} 9\nset()\n"


def test_the_shell_finds_it(copy):
    command = ("-m", "haarpool", "chain", "rings", "--no-cache", "--method", NAME)
    shown = run_python(*command, "--option", "share=0.4", folder=copy).out
    assert shown.startswith(f"rings, {NAME}: 240 graphs")
    assert f"{NAME}  " in run_python("-m", "haarpool", "methods", folder=copy).out


@pytest.mark.slow
def test_it_passes_the_tests_of_all_clusterings(copy):
    tests = (ROOT / "tests/chains/test_clustering.py", "-k", NAME, "-m", "not slow")
    out = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, folder=copy).out
    assert re.search("1[0-9] passed", out)


@pytest.mark.slow
def test_it_passes_the_linter_and_the_type_checker(copy):
    file = copy / "haarpool/chains/clustering" / f"{NAME}.py"
    settings = ("--config", ROOT / "pyproject.toml")
    for check in (("check",), ("format", "--check")):
        run_process(sys.executable, "-m", "ruff", *check, *settings, file)
    alone = shutil.copy(file, copy)
    command = (sys.executable, "-m", "mypy", "--no-error-summary", alone)
    run_process(*command, cwd=ROOT, env=os.environ | {"MYPYPATH": "src"})


def test_a_file_that_cannot_be_imported_is_a_warning(copy):
    broken = copy / "haarpool/chains/clustering/broken.py"
    broken.write_text("import no_such_package\n")
    shown = run_python("-m", "haarpool", "methods", folder=copy)
    broken.unlink()
    assert "spectral  " in shown.out
    reason = "ModuleNotFoundError: No module named 'no_such_package'"
    assert shown.err == f"haarpool: {broken} was not loaded: {reason}\n"
