"""The example scripts: each runs offline, is short, and shows what it claims."""

import re
import runpy
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parent.parent / "examples"

# script: (what it prints, what the first number must be compared with the second)
CLAIMS = {
    "classification": (r"test accuracy ([\d.]+) .*by chance ([\d.]+)", lambda a, b: a > b + 0.15),
    "regression": (r"test error ([\d.]+) .*guess ([\d.]+)", lambda a, b: a < 0.8 * b),
    "unet": (r"test accuracy ([\d.]+) .*alone ([\d.]+)", lambda a, b: a > b + 0.15),
    "own_pooling": (r"test accuracy ([\d.]+) .*by chance ([\d.]+)", lambda a, b: a > b + 0.15),
    "digits": (r"test accuracy ([\d.]+) ± ([\d.]+) %", lambda a, b: abs(a - 96.8) < 0.5 and b < 2),
    "denoising": (r"over neighbours ([\d.]+) dB[^$]*chains ([\d.]+) dB", lambda a, b: b > a + 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_example(name, capsys):
    script = EXAMPLES / f"{name}.py"
    assert len(script.read_text().splitlines()) < 60
    with torch.random.fork_rng():
        runpy.run_path(str(script), run_name="__main__")
    out = capsys.readouterr().out
    pattern, holds = CLAIMS[name]
    first, second = map(float, re.search(pattern, out).groups())
    assert holds(first, second), out
