"""Where graphs come from: datasets by name or path, features, splits.

Names are imported when they are used: the shell asks the readers for help texts, without numpy.
"""

from typing import TYPE_CHECKING

from haarpool._lazy import lazy_names

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs as Graphs
    from haarpool.datasets.locations import find_dataset as find_dataset
    from haarpool.datasets.locations import find_source as find_source
    from haarpool.datasets.locations import is_available as is_available
    from haarpool.datasets.locations import known_datasets as known_datasets
    from haarpool.datasets.locations import local_source as local_source
    from haarpool.datasets.reading import as_graphs as as_graphs
    from haarpool.datasets.reading import columns_to_predict as columns_to_predict
    from haarpool.datasets.reading import read_graphs as read_graphs
    from haarpool.datasets.reading import stream_graphs as stream_graphs
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "graphs": ["Graphs"],
            "locations": [
                "find_dataset",
                "find_source",
                "is_available",
                "known_datasets",
                "local_source",
            ],
            "reading": ["as_graphs", "columns_to_predict", "read_graphs", "stream_graphs"],
        },
    )
