"""Where graphs come from: datasets by name or path, features, splits.

Names are imported when they are used: the shell asks the readers for help texts, without numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs
    from haarpool.datasets.locations import (
        find_dataset,
        find_source,
        is_available,
        known_datasets,
        local_source,
    )
    from haarpool.datasets.reading import (
        as_graphs,
        columns_to_predict,
        read_graphs,
        stream_graphs,
    )

__all__ = [
    "Graphs",
    "as_graphs",
    "columns_to_predict",
    "find_dataset",
    "find_source",
    "is_available",
    "known_datasets",
    "local_source",
    "read_graphs",
    "stream_graphs",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        for module in ("reading", "locations", "graphs") if name in __all__ else ():
            names = vars(import_module(f"haarpool.datasets.{module}"))
            if name in names:
                globals()[name] = names[name]
                return names[name]
        raise AttributeError(f"module 'haarpool.datasets' has no attribute {name!r}")
