"""`build_model`: from an architecture to a `Network`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, Literal

from torch.nn import Linear, Module, ModuleList

from haarpool._types import Domain
from haarpool._validate import choice, real_number, whole_number
from haarpool.errors import HaarPoolError
from haarpool.nn.architecture import (
    CONVOLUTIONS,
    DEFAULT_WIDTH,
    JOINS,
    LINEAR,
    POOLINGS,
    READOUTS,
    Architecture,
)
from haarpool.nn.haar_architecture import (
    AnyArchitecture,
    HaarNetArchitecture,
    HaarSumArchitecture,
    choose_domain,
    parse_architecture,
)
from haarpool.nn.haar_net import HaarNet
from haarpool.nn.haar_sum_net import HaarSumNet
from haarpool.nn.network import Network
from haarpool.nn.sequential import SequentialNetwork
from haarpool.nn.stages import (
    Convolution,
    JumpingKnowledge,
    PoolingOptions,
    Readout,
    make_pooling,
    make_readout,
)

Ties = Literal["authors"] | Sequence[int] | None

# Convolutions with the same number share weights in the authors' code.
AUTHORS: dict[str, tuple[int, ...]] = {
    "GC60-HP-FC60-FC180-FC60": (0,),
    "2GC256-HP-FC256-FC1024-FC2048": (0, 1),
    "3GC256-HP-2FC256-FC128": (0, 1, 1),
    "2GC128-HP-2GC128-HP-2GC128-HP-GC128-2FC128-FC64": (0, 1, 1, 1, 2, 2, 3),
}


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
    ratio: float = 0.5,
    num_clusters: int = 16,
    cluster_ratio: float = 0.5,
    num_modes: int = 2,
    sorted_nodes: int = 30,
    relaxed: bool = False,
    standardize: Sequence[int] = (),
    standardize_edges: Sequence[int] = (),
) -> Network:
    """Build the network of an architecture.

    A ReLU follows each convolution and each linear layer except the last; a tanh follows DGC. All
    convolutions use edge weights, those of `data.edge_weight` and those of coarse graphs. `FCn` is
    a linear layer of input width n: `FC60-FC180` is Linear(60, 180), Linear(180, out_channels). If
    the width before the first FC differs from n, a linear layer to n is added.

    Args:
        arch: An architecture or its string; `haarnet` is a `HaarNet`, `haarsum` a `HaarSumNet`,
            which have none of the parameters below `width`.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        edge_channels: Number of columns of `data.edge_attr`, which only these two read.
        task: `"classification"`, `"multilabel"` (several targets with two classes each) or
            `"regression"`; it selects `Network.loss`.
        domain: Domain of all HP, see `HaarPooling`; `None` is "vertex" for these two, and "haar",
            as in the paper, for other architectures.
        tied: Which convolutions share weights: for each convolution a number, for example
            (0, 1, 1), where equal numbers share; `"authors"` as in the authors' code; `None` for
            no sharing.
        dropout: Dropout probability in [0, 1) after the first linear layer, or before it if there
            is only one; a `HaarSumNet` has none.
        width: Width of convolutions and linear layers without a number.
        ratio: Share of nodes in (0, 1) that SP, GP and TP keep.
        num_clusters: Clusters of the first DP or STRUCT.
        cluster_ratio: Share of the clusters in (0, 1) that the next DP or STRUCT has, and so on;
            0.25 in the paper of DiffPool.
        num_modes: Eigenvectors per cluster of EIG.
        sorted_nodes: Nodes of each graph that SORT and DGCNN keep; smaller graphs are padded with
            zeros.
        relaxed: Rule of LAP for centroids, see `LaPool`.
        standardize: Columns of `data.x` that are standardised; `Network.fit_inputs` computes their
            mean and standard deviation.
        standardize_edges: The same for `data.edge_attr`.

    Example:
        >>> model = build_model("2GC16-HP-GC16-HP-FC16", in_channels=3, out_channels=2)
        >>> model.chain_parameters
        {'num_levels': 2, 'top': 1}
        >>> model.transform(seed=1)
        AddHaarChain(num_levels=2, seed=1)
    """
    if not isinstance(arch, AnyArchitecture):
        arch = parse_architecture(arch)
    domain = choose_domain(arch, domain)
    if isinstance(arch, HaarNetArchitecture):
        if tied is not None:
            raise HaarPoolError(f"tied=None for {arch.name}", f"{tied!r}", "leave tied out")
        shared: dict[str, Any] = asdict(arch) | {
            "width": arch.width or width, "domain": domain, "task": task,
            "standardize": standardize, "standardize_edges": standardize_edges,
            "edge_channels": edge_channels,
        }  # fmt: skip
        if isinstance(arch, HaarSumArchitecture):
            return HaarSumNet(in_channels, out_channels, **shared)
        return HaarNet(in_channels, out_channels, dropout=dropout, **shared)

    def share(name: str, value: float) -> float:
        return real_number(name, value, 0, 1, includes_minimum=False, remedy=f"pass {name}=0.5")

    options = PoolingOptions(
        domain=domain,
        ratio=share("ratio", ratio),
        num_clusters=whole_number("num_clusters", num_clusters),
        cluster_ratio=share("cluster_ratio", cluster_ratio),
        num_modes=whole_number("num_modes", num_modes),
        relaxed=choice("relaxed", relaxed, (True, False)),
    )
    in_channels = whole_number("in_channels", in_channels, remedy="pass data.num_features")
    out_channels = whole_number("out_channels", out_channels, remedy="count the classes")
    width, sorted_nodes = whole_number("width", width), whole_number("sorted_nodes", sorted_nodes)
    complete = arch.with_width(width)  # an error if it has too many weights
    dropout = real_number("dropout", dropout, 0, 1, remedy="pass for example dropout=0.5")
    # The order in which layers are made decides the weights of a seed.
    stages, channels = _make_stages(arch, in_channels, width, options, tied, sorted_nodes)
    adapter, linear = _make_linear(arch, channels, width, out_channels)
    return SequentialNetwork(
        complete,
        in_channels,
        out_channels,
        stages=stages,
        adapter=adapter,
        linear=linear,
        task=task,
        domain=options.domain,
        dropout=dropout,
        num_modes=options.num_modes,
        standardize=standardize,
    )


def _make_stages(
    arch: Architecture,
    channels: int,
    width: int,
    options: PoolingOptions,
    tied: Ties,
    sorted_nodes: int,
) -> tuple[ModuleList, int]:
    """Make all stages; return them and the number of columns that the linear layers read."""
    stages, convolutions, row_channels = ModuleList(), dict[int, Convolution](), 0
    last_convolutions: list[Convolution] = []  # those directly before the next layer
    numbers, tokens = iter(_weight_numbers(arch, tied)), Counter[str]()
    for block in arch.layers():
        if block.token in CONVOLUTIONS:
            signature = (block.token, channels, block.width or width)
            number = next(numbers)
            if number not in convolutions:
                convolutions[number] = Convolution(*signature)
            convolutions[number].check_signature(*signature)
            stages.append(convolutions[number])
            last_convolutions.append(convolutions[number])
            channels = block.width or width
        elif block.token in JOINS:
            del stages[-len(last_convolutions) :]
            stages.append(JumpingKnowledge(last_convolutions))
            channels = sum(convolution.signature[-1] for convolution in last_convolutions)
        elif block.token in READOUTS:
            aggregation, columns = make_readout(block.token, channels, sorted_nodes)
            stages.append(Readout(aggregation))
            row_channels += columns
        elif block.token in POOLINGS:
            level = tokens["HP"] + tokens["EIG"]
            stages.append(make_pooling(block.token, channels, level, options))
            channels *= options.num_modes if block.token == "EIG" else 1
            if block.token in ("DP", "STRUCT"):
                num_clusters = max(1, int(options.num_clusters * options.cluster_ratio))
                options = replace(options, num_clusters=num_clusters)
        last_convolutions = last_convolutions if block.token in CONVOLUTIONS else []
        tokens[block.token] += 1
    return stages, row_channels or channels


def _make_linear(
    arch: Architecture, channels: int, width: int, out_channels: int
) -> tuple[Module | None, ModuleList]:
    """Make the adapter, if widths differ, and the linear layers."""
    widths = [block.width or width for block in arch.layers() if block.token in LINEAR]
    adapter = Linear(channels, widths[0]) if widths and channels != widths[0] else None
    all_widths = [*(widths or [channels]), out_channels]
    return adapter, ModuleList(Linear(*pair) for pair in pairwise(all_widths))


def _weight_numbers(arch: Architecture, tied: Ties) -> list[int]:
    """Return a number for each convolution; those with equal numbers share weights."""
    count = sum(block.token in CONVOLUTIONS for block in arch.layers())
    if tied is None:
        return list(range(count))
    if tied == "authors":
        if str(arch) not in AUTHORS:
            raise HaarPoolError(
                f'a network of the authors for tied="authors": {", ".join(AUTHORS)}',
                str(arch),
                "pass a number for each convolution, for example tied=(0, 1, 1)",
            )
        tied = AUTHORS[str(arch)]
    numbers: list[Any] = list(tied) if isinstance(tied, Iterable) else [tied]
    if len(numbers) != count or not all(isinstance(number, int) for number in numbers):
        raise HaarPoolError(
            f"{count} whole numbers for tied=, one per convolution of {str(arch)!r}",
            f"{numbers}",
            "pass the same number for convolutions that share weights",
        )
    return numbers
