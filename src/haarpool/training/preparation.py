"""From graphs to minibatches: features, chains and their tensors on the device of the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from haarpool._progress import ProgressOption
from haarpool._types import Ints
from haarpool.chains.chain import Chain
from haarpool.chains.dataset_chains import precompute
from haarpool.chains.recipe import with_options
from haarpool.chains.tree_order import inverse
from haarpool.data import AddHaarChain
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.pyg import graph_tensors
from haarpool.errors import HaarPoolError
from haarpool.haar.joining import JoinedTensors
from haarpool.nn import Network
from haarpool.training.minibatches import Minibatches
from haarpool.training.signal_batches import SignalBatches, Signals
from haarpool.training.tree_order import in_tree_order, is_allowed, renumber

LARGE_BATCH = 2**19  # entries of the widest signal of a batch from which several threads are faster


class ChainSummary(NamedTuple):
    """What a run records about the chains of its dataset.

    Attributes:
        digest: Hash of all chains.
        example_graph: Number of the graph whose chain the report shows, of median size.
        example: Its chain.
    """

    digest: str
    example_graph: int
    example: Chain


def prepare_minibatches(
    graphs: Graphs,
    encoding: Encoding,
    network: Network,
    chain: Mapping[str, Any],
    device: torch.device,
    *,
    cache: bool = True,
    summarize: bool = True,
    progress: ProgressOption = None,
) -> tuple[Minibatches, ChainSummary | None]:
    """Compute everything that a network reads of graphs.

    Args:
        graphs: The graphs.
        encoding: How node features are made.
        network: The network, which decides on the levels of the chains.
        chain: Parameters of `Recipe` besides the levels.
        device: Device of the minibatches.
        cache: Read chains from the cache and write new ones to it.
        summarize: Make the summary of the chains, which a run records.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with lines of text.

    Returns:
        The minibatches, and the summary of the chains (None without one, or without chains).
    """
    tensors = graph_tensors(graphs.structure, encoding)  # of signals, the first one
    signals = _signals(graphs, encoding) if graphs.signals else None
    if signals is not None:
        tensors.pop("y", None)
    joined = JoinedTensors(
        {key: values for key, (values, _) in tensors.items()},
        {key: np.diff(starts) for key, (_, starts) in tensors.items()},
    )

    def batches(parts: Iterable[JoinedTensors]) -> Minibatches:
        if signals is None:
            return Minibatches(parts, device)
        return SignalBatches(parts, signals, device)

    parameters = with_options(chain)
    levels = network.arch.levels_of(graphs.largest_component, parameters)
    if levels is not None:
        parameters["num_levels"] = levels
    transform = network.transform(**parameters)
    if transform is None:
        return batches([joined]), None
    assert isinstance(transform, AddHaarChain)
    assert transform.recipe is not None
    features = None
    if transform.recipe.clustering.takes_features:
        features = np.split(joined.tensors["x"].numpy(), graphs.structure.start[1:-1])
    try:
        chains = precompute(
            graphs.batch, transform.recipe, features=features, cache=cache, progress=progress
        )
    except HaarPoolError as error:
        raise error.inside("chain") from error
    state, renumbers = sha256(), is_allowed(network, int(graphs.sizes.max()))

    def parts() -> Iterator[JoinedTensors]:
        orders = list[Ints]()
        first = first_node = 0
        for forest in chains.forests():
            for parent in forest.parents if summarize else ():
                state.update(parent.tobytes())
            last = first + forest.sizes[-1]  # graphs of this block
            edges = _edges_of(graphs, joined, first, last) if transform.edge_attr else None
            if renumbers:
                forest, order = in_tree_order(forest)
                orders.append(first_node + order)
                edges = None if edges is None else (inverse(order)[edges[0]], edges[1])
            yield transform.join(forest, *(edges or ()))
            first, first_node = last, first_node + forest.sizes[0]
        if orders:
            yield renumber(joined, np.concatenate(orders), of_nodes=network.task.of_nodes)
        else:
            yield joined

    prepared = batches(parts())
    if not summarize:
        return prepared, None
    sizes = graphs.structure.sizes
    example = int(np.argsort(sizes, kind="stable")[len(sizes) // 2])
    return prepared, ChainSummary(state.hexdigest(), example, chains[example])


def _signals(graphs: Graphs, encoding: Encoding) -> Signals:
    """Return what differs from signal to signal: features that are not made from the graph."""
    varies = [np.full(part.width, part.kind in graphs.columns) for part in encoding.nodes]
    parts = tuple(part for part in encoding.nodes if part.kind in graphs.columns)
    x = torch.from_numpy(replace(encoding, nodes=parts).encode(graphs))
    y = None
    if graphs.task is not None and graphs.targets is not None:
        y = torch.from_numpy(graphs.targets.astype(graphs.task.dtype))
        y = y.view(len(graphs), -1, *y.shape[1:])
    columns = torch.from_numpy(np.flatnonzero(np.concatenate(varies)))
    return Signals(x.view(len(graphs), int(graphs.sizes[0]), x.shape[1]), columns, y)


def _edges_of(
    graphs: Graphs, joined: JoinedTensors, first: int, last: int
) -> tuple[Ints, NDArray[Any] | None]:
    """Return the edges of some consecutive graphs, with nodes numbered from 0, and features."""
    part = slice(*graphs.edge_start[[first, last]])
    features = joined.tensors.get("edge_attr")
    edges = graphs.edges[:, part] - graphs.start[first]
    return edges, None if features is None else features[part].numpy()


def choose_threads(network: Network, graphs: Graphs, batch_size: int, threads: int = 0) -> int:
    """Return the number of CPU threads for a network, unless `threads` names one.

    The choice depends on nothing that can change between runs, since sums over several threads
    differ in their last digits.
    """
    entries = batch_size * graphs.sizes.mean() * network.arch.max_width
    return threads or (torch.get_num_threads() if entries >= LARGE_BATCH else 1)
