"""Runs that need a task, a layer or a clustering that is not registered."""

import json
import shutil

import pytest

import haarpool as hp
from helpers.commands import run_main
from helpers.errors import error_with

pytestmark = pytest.mark.usefixtures("without_data")


@pytest.fixture
def changed(trained, tmp_path):
    """A run whose settings a test changes."""
    folder = shutil.copytree(trained, tmp_path / "run")

    def change(section, name, value):
        config = json.loads((folder / "config.json").read_text())
        for one in section:
            config[one][name] = value
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return change


MISSING = {
    "task": ((["data"], "task", "ranking"), "the task 'ranking'"),
    "token": ((["model", "training"], "arch", "GC8-ZZ-FC8"), "all layers of GC8-»ZZ«-FC8"),
    "clustering": ((["chain"], "method", "stripes"), "the clustering 'stripes'"),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_a_run_needs_must_be_registered(name, changed):
    change, expected = MISSING[name]
    folder = changed(*change)
    parts = (f"expected {expected}, which the run in", "not registered", "install the package")
    with error_with(*parts):
        hp.load(folder)
    messages = [run_main("predict", folder, "rings", code=2).err]
    if name == "clustering":  # the report does not compute any
        run_main("report", folder)
    else:
        messages.append(run_main("report", folder, code=2).err)
    (folder / "result.json").unlink()
    messages.append(run_main("train", "--resume", folder, code=2).err)
    for message in messages:
        assert all(part in message for part in parts)
        assert "undamaged" not in message
