"""Trials of small networks on generated graphs."""

from haarpool.comparison.table import Trial
from haarpool.comparison.trials import TrialRunner, splits_of
from haarpool.datasets import read_graphs

SMALL = {"arch": "GC8-HP-FC8", "epochs": 2, "batch_size": 32, "threads": 1, "monitor": "loss"}


def train(cell, seed=0, load=read_graphs):
    """Train a trial; return its line."""
    return TrialRunner(load, "cpu")(Trial(cell, seed))


def split_of(cell, seed, graphs):
    """The split of a trial."""
    return splits_of(Trial(cell, seed), graphs)[seed]
