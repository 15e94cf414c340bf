"""`EdgeNetwork`, a network whose messages see the features of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from haarpool._types import Domain
from haarpool._validate import whole_number
from haarpool.errors import HaarPoolError
from haarpool.nn.haar_architecture import HaarNetArchitecture, choose_domain
from haarpool.nn.inputs import Tensors
from haarpool.nn.network import Network
from haarpool.nn.standardize import Standardize


class EdgeNetwork(Network):
    """What `HaarNet` and `HaarSumNet` share.

    Args:
        arch: The architecture.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        edge_channels: Number of columns of `data.edge_attr`; 0 ignores it.
        domain: Domain of the poolings; `None` is that of the architecture.
        task: See `build_model`.
        standardize: Columns of `data.x` that are standardised, see `Network.fit_inputs`.
        standardize_edges: The same for `data.edge_attr`.
    """

    reads_edges = True

    def __init__(
        self,
        arch: HaarNetArchitecture,
        in_channels: int,
        out_channels: int,
        *,
        edge_channels: int,
        domain: Domain | None,
        task: str,
        standardize: Sequence[int],
        standardize_edges: Sequence[int],
    ) -> None:
        domain = choose_domain(arch, domain)
        super().__init__(
            arch, in_channels, out_channels, task=task, domain=domain, standardize=standardize
        )
        self.edge_channels = whole_number("edge_channels", edge_channels, minimum=0)
        self.standardize_edges = Standardize(self.edge_channels, standardize_edges)

    @property
    def has_static_shapes(self) -> bool:
        """Whether all shapes follow from the shapes of the input, and sums have a fixed order."""
        return True

    def _standardized_inputs(self) -> dict[str, Standardize]:
        return {"x": self.standardize, "edge_attr": self.standardize_edges}

    def _edge_features(self, data: Tensors, like: Tensor) -> Tensor | None:
        """Return (E, edge_channels) standardised features of the edges, or `None`."""
        if not self.edge_channels:
            return None
        features: Tensor = self.standardize_edges(data["edge_attr"].to(like.dtype))
        return features

    def check(self, data: Any) -> None:
        """Raise an error unless the data has all tensors that this network reads."""
        super().check(data)
        if not self.edge_channels:
            return
        shape = (data["edge_index"].shape[1], self.edge_channels)
        found = tuple(data["edge_attr"].shape) if "edge_attr" in data else "none"
        if found != shape:
            raise HaarPoolError(
                f"edge_attr of shape {shape}",
                f"{found}",
                "pass edge_channels=data.num_edge_features",
            )
