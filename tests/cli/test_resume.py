"""Runs that are interrupted or killed, and go on to the numbers of a run that was not."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.commands import (
    HAARPOOL,
    HANGS,
    SIGNAL_IN_CALL,
    run_in_terminal,
    run_main,
    run_until_signal,
    start_process,
    wait_until,
)
from helpers.runs import numbers, same_weights, train

pytestmark = pytest.mark.usefixtures("without_data", "blank_report")
ENDLESS = ("rings", "--arch", "GC8-HP-FC8", "--epochs", 100_000, "--patience", 100_000)


def checkpoint(number):
    """The moment before the checkpoint of an epoch: its metrics are in the log already."""
    return "os", "replace", "checkpoint.safetensors", number


def settings(arch):
    return ("rings", "--arch", arch, "--epochs", 6, "--repeats", 2, "--dropout", 0.5,
            "--schedule", "cosine", "--quiet")  # fmt: skip


def check_unfinished(folder):
    assert Path(folder, "checkpoint.safetensors").exists()
    assert not Path(folder, "model.safetensors").exists()
    run_main("predict", folder, "rings", code=2)  # not yet


def check_finished(folder, whole):
    """Finish a run; its numbers are those of the whole one."""
    assert train("--resume", folder)["folder"] == folder
    assert not Path(folder, "checkpoint.safetensors").exists()
    assert numbers(folder) == numbers(whole)
    same_weights(folder, whole)
    assert train("--resume", folder)["repeats"] == 2  # complete: nothing more to do


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_numbers():
    """Killed twice by SIGKILL, once in each repeat."""
    arguments = settings("GC8-HP-GC8-HP-FC8")
    train(*arguments, "--out", "whole")
    run_until_signal(signal.SIGKILL, checkpoint(3), "train", *arguments, "--out", "cut")
    check_unfinished("cut")
    run_until_signal(signal.SIGKILL, checkpoint(7), "train", "--resume", "cut", "--quiet")
    check_unfinished("cut")
    check_finished("cut", "whole")


@pytest.mark.parametrize(
    "arch",
    [
        "GC8-HP-GC8-HP-FC8",
        pytest.param("GIN8-TP-GIN8-SUM", marks=pytest.mark.slow),
        pytest.param("2GC8-DP-GC8-AP", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_resumes_to_the_same_numbers(arch, monkeypatch):
    """Interrupted at any moment of writing a checkpoint, twice."""
    arguments = settings(arch)
    train(*arguments, "--out", "whole")
    replace = os.replace

    def interrupt_at(number):
        def counted(source, target, **options):
            nonlocal number
            number -= str(target).endswith("checkpoint.safetensors")
            if number == 0:
                raise KeyboardInterrupt
            return replace(source, target, **options)

        monkeypatch.setattr(os, "replace", counted)

    interrupt_at(3)
    run_main("train", *arguments, "--out", "cut", code=130)
    check_unfinished("cut")
    interrupt_at(7)
    run_main("train", "--resume", "cut", "--quiet", code=130)
    check_unfinished("cut")
    monkeypatch.setattr(os, "replace", replace)
    check_finished("cut", "whole")


def test_an_ensemble_resumes_after_every_file_that_it_writes(monkeypatch):
    """Interrupted before every third file with weights, of an epoch or of a complete member."""
    arguments = ("rings", "--arch", "GC8-HP-FC8", "--epochs", 2, "--repeats", 2, "--ensemble", 2,
                 "--quiet")  # fmt: skip
    train(*arguments, "--out", "whole")
    assert not list(Path("whole").glob("member-*"))
    replace, written = os.replace, []

    def interrupted(source, target, **options):
        if str(target).endswith(".safetensors"):
            written.append(Path(target).name)
            if len(written) == 3:
                raise KeyboardInterrupt
        return replace(source, target, **options)

    monkeypatch.setattr(os, "replace", interrupted)
    code, everything = run_main("train", *arguments, "--out", "cut", code=None).code, []
    for _ in range(20):
        everything += written[:2]
        written.clear()
        if code == 130:
            code = run_main("train", "--resume", "cut", "--quiet", code=None).code
    monkeypatch.setattr(os, "replace", replace)
    assert code == 0
    assert {f"member-{r}-{m}.safetensors" for r in range(2) for m in range(2)} < set(everything)
    assert everything.count("checkpoint.safetensors") >= 12
    check_finished("cut", "whole")


@pytest.mark.slow
def test_an_ensemble_that_is_killed_in_its_second_member():
    arguments = (*settings("GC8-HP-FC8"), "--ensemble", 2)
    train(*arguments, "--out", "whole")
    run_until_signal(signal.SIGKILL, checkpoint(9), "train", *arguments, "--out", "cut")
    check_unfinished("cut")
    assert Path("cut/member-0-0.safetensors").exists()
    check_finished("cut", "whole")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_prints_how_to_resume(number):
    with start_process(
        HAARPOOL, "train", *ENDLESS, "--out", "cut", stderr=subprocess.PIPE
    ) as process:
        wait_until(Path("cut/checkpoint.safetensors").exists, process)
        process.send_signal(number)
        _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 128 + number
    assert err.endswith("haarpool train --resume cut\n")
    assert "Traceback" not in err
    check_resumable("cut")


def check_resumable(folder):
    """It goes on; meanwhile and afterwards no other run may use its folder."""
    metrics = Path(folder, "metrics.jsonl")
    before = len(metrics.read_text().splitlines())
    with start_process(HAARPOOL, "train", "--resume", folder, "--quiet") as process:
        wait_until(lambda: len(metrics.read_text().splitlines()) > before + 2, process)
        err = run_main("train", "--resume", folder, code=2).err
        assert "another process" in err
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS) == 130
    epochs = [json.loads(line)["epoch"] for line in metrics.read_text().splitlines()]
    assert epochs == list(range(1, len(epochs) + 1))
    err = run_main("train", "rings", "--out", folder, code=2).err
    assert f"--resume {folder}" in err
    config = Path(folder, "config.json")
    digest = json.loads(config.read_text())["data"]["digest"]
    config.write_text(config.read_text().replace(digest, "0"))
    err = run_main("train", "--resume", folder, code=2).err
    assert "start a new run" in err


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0])
def test_interrupted_at_any_moment(seconds):
    """Also while packages are imported, whose complaints would fill the screen."""
    with start_process(
        HAARPOOL, "train", *ENDLESS, "--out", "cut", stderr=subprocess.PIPE
    ) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANGS)
    assert process.returncode in (130, -signal.SIGINT)
    if process.returncode == 130:  # else Python itself was not up yet
        err = err.removeprefix("haarpool: loading torch ...\n")
        assert err.startswith("haarpool: interrupted")
        assert err.count("\n") == 1


@pytest.mark.slow
def test_interrupted_on_a_terminal_while_torch_is_imported():
    """The line about it disappears."""
    moment = ("haarpool.cli.loading", "import_module", "haarpool.training.train", 1)
    words = ("haarpool.cli:main", *moment, int(signal.SIGINT), "train", "rings")
    shown = run_in_terminal(sys.executable, "-c", SIGNAL_IN_CALL, *words)
    assert re.fullmatch(r"loading torch \.\.\.\r {17,}\rhaarpool: interrupted\r\n", shown)
