"""The example scripts: each runs offline as it stands, is short, and shows what it claims."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

# script: (what it prints, what the first number must be compared with the second)
CLAIMS = {
    "classification": (r"test accuracy ([\d.]+) .*by chance ([\d.]+)", lambda a, b: a > b + 0.15),
    "regression": (r"test error ([\d.]+) .*guess ([\d.]+)", lambda a, b: a < 0.8 * b),
    "unet": (r"test accuracy ([\d.]+) .*alone ([\d.]+)", lambda a, b: a > b + 0.15),
    "denoising": (r"over neighbours ([\d.]+) dB[^$]*chains ([\d.]+) dB", lambda a, b: b > a + 1),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_example(name):
    script = EXAMPLES / f"{name}.py"
    assert len(script.read_text().splitlines()) < 60
    result = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", script], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    pattern, holds = CLAIMS[name]
    first, second = map(float, re.search(pattern, result.stdout).groups())
    assert holds(first, second), result.stdout
