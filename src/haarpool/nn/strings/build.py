"""`build_model`: from an architecture to a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import torch

from haarpool._types import Domain
from haarpool._validate import whole_number
from haarpool.nn.networks.network import Network, check_num_weights, num_weights
from haarpool.nn.networks.sequential import Ties
from haarpool.nn.strings.architecture import (
    DEFAULT_WIDTH,
    AnyArchitecture,
    parse_architecture,
)


class LayerOptions(TypedDict, total=False):
    """Options of the layers of the package, so that type checkers and editors know them."""

    cluster_ratio: float
    distance: bool
    hops: int | None
    num_clusters: int
    num_iterations: int
    num_modes: int
    ratio: float
    relaxed: bool
    sorted_nodes: int


def build_model(
    arch: AnyArchitecture | str,
    in_channels: int,
    out_channels: int,
    *,
    edge_channels: int = 0,
    task: str = "classification",
    domain: Domain | None = None,
    tied: Ties = None,
    dropout: float = 0.5,
    width: int = DEFAULT_WIDTH,
    standardize: Sequence[int] = (),
    standardize_edges: Sequence[int] = (),
    **options: Unpack[LayerOptions],
) -> Network:
    """Build the network of an architecture.

    A ReLU follows each convolution and each linear layer except the last; a convolution may have
    another activation. All convolutions use edge weights, those of `data.edge_weight` and those of
    coarse graphs. `FCn` is a linear layer of input width n: `FC60-FC180` is Linear(60, 180),
    Linear(180, out_channels). If the width before the first FC differs from n, a linear layer to n
    is added.

    Args:
        arch: An architecture or its string; `haarnet` is a `HaarNet`, `haarsum` a `HaarSumNet`.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        edge_channels: Number of columns of `data.edge_attr`, which only these two read.
        task: Name of a task, as in `haarpool.tasks.task_names()`; it selects `Network.loss`.
        domain: Domain of all HP, see `HaarPooling`; `None` is "vertex" for these two, and "haar",
            as in the paper, for other architectures.
        tied: Which convolutions share weights: for each convolution a number, for example
            (0, 1, 1), where equal numbers share; `"authors"` as in the authors' code; `None` for
            no sharing.
        dropout: Dropout probability in [0, 1) after the first linear layer, or before it if there
            is only one; a `HaarSumNet` has none.
        width: Width of convolutions and linear layers without a number.
        standardize: Columns of `data.x` that are standardised; `Network.fit_inputs` computes their
            mean and standard deviation.
        standardize_edges: The same for `data.edge_attr`.
        **options: Options of the layers of the architecture by name: each layer gets those that
            its class takes. After each layer with an option num_clusters, the next one has
            `cluster_ratio` times as many, 0.5 by default; 0.25 in the paper of DiffPool. Type
            checkers take those of your own layers in a dict, `**options`.

    Example:
        >>> model = build_model("2GC16-HP-GC16-HP-FC16", in_channels=3, out_channels=2)
        >>> model.chain_parameters
        {'num_levels': 2, 'top': 1}
        >>> model.transform(seed=1)
        AddHaarChain(num_levels=2, seed=1)
        >>> build_model("GC16-DP-SUM", 3, 2, num_clusters=8).stages[1].pool
        DiffPool(16, num_clusters=8)
    """
    if not isinstance(arch, AnyArchitecture):
        arch = parse_architecture(arch)
    arch = arch.with_width(whole_number("width", width))
    arch.check_options(options)
    settings: dict[str, Any] = {
        "edge_channels": edge_channels,
        "task": task,
        "domain": domain,
        "tied": tied,
        "dropout": dropout,
        "standardize": standardize,
        "standardize_edges": standardize_edges,
        "options": options,
    }
    with torch.device("meta"):  # no memory, no random numbers
        check_num_weights(arch, num_weights(arch.build(in_channels, out_channels, **settings)))
    network: Network = arch.build(in_channels, out_channels, **settings)
    return network
