"""Benchmarks of speed and memory: `haarpool bench`. One file per part; `runner.py` runs them."""
