"""Entry points: packages register readers and tasks; other rooms test their own."""

import importlib.metadata
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from haarpool import HaarPoolError, HaarPoolWarning
from haarpool._modules import import_modules, load_entry_points
from haarpool.datasets.readers import registry
from haarpool.tasks import _registry, find_task

PACKAGE = """
from haarpool.datasets.readers.registry import Reader, register as add_reader
from haarpool.tasks import register as add_task
from haarpool.tasks.regression import Regression

@add_reader
class Planets(Reader):
    names = ("planets",)

@add_task("weights")
class Weights(Regression):
    __slots__ = ()
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The groups that were asked for; a package has a reader and a task."""
    (tmp_path / "package_of_both.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_READERS", dict(registry._READERS))
    monkeypatch.setattr(_registry, "_TASKS", dict(_registry._TASKS))
    groups = []

    def found(group):
        groups.append(group)
        points = EntryPoint("good", "package_of_both", f"haarpool.{group.partition('.')[2]}")
        return EntryPoints([points])

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    load_entry_points.cache_clear()
    yield groups
    load_entry_points.cache_clear()
    sys.modules.pop("package_of_both", None)


def test_a_reader(asked):
    assert registry.find_by_name("rings")[1] == "rings"
    assert asked == []
    assert registry.find_by_name("Planets")[1] == "planets"
    assert registry.find_by_name("moons") is None
    assert asked == ["haarpool.readers"]


def test_a_task(asked):
    assert find_task("regression") == "regression"
    assert asked == []
    assert find_task("weights") == "weights"
    with pytest.raises(HaarPoolError, match='task "classification"'):
        find_task("sizes")
    assert asked == ["haarpool.tasks"]


def test_a_module_that_raises_an_error_is_left_out(tmp_path, monkeypatch):
    folder = tmp_path / "package_of_modules"
    folder.mkdir()
    for name, text in (("__init__", ""), ("_private", "1 / 0"), ("a", "1 / 0"), ("b", "")):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    reason = r"a\.py was not loaded: ZeroDivisionError: division by zero"
    with pytest.warns(HaarPoolWarning, match=reason) as caught:
        import_modules("package_of_modules")
    assert (len(caught), caught[0].filename) == (1, __file__)
    assert "package_of_modules.b" in sys.modules
    for name in [name for name in sys.modules if name.startswith("package_of_modules")]:
        del sys.modules[name]
