"""Benchmarks of haarpool: speed, memory, and the scores that settings are chosen by.

This package is not installed: `python -m benchmarks`, in a clone of the repository. `parts/` has
one file per part. What is no benchmark of speed is a module of its own, such as
`python -m benchmarks.presets`.
"""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
