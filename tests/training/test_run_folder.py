"""The files of a run."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch

from haarpool import HaarClassifier, HaarPoolError
from haarpool.training.run_folder import RunFolder
from helpers.commands import HANGS, run_main, run_python, start_process
from helpers.errors import error_with

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2])}


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", {}, "[]")


def test_tensors_and_notes_come_back(folder):
    folder.write_tensors("x.safetensors", TENSORS, {"epoch": 3})
    tensors, notes = folder.read_tensors("x.safetensors")
    assert notes == {"epoch": 3}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_every_flipped_bit_is_noticed(folder):
    folder.write_tensors("x.safetensors", TENSORS, {"epoch": 3})
    path = folder.path / "x.safetensors"
    content = path.read_bytes()
    unnoticed = []
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1 << (position % 8)
        path.write_bytes(changed)
        try:
            tensors, notes = folder.read_tensors("x.safetensors")
        except HaarPoolError:
            pass
        else:  # a change without effect, as from one blank to another
            same = all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
            if tensors.keys() != TENSORS.keys() or not same or notes != {"epoch": 3}:
                unnoticed.append(position)
    assert unnoticed == []


def test_json_files_are_valid_json(folder):
    with pytest.raises(ValueError, match="JSON"):
        folder.write_json("result.json", {"r2": float("nan")})
    folder.write_json("result.json", {"r2": None})
    assert json.loads((folder.path / "result.json").read_text()) == {"r2": None}


def test_a_folder_is_locked_by_one_process(folder):
    with (
        folder.locked(),
        pytest.raises(HaarPoolError, match="locked by another process"),
        folder.locked(),
    ):
        pass
    with folder.locked():
        pass


def at_once(function, times):
    """Call a function in several threads at the same moment; return values and errors."""
    barrier = threading.Barrier(times)

    def call(i):
        barrier.wait()
        try:
            return function(i)
        except HaarPoolError as error:
            return error

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(call, range(times)))


def test_runs_that_start_at_once_take_different_numbers(tmp_path):
    for name in "abcdef":
        folders = at_once(
            lambda i, name=name: RunFolder.create(
                tmp_path / "runs" / name, {"i": i}, "[]", numbered=True
            ),
            16,
        )
        numbers = [folder.path.name for folder in folders]
        assert sorted(numbers) == sorted(f"{name}-{n}" for n in range(1, 17))
        assert [folder.config()["i"] for folder in folders] == list(range(16))


def test_processes_that_start_at_once_take_different_numbers(tmp_path):
    code = (
        "import sys\n"
        "from haarpool.training.run_folder import RunFolder\n"
        "print('ready', flush=True), sys.stdin.read()\n"
        "print(RunFolder.create('runs/MUTAG', {}, '[]', numbered=True).path)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": tmp_path}
    with ExitStack() as stack:
        command = (sys.executable, "-c", code)
        processes = [stack.enter_context(start_process(*command, **pipes)) for _ in range(3)]
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
        for process in processes:
            process.stdin.close()
        found = [process.stdout.read().strip() for process in processes]
        assert [process.wait(HANGS) for process in processes] == [0] * 3
    assert sorted(found) == ["runs/MUTAG-1", "runs/MUTAG-2", "runs/MUTAG-3"]


@pytest.mark.parametrize("exists", [True, False])
def test_one_of_several_runs_gets_a_folder(exists, tmp_path):
    for n in range(20):
        path = tmp_path / f"run{n}"
        if exists:
            path.mkdir()
        results = at_once(lambda i, path=path: RunFolder.create(path, {"i": i}, "[]"), 8)
        (winner,) = [i for i, result in enumerate(results) if isinstance(result, RunFolder)]
        assert RunFolder(path).config()["i"] == winner
        errors = [str(result) for i, result in enumerate(results) if i != winner]
        assert all("expected a new folder for the run" in error for error in errors)
        assert all("choose another folder" in error for error in errors)


def test_numbers_skip_what_exists(tmp_path):
    (tmp_path / "MUTAG-1").mkdir()
    (tmp_path / "MUTAG-2").write_text("")
    assert (
        RunFolder.create(tmp_path / "MUTAG", {}, "[]", numbered=True).path == tmp_path / "MUTAG-3"
    )


def test_a_place_without_folders(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for parent in ("file", "link"):
        with pytest.raises(HaarPoolError, match="a folder for the run"):
            RunFolder.create(tmp_path / parent / "MUTAG", {}, "[]", numbered=True)
        with pytest.raises(HaarPoolError, match="folder for the run"):
            RunFolder.create(tmp_path / parent / "run", {}, "[]")


def test_a_folder_is_opened_without_torch(folder):
    code = (
        "import sys\n"
        "from haarpool.training.run_folder import RunFolder\n"
        "RunFolder.open(sys.argv[1])\n"
        "print('torch' in sys.modules)"
    )
    assert run_python(code, folder.path).out == "False\n"


# ---------------------------------------------------------------------- metrics


def test_an_incomplete_last_line_of_metrics_is_left_out(folder):
    assert folder.read_metrics() == []
    for epoch in range(3):
        folder.append_metrics({"epoch": epoch})
    path = folder.path / "metrics.jsonl"
    complete = path.read_bytes()
    for end in (b'{"epoch": 3', b"\xff", b"{"):
        path.write_bytes(complete + end)
        assert folder.read_metrics() == [{"epoch": 0}, {"epoch": 1}, {"epoch": 2}]


def test_a_damaged_line_of_metrics_is_an_error(folder):
    for line in ('{"epoch"', "", "NaN?"):
        (folder.path / "metrics.jsonl").write_text(f'{{"epoch": 0}}\n{line}\n{{"epoch": 2}}\n')
        with error_with("an undamaged metrics.jsonl", "line 2: "):
            folder.read_metrics()


# ---------------------------------------------------------------------- folders of estimators


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """The folder of a model that an estimator saved."""
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    model = HaarClassifier(arch="GC8-HP-FC8", epochs=1, progress=False).fit("rings")
    model.save(tmp_path / "saved")
    return model, tmp_path / "saved"


def test_a_model_of_an_estimator_has_no_report_and_is_not_resumed(saved):
    _, folder = saved
    for command in (("report", folder), ("train", "--resume", folder)):
        err = run_main(*command, code=2).err
        assert "got a model that an estimator saved" in err
        assert "train with `haarpool train`" in err


def test_a_model_is_not_saved_twice_to_a_folder(saved):
    model, folder = saved
    with error_with("a new folder", "which exists; choose another folder, or remove it"):
        model.save(folder)


def test_a_prediction_makes_no_summary_of_chains(saved, monkeypatch):
    model, _ = saved
    monkeypatch.setattr("haarpool.training.preparation.ChainSummary", None)
    monkeypatch.setattr("haarpool.chains.dataset_chains.Chains.__getitem__", None)
    assert model.predict("rings").shape == (240,)
