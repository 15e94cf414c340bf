"""Where graphs come from: readers of datasets by name or path; torch is imported only for PyG."""

from haarpool.datasets.graphs import Graphs
from haarpool.datasets.locations import find_dataset, is_available, known_datasets, local_source
from haarpool.datasets.reading import (
    as_graphs,
    columns_to_predict,
    default_dataset,
    default_target,
    read_graphs,
    stream_graphs,
)
from haarpool.datasets.summary import summary

__all__ = [
    "Graphs",
    "as_graphs",
    "columns_to_predict",
    "default_dataset",
    "default_target",
    "find_dataset",
    "is_available",
    "known_datasets",
    "local_source",
    "read_graphs",
    "stream_graphs",
    "summary",
]
