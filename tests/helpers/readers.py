"""What every reader must stand: all that is done with the graphs of a source."""

import csv

import numpy as np

from haarpool import HaarClassifier, HaarRegressor
from haarpool.datasets import as_graphs, stream_graphs
from haarpool.datasets.encoding import Encoding
from helpers.commands import run_main


def check_source(source, folder):
    """Read, take, stream, train and predict; return the graphs.

    Args:
        source: a path, a name, or a list of objects, with labels.
        folder: an empty folder.
    """
    graphs = as_graphs(source)
    order = np.random.default_rng(0).permutation(len(graphs))
    assert graphs.take(order).take(np.argsort(order)).digest() == graphs.digest()
    structure = graphs.structure
    owners = np.repeat(np.arange(len(structure)), np.diff(structure.edge_start))
    assert (structure.owner[structure.edges] == owners).all()
    encoding = Encoding.fit(graphs)
    features = encoding.encode(graphs)
    of_nodes = graphs.has_node_labels
    arch = "haarunet:width=8,levels=1" if of_nodes else "GC8-HP-FC8"
    assert features.shape[1] > 0
    if isinstance(source, list):
        estimator = HaarClassifier if graphs.task.reads_classes else HaarRegressor
        predicted = estimator(arch=arch, epochs=1, progress=False).fit(source).predict(source)
        assert len(predicted) == len(graphs)
        return graphs
    blocks = list(stream_graphs(source, block=5))
    np.testing.assert_array_equal(np.concatenate([encoding.encode(b) for b in blocks]), features)
    first = np.cumsum([0, *(len(block) for block in blocks)])
    for begin, block in zip(first, blocks, strict=False):
        part = graphs.take(np.arange(begin, begin + len(block)))
        np.testing.assert_array_equal(block.edges, part.edges)
    small = ("--arch", arch, "--epochs", 1, "--quiet")
    run_main("train", source, *small, "--out", folder / "run")
    run_main("predict", folder / "run", source, "--out", folder / "new.csv")
    with open(folder / "new.csv", newline="") as file:
        header, *rows = csv.reader(file)
    number = int(graphs.start[-1]) if of_nodes else len(graphs)
    assert [len(row) for row in rows] == [len(header)] * number
    return graphs
