"""`Peer`, what the networks that `HaarUNet` is compared with have in common with it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import LayerNorm, Linear
from torch.nn.functional import dropout
from torch_geometric.utils import scatter

from haarpool._types import Domain
from haarpool._validate import real_number
from haarpool.errors import HaarPoolError
from haarpool.nn import Network
from haarpool.nn.inputs import Tensors, tensors_of
from haarpool.nn.layers.state import LayerState
from haarpool.nn.strings.architecture import DEFAULT_WIDTH
from paper.pooling.peers.architecture import PeerArchitecture
from paper.pooling.peers.signals import flatten_signals


class Peer(Network):
    """A network with the embedding, layer norm, dropout and linear output of `HaarUNet`.

        x = W x + mean over the edges uv of W e_uv          with edge features e
        x = layers(x)
        output = W dropout(norm(x))

    A subclass has an `architecture`, and `layers`.

    Args:
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        edge_channels: Number of columns of `data.edge_attr`; 0 ignores it.
        width: Width of all layers.
        domain: `None` or "vertex".
        dropout: Dropout probability before the output, for tasks with classes.
        task: Name of a task.
        standardize: Columns of `data.x` that are standardised.
        standardize_edges: The same for `data.edge_attr`.
        **sizes: Sizes of the architecture.

    Attributes:
        copies_graphs: Whether S signals x (S, N, d) become S copies of the graph. Otherwise the
            layers get (N, S, width).
        embeds_edges: Whether edge features are added to nodes; otherwise the layers read them.
    """

    reads_edges = True
    copies_graphs = True
    embeds_edges = True
    architecture: ClassVar[type[PeerArchitecture]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        edge_channels: int = 0,
        width: int = DEFAULT_WIDTH,
        domain: Domain | None = None,
        dropout: float = 0.0,
        task: str = "node_regression",
        standardize: Sequence[int] = (),
        standardize_edges: Sequence[int] = (),
        **sizes: Any,
    ) -> None:
        super().__init__(
            self.architecture(width, **sizes),
            in_channels,
            out_channels,
            edge_channels=edge_channels,
            domain=domain,
            task=task,
            standardize=standardize,
            standardize_edges=standardize_edges,
        )
        if getattr(self.arch, "levels", 0) is None:
            expected, remedy = "as a number", "pass for example {levels}"
            raise HaarPoolError(expected, "None", remedy, parameter="levels", levels=8)
        self.dropout = real_number("dropout", dropout, 0, 1, remedy="pass {dropout}", dropout=0.5)
        self.dropout *= self.task.reads_classes
        self.embedding = Linear(self.in_channels, width)
        embeds = self.embeds_edges and self.edge_channels
        self.edge_embedding = Linear(self.edge_channels, width) if embeds else None
        self.norm = LayerNorm(width)
        self.output = Linear(width, self.out_channels)

    @abstractmethod
    def layers(self, x: Tensor, graphs: LayerState, edge_attr: Tensor | None) -> Tensor:
        """Return (N, S, width) the last layer.

        Args:
            x: (N, S, width) S signals; S = 1 with `copies_graphs`.
            graphs: The graphs, without signals.
            edge_attr: (E, edge_channels) standardised edge features, or `None`.
        """

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute (N, out_channels) or (S, N, out_channels) outputs, see `HaarUNet.forward`."""
        tensors = tensors_of(data)
        self.check(tensors)
        shape = tensors["x"].shape[:-1]
        if self.copies_graphs:
            tensors = flatten_signals(tensors)
        x = self.standardize(tensors["x"])
        x = self.embedding(x.movedim(0, 1) if x.ndim == 3 else x[:, None])
        edge_attr = self._edge_features(tensors, x)
        if self.edge_embedding is not None:
            target = tensors["edge_index"][1]
            x = x + scatter(self.edge_embedding(edge_attr), target, 0, len(x), "mean")[:, None]
        graphs = LayerState.of_input(x.new_empty(len(x), 0), tensors)
        x = self.norm(self.layers(x, graphs, edge_attr))
        result = self._read_out(x, graphs, tensors).movedim(1, 0)
        if len(shape) == 1:
            return result[0]
        return result.reshape(*shape, self.out_channels)

    def _read_out(self, x: Tensor, graphs: LayerState, data: Tensors) -> Tensor:
        """Return the outputs for x (N, S, width)."""
        result: Tensor = self.output(dropout(x, self.dropout, self.training))
        return result
