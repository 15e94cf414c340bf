"""`flatten_signals`: S signals on one graph as S copies of the graph."""

from __future__ import annotations

import torch
from torch import Tensor

from haarpool.nn.inputs import Tensors, num_graphs
from haarpool.nn.layers.neighbours import BY_SOURCE, STARTS


def flatten_signals(data: Tensors) -> Tensors:
    """Return S copies of the graphs, each with one of the signals x (S, N, d).

    Networks whose levels depend on the signal need it. Data with x (N, d) returns as it is. The
    copies have no chains.

    Args:
        data: Tensors of one graph, or of a minibatch.

    Example:
        >>> pair = {"x": torch.zeros(2, 2, 1), "edge_index": torch.tensor([[0, 1], [1, 0]])}
        >>> flatten_signals(pair)["edge_index"]
        tensor([[0, 1, 2, 3],
                [1, 0, 3, 2]])
    """
    if data["x"].ndim == 2:
        return data
    signals, nodes = data["x"].shape[:2]
    edges, graphs = data["edge_index"].shape[1], num_graphs(data)

    def shifted(index: Tensor, step: int) -> Tensor:
        """Return the copies of an index (..., n): the s-th one has s * step added."""
        first = step * torch.arange(signals, device=index.device, dtype=index.dtype)
        return (index[..., None, :] + first[:, None]).flatten(-2)

    batch = data["batch"] if "batch" in data else data["edge_index"].new_zeros(nodes)
    copies = {
        "x": data["x"].flatten(0, 1),
        "edge_index": shifted(data["edge_index"], nodes),
        "batch": shifted(batch, graphs),
    }
    if "ptr" in data:
        end = data["ptr"].new_full((1,), signals * nodes)
        copies["ptr"] = torch.cat([shifted(data["ptr"][:-1], nodes), end])
    for key in ("edge_weight", "edge_attr"):
        if key in data:
            copies[key] = data[key].repeat(signals, *[1] * (data[key].ndim - 1))
    for key in (STARTS, BY_SOURCE):
        if key in data:
            copies[key] = shifted(data[key], edges)
    return copies
