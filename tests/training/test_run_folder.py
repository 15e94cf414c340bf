"""The files of a run."""

import json

import pytest
import torch

from haarpool import HaarPoolError
from haarpool.training.run_folder import RunFolder

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


def test_files_of_version_0_1_0_have_no_digest(folder):
    from safetensors.torch import save

    (folder.path / "x.safetensors").write_bytes(save(TENSORS, {"notes": "{}"}))
    assert folder.read_tensors("x.safetensors")[0].keys() == TENSORS.keys()


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
