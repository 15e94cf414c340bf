"""From an architecture to a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Linear
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain, Task
from haarpool.data import AddHaarChain, check_domain
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import GROWTH
from haarpool.nn.architecture import CHAIN_POOLINGS, CONVOLUTIONS, LINEAR, READOUTS, Architecture
from haarpool.nn.convolutions import Convolution
from haarpool.nn.operators import check_signal, missing_features, tensors_of
from haarpool.nn.peers.eigenpool import AddEigenModes, EigenPooling
from haarpool.nn.pooling import HaarPooling
from haarpool.nn.stages import ChainPooling, make_pooling, make_readout
from haarpool.nn.state import LayerState

# Which convolutions of the authors' networks share weights; their strings do not say so.
AUTHORS: dict[str, tuple[int, ...]] = {
    "GC60-HP-FC60-FC180-FC60": (0,),
    "2GC256-HP-FC256-FC1024-FC2048": (0, 1),
    "3GC256-HP-2FC256-FC128": (0, 1, 1),
    "2GC128-HP-2GC128-HP-2GC128-HP-GC128-2FC128-FC64": (0, 1, 1, 1, 2, 2, 3),
}


def build_model(
    arch: Architecture | str,
    in_channels: int,
    out_channels: int,
    *,
    task: Task = "classification",
    domain: Domain = "haar",
    tied: Literal["authors"] | Sequence[int] | None = None,
    dropout: float = 0.5,
    width: int = 64,
    ratio: float = 0.5,
    num_clusters: int = 16,
    num_modes: int = 2,
    sorted_nodes: int = 30,
) -> Network:
    """The network of an architecture.

    Convolutions and linear layers but the last are followed by a ReLU. All convolutions look at
    edge weights, those of `data.edge_weight` and those of coarse graphs. `FCn` is a linear layer of
    input width n: `FC60-FC180` is Linear(60, 180), Linear(180, out_channels). Where what arrives
    has another width a linear layer to n comes in front.

    Args:
        arch: an `Architecture` or its string.
        in_channels: columns of `data.x`.
        out_channels: number of classes, or of values to predict.
        task: "classification" or "regression"; decides about `Network.loss`.
        domain: of all HP, see `HaarPooling`.
        tied: convolutions that share weights: for each one the number of its weights, for example
            (0, 1, 1); "authors" for what the authors' networks do; `None` for no sharing.
        dropout: behind the first linear layer (before the last, if it is the only one).
        width: of convolutions and linear layers that name none.
        ratio: nodes that SP and TP keep.
        num_clusters: of DP and STRUCT; a second one of them makes half as many, and so on.
        num_modes: eigenvectors per cluster of EIG.
        sorted_nodes: nodes that SORT keeps of each graph; smaller graphs are filled up with zeros.

    >>> model = build_model("2GC16-HP-GC16-HP-FC16", in_channels=3, out_channels=2)
    >>> model.chain_parameters
    {'num_levels': 2, 'top': 1}
    >>> model.transform(seed=1)
    AddHaarChain(num_levels=2, seed=1, details=False)
    """
    arch = arch if isinstance(arch, Architecture) else Architecture.parse(arch)
    check_domain(domain)
    if task not in ("classification", "regression"):
        raise HaarPoolError(
            'task "classification" or "regression"', f"{task!r}", "choose one of the two"
        )
    in_channels = _count("in_channels", in_channels)
    out_channels = _count("out_channels", out_channels)
    width, num_clusters = _count("width", width), _count("num_clusters", num_clusters)
    num_modes, sorted_nodes = _count("num_modes", num_modes), _count("sorted_nodes", sorted_nodes)
    if not (isinstance(dropout, Real) and 0 <= dropout < 1):
        raise HaarPoolError("dropout in [0, 1)", f"{dropout!r}", "pass for example dropout=0.5")
    if not (isinstance(ratio, Real) and 0 < ratio < 1):
        raise HaarPoolError("a ratio in (0, 1)", f"{ratio!r}", "pass for example ratio=0.5")
    network = Network(arch, in_channels, out_channels, task, domain, dropout, num_modes)
    convolutions: dict[int, Convolution] = {}
    shared = _shared(arch, tied)
    channels = in_channels
    for block in arch.layers():
        token, wide = block.token, block.width or width
        if token in CONVOLUTIONS:
            number = next(shared)
            if number not in convolutions:
                convolutions[number] = Convolution(token, channels, wide)
            conv = convolutions[number]
            if conv.signature != (token, channels, wide):
                raise HaarPoolError(
                    f"tied convolutions of one kind, {conv.signature}",
                    f"{(token, channels, wide)} for number {number}",
                    "tie convolutions with equal input and output widths only",
                )
            network.stages.append(conv)
            channels = wide
        elif token in CHAIN_POOLINGS:
            level = sum(isinstance(stage, ChainPooling) for stage in network.stages)
            haar = token == "HP"
            pool = HaarPooling(level, domain) if haar else EigenPooling(level, num_modes)
            network.stages.append(ChainPooling(pool))
            channels *= 1 if haar else num_modes
        elif token in READOUTS:
            network.readout, channels = make_readout(token, channels, sorted_nodes)
        elif token not in LINEAR:
            network.stages.append(make_pooling(token, channels, ratio, num_clusters))
            num_clusters = max(1, num_clusters // 2) if token in ("DP", "STRUCT") else num_clusters
    widths = [block.width or width for block in arch.layers() if block.token in LINEAR]
    if widths and channels != widths[0]:
        network.adapter = Linear(channels, widths[0])
    for wide, following in pairwise([*(widths or [channels]), out_channels]):
        network.linear.append(Linear(wide, following))
    return network


class Network(torch.nn.Module):
    """The network of an architecture; `build_model` makes it.

    Its input is a `ChainData`, a batch of them, or a dict of their tensors; it gives
    (graphs, out_channels), scores of classes or values. Losses that poolings bring along (DiffPool)
    are found in `auxiliary` after each call, or None.
    """

    def __init__(
        self,
        arch: Architecture,
        in_channels: int,
        out_channels: int,
        task: Task,
        domain: Domain,
        dropout: float,
        num_modes: int,
    ) -> None:
        super().__init__()
        self.arch, self.task, self.domain = arch, task, domain
        self.dropout, self.num_modes = dropout, num_modes
        self.in_channels, self.out_channels = in_channels, out_channels
        self.stages, self.linear = torch.nn.ModuleList(), torch.nn.ModuleList()
        self.readout: torch.nn.Module | None = None
        self.adapter: torch.nn.Module | None = None
        self.auxiliary: Tensor | None = None

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """What its chains need: `AddHaarChain(**model.chain_parameters)`; {} if it needs none."""
        levels = self.arch.num_levels
        return {"num_levels": levels, "top": self.arch.top} if levels else {}

    def transform(self, **parameters: Any) -> BaseTransform | None:
        """The transform that gives graphs what this network needs; None if that is nothing.

        Args:
            parameters: the others of `AddHaarChain`: method, seed, ..., or chain= your function.
        """
        if not self.arch.num_levels:
            return None
        if own := {"num_levels", "top"} & set(parameters):
            raise HaarPoolError(
                f"parameters besides those of the network, {self.chain_parameters}",
                f"{', '.join(sorted(own))}",
                "leave them out, or make the AddHaarChain yourself",
            )
        tokens = {block.token for block in self.arch.blocks}
        bases = self.domain == "haar" and "HP" in tokens
        # No token keeps details.
        least = {"domain": "haar", "details": False} if bases else {"domain": "vertex"}
        parameters = least | parameters
        if parameters.get("chain") is None:
            parameters = self.chain_parameters | parameters
        if "EIG" in tokens:
            return AddEigenModes(num_modes=self.num_modes, **parameters)
        return AddHaarChain(**parameters)

    def reset_parameters(self) -> None:
        """Fresh weights."""
        for module in (*self.stages, self.adapter, self.readout, *self.linear):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def check(self, data: Any) -> None:
        """Raise unless the data, one graph or a batch, has all that this network reads.

        Ask it with the first graph, before the first batch; `forward` asks too.
        """
        if "x" not in data or data["x"] is None:
            raise missing_features()
        x = data["x"]
        if x.ndim != 2 or x.shape[1] != self.in_channels:
            raise HaarPoolError(
                f"x with {self.in_channels} columns",
                f"shape {tuple(x.shape)}",
                "pass in_channels=data.num_features to build_model",
            )
        check_signal(x, x.shape[0])
        if "edge_index" not in data or data["edge_index"] is None:
            raise HaarPoolError("data with edge_index", "none", "leave ToSparseTensor out")
        if "edge_weight" in data and data["edge_weight"].ndim != 1:
            raise HaarPoolError(
                "edge_weight of shape (E,)",
                f"shape {tuple(data['edge_weight'].shape)}",
                "pass one weight per edge, for example edge_weight.squeeze(-1)",
            )
        levels, top = self.arch.num_levels, self.arch.top
        if not levels:
            return
        if f"haar_tree_{levels}" not in data:
            found = sum(f"haar_tree_{j}" in data for j in range(levels)) - 1
            raise HaarPoolError(
                f"a chain of at least {levels} levels for {str(self.arch)!r}",
                f"a chain of {found}" if found > 0 else "data without a chain",
                self._remedy(),
            )
        rows = data[f"haar_tree_{levels}"].shape[-1]
        if top == 1 and rows != _num_graphs(data):
            raise HaarPoolError(
                f"chains that end in one node for {str(self.arch)!r}, which has no global readout",
                f"{rows} nodes on level {levels} in {_num_graphs(data)} graphs",
                self._remedy(),
            )
        for stage in self.stages:
            if isinstance(stage, ChainPooling) and (lacking := stage.lacks(data)):
                raise HaarPoolError(f"data with {lacking}", "data without", self._remedy())

    def _remedy(self) -> str:
        return f"add {self.transform()!r} to the transforms of the dataset"

    def forward(self, data: Any) -> Tensor:
        """Scores or values, (graphs, out_channels)."""
        data = tensors_of(data)
        self.check(data)
        x, edges = data["x"], data["edge_index"]
        batch = data["batch"] if "batch" in data else edges.new_zeros(x.shape[0])
        state = LayerState(x, edges, None, batch)
        if "edge_weight" in data:
            state = state._replace(edge_weight=data["edge_weight"])
        for stage in self.stages:
            state = stage(state, data)
        x = state.x
        if state.auxiliary is not None:
            self.auxiliary = state.auxiliary
        if self.readout is not None:
            x = self.readout(x, state.batch, dim_size=_num_graphs(data))
        if self.adapter is not None:
            x = self.adapter(x).relu()
        *hidden, last = self.linear
        for i, layer in enumerate(hidden):
            x = layer(x).relu()
            if i == 0:
                x = dropout(x, self.dropout, self.training)
        if not hidden:
            x = dropout(x, self.dropout, self.training)
        result: Tensor = last(x)
        return result

    def loss(self, output: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Cross entropy or mean squared error, and the auxiliary losses of the last call.

        Args:
            output: what the network gave.
            target: classes, or values of the same shape; NaN is a value that is not known.
            weight: (classes,) how much each class counts.
        """
        if self.task == "classification":
            loss = cross_entropy(output, target.view(-1), weight)
        else:
            target = target.view_as(output).to(output.dtype)
            known = ~target.isnan()
            error = torch.where(known, output - target, 0.0)
            loss = error.square().sum() / known.sum().clamp(min=1)
        return loss if self.auxiliary is None else loss + self.auxiliary

    def __getstate__(self) -> dict[str, Any]:
        """Copies and files do without the losses of the last call, which hang on its graph."""
        return self.__dict__ | {"auxiliary": None}

    def extra_repr(self) -> str:
        """The architecture, for `print(model)`."""
        return f"{str(self.arch)!r}, {self.in_channels} -> {self.out_channels}, {self.task}"


