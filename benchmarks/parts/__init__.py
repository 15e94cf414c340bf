"""One file per part of the benchmarks."""
