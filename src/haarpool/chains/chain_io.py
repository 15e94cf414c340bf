"""Chains in `.npz` files: plain arrays, no pickle."""

from __future__ import annotations

from os import PathLike

import numpy as np
from scipy import sparse

from haarpool._files import Arrays, read_arrays, unreadable, write_arrays
from haarpool.chains.chain import Chain

FORMAT = 1  # version of the file format


def save_chain(chain: Chain, path: str | PathLike[str]) -> None:
    """Write a chain to one file; an error leaves an earlier file unchanged.

    Args:
        chain: The chain.
        path: The file to write, usually named `*.npz`.
    """
    arrays: Arrays = {
        "format": np.array(FORMAT),
        "digest": np.array(chain.digest),
        "order": np.array(chain.order),
        "measure": np.array(chain.measure),
        "sizes": np.array(chain.sizes),
        "parents": np.concatenate(chain.parents),
    }
    if (graph := chain.input_graph) is not None:
        arrays |= {"weights": graph.data, "indices": graph.indices, "indptr": graph.indptr}
    write_arrays(path, arrays)


def load_chain(path: str | PathLike[str]) -> Chain:
    """Read a chain that `save_chain` wrote, and check it as `Chain.from_parents` does.

    Args:
        path: The file.

    Returns:
        The chain, equal to the one that was saved.
    """
    arrays = read_arrays(path)
    try:
        if arrays["format"] != FORMAT:
            raise ValueError(f"format {arrays['format']}, this version reads {FORMAT}")
        sizes = arrays["sizes"]
        graph = None
        if "weights" in arrays:
            matrix = (arrays["weights"], arrays["indices"], arrays["indptr"])
            graph = sparse.csr_array(matrix, shape=(sizes[0], sizes[0]))
        chain = Chain.from_parents(
            np.split(arrays["parents"], np.cumsum(sizes[:-1])[:-1]),
            adjacency=graph,
            order=str(arrays["order"]),  # type: ignore[arg-type]  # from_parents checks it
            measure=str(arrays["measure"]),  # type: ignore[arg-type]  # and this
        )
        if str(arrays["digest"]) != chain.digest:
            raise ValueError("the content does not match its digest")
        return chain
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise unreadable(path, error) from error