def _num_graphs(data: Mapping[str, Tensor]) -> int:
    """A shape, not a value: nothing is read back from the device."""
    if GROWTH in data:
        return data[GROWTH].shape[-1]
    if "ptr" in data:
        return data["ptr"].shape[0] - 1
    # A batch vector made by hand is the one thing that has to be looked into.
    return int(data["batch"].max()) + 1 if "batch" in data else 1


def _count(name: str, value: Any) -> int:
    """A whole number >= 1, also one of numpy."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise HaarPoolError(
            f"{name} as a whole number >= 1",
            f"{value!r}",
            "count the columns of x and the classes; leave other sizes at their defaults",
        )
    return int(value)


def _shared(arch: Architecture, tied: Literal["authors"] | Sequence[int] | None) -> Any:
    """For each convolution the number of its weights."""
    count = sum(block.token in CONVOLUTIONS for block in arch.layers())
    if tied is None:
        return iter(range(count))
    if tied == "authors":
        if str(arch) not in AUTHORS:
            raise HaarPoolError(
                f'one of the authors\' networks for tied="authors": {", ".join(AUTHORS)}',
                str(arch),
                "say which convolutions share weights, for example tied=(0, 1, 1)",
            )
        tied = AUTHORS[str(arch)]
    numbers = list(tied) if isinstance(tied, Iterable) else [tied]
    if len(numbers) != count or not all(isinstance(number, int) for number in numbers):
        raise HaarPoolError(
            f"tied as {count} whole numbers, one per convolution of {str(arch)!r}",
            f"{numbers}",
            "convolutions with the same number share weights",
        )
    return iter(numbers)
