"""`haarpool report`: the report again, from the folder of a run alone."""

import json
import shutil
from pathlib import Path

import pytest

from helpers.commands import run_main
from helpers.runs import train

SMALL = ("--arch", "GC8-HP-GC8-HP-FC8", "--epochs", 2, "--repeats", 2, "--quiet")


@pytest.fixture
def run_folder(without_data, trained):
    return shutil.copytree(trained, Path("run"))


@pytest.mark.slow
def test_the_report_is_made_again_to_the_letter(run_folder):
    report = run_folder / "report.html"
    before = report.read_text()
    report.unlink()
    moved = run_folder.rename("moved")  # nothing but the folder is needed
    assert run_main("report", moved).out == "moved/report.html\n"
    assert (moved / "report.html").read_text() == before
    assert "wavelet" in before


@pytest.mark.parametrize("name", ["config.json", "result.json", "test.csv", "metrics.jsonl"])
def test_missing_and_damaged_files(run_folder, name):
    (run_folder / name).write_text("{]")
    assert run_main("report", run_folder, code=2).err.count("\n") == 1
    (run_folder / name).unlink()
    assert run_main("report", run_folder, code=2).err.count("\n") == 1


def test_a_flipped_bit_in_the_model_is_noticed(run_folder):
    path = run_folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)
    assert "model.safetensors" in run_main("predict", run_folder, "rings", code=2).err


@pytest.mark.slow
def test_r2_of_equal_values_is_null(without_data):
    lines = ["smiles,y", *(f"{'C' * (i % 9 + 1)},{float(i >= 18)}" for i in range(30))]
    Path("molecules.csv").write_text("\n".join(lines))
    split = {"train": list(range(20)), "validation": [0, 1], "test": list(range(20, 30))}
    split["train"] = [2, 3, 4, 18, 19]
    Path("split.json").write_text(json.dumps(split))
    task = ("--target", "y", "--task", "regression", "--split", "split.json")
    train("molecules.csv", *SMALL[:4], *task, "--out", "constant")
    text = Path("constant/result.json").read_text()
    assert "NaN" not in text
    score = json.loads(text)["scores"]["r2"]["test"]
    assert score == {"mean": None, "std": None, "each": [None]}
    assert "–" in Path("constant/report.html").read_text()
