"""`ChainData`, a PyG graph with its chain, and `AddHaarChain`, the transform that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr, size_repr
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.transforms import BaseTransform

from haarpool._types import Ints, Measure, Order, Reduction
from haarpool.chains.chain import Chain
from haarpool.chains.clustering import ClusteringFunction
from haarpool.chains.coarsening import build_chain
from haarpool.chains.recipe import Recipe, show_arguments
from haarpool.errors import HaarPoolError
from haarpool.haar.building import chain_tensors, joined_tensors
from haarpool.haar.chain_tensors import START, ChainTensors, is_chain_key
from haarpool.haar.edge_features import EdgeFeatures, checked_reduction
from haarpool.haar.joining import DIMENSION, JoinedTensors, increments
from haarpool.haar.node_order import renumber
from haarpool.haar.operators import sum_members


class MissingChainError(HaarPoolError, KeyError):
    """A graph does not have the chain tensors of another graph in its batch."""


class ChainStorage(GlobalStorage):  # type: ignore[misc]  # PyG has no types
    """The storage of a `ChainData`.

    PyG decides by length which tensors are features of nodes or edges; this class excludes chain
    tensors from both. PyG asks all graphs of a batch or dataset for the keys of the first; a graph
    without one of its chain tensors raises a clear error here. A first graph without a chain drops
    the chains of the others, and layers raise an error; if its chain is the shallowest, torch does.
    """

    def is_node_attr(self, key: str) -> bool:
        """Whether the value of a key has one entry per node."""
        return not is_chain_key(key) and bool(super().is_node_attr(key))

    def is_edge_attr(self, key: str) -> bool:
        """Whether the value of a key has one entry per edge."""
        return not is_chain_key(key) and bool(super().is_edge_attr(key))

    def increment(self, key: str) -> Any:
        """Return what is added to the rows of a chain tensor of the next graph in a batch."""
        if "_increments" not in self.__dict__:  # collating a dataset asks again in every epoch
            self._increments = increments(self._mapping)
        return self._increments.get(key, 0)

    def chains(self) -> ChainTensors:
        """Return the chains as layers read them; several layers read the same batch."""
        chains: ChainTensors | None = self.__dict__.get("_chains")
        # A copy of a storage has a mapping of its own.
        if chains is None or chains.tensors is not self._mapping or not chains.is_current():
            self._chains = chains = ChainTensors(self._mapping)
        return chains

    def __setitem__(self, key: str, value: Any) -> None:
        if is_chain_key(key):
            self.__dict__.pop("_increments", None)
        super().__setitem__(key, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state.pop("_increments", None)
        state.pop("_chains", None)
        return state

    def __getitem__(self, key: str) -> Any:
        try:
            return self._mapping[key]  # as in PyG; collating calls it often, so no super()
        except KeyError:
            if not is_chain_key(key):
                raise
        start = self._mapping.get(START)
        chain = "without a chain" if start is None else f"with a chain of {len(start) - 2} levels"
        raise MissingChainError(
            f"the same kind of chain in all graphs, here with {key}",
            f"a graph {chain}",
            "give all graphs of a dataset the same AddHaarChain, with num_levels= set",
        )


class ChainData(Data):  # type: ignore[misc]
    """A PyG `Data` with the tensors of its chain (see `haarpool.haar.chain_tensors`).

    PyG batches, slices, saves and moves it like any `Data`. The layers of `haarpool.nn` take one
    `ChainData` or a `Batch` of them. Apply transforms that change nodes or edges before
    `AddHaarChain`, not after it. If your class has its own `__inc__` or `__cat_dim__`, derive it
    from `ChainData` instead of `Data`.

    Args:
        *args: Arguments of `Data`: x, edge_index, ...
        **attributes: Attributes by name.

    Example:
        >>> from torch_geometric.data import Batch
        >>> ring = Data(x=torch.ones(6, 1), edge_index=torch.tensor(
        ...     [[0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 0, 1, 2, 3, 4, 5]]))
        >>> data = ChainData.from_chain(ring, build_chain(ring, num_levels=2))
        >>> data, Batch.from_data_list([data, data]).chain_sizes
        (ChainData(x=[6, 1], edge_index=[2, 12], chain=6 -> 3 -> 1), (12, 6, 2))
    """

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__()
        self.__dict__["_store"] = ChainStorage(_parent=self)
        for key, value in (Data(*args).to_dict() | attributes).items():
            setattr(self, key, value)

    @staticmethod
    def from_chain(data: Data, chain: Chain, edge_attr: Reduction | None = None) -> ChainData:
        """Add an existing chain to a graph.

        Args:
            data: The graph. If it has a chain already, that is replaced.
            chain: A chain of this graph. If it does not know its graph, it gets that of `data`.
            edge_attr: See `AddHaarChain`.
        """
        cls = type(data) if isinstance(data, ChainData) else ChainData
        for name in ("__inc__", "__cat_dim__"):
            is_overridden = getattr(type(data), name) is not getattr(Data, name)
            if is_overridden and not isinstance(data, ChainData):
                raise HaarPoolError(
                    "a Data, or a subclass of ChainData",
                    f"{type(data).__name__}, whose {name} would be lost",
                    f"derive {type(data).__name__} from haarpool.data.ChainData",
                )
        chain = _add_graph(chain, data)
        features = None if edge_attr is None else _edge_features(data, edge_attr)
        attributes = {key: value for key, value in data.to_dict().items() if not is_chain_key(key)}
        if data.x is None:
            attributes.setdefault("num_nodes", data.num_nodes)
        return cls(**attributes, **chain_tensors(chain, features=features))

    @property
    def tensors(self) -> dict[str, Any]:
        """All attributes as a plain dict, which layers read much faster than a `Data`."""
        mapping: dict[str, Any] = self._store._mapping
        return mapping

    @property
    def chain_tensors(self) -> ChainTensors:
        """The chains as transforms and layers read them."""
        chains: ChainTensors = self._store.chains()
        return chains

    @property
    def chain_sizes(self) -> tuple[int, ...]:
        """Numbers of nodes (N_0, ..., N_K) of the chain, or of all chains of a batch together."""
        levels = self.tensors[START].shape[0] - 1 if START in self.tensors else 0
        return tuple(self.tensors[f"haar_tree_{j}"].shape[-1] for j in range(levels))

    def coarse_pos(self, level: int) -> Tensor:
        """Return (N_j, D) the mean position of the level-0 nodes of each node of level j.

        Args:
            level: j in 0..K.

        Example:
            >>> path = Data(pos=torch.tensor([[0.0], [1.0], [5.0]]), num_nodes=3,
            ...             edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
            >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
            >>> data = ChainData.from_chain(path, chain)
            >>> data.coarse_pos(1).tolist(), data.coarse_pos(2).tolist()
            ([[0.5], [5.0]], [[2.0]])
        """
        chains, total = self.chain_tensors, self.tensors.get("pos")
        chains.check_level(level)
        if not isinstance(total, Tensor) or total.ndim != 2 or len(total) != chains.size(0):
            expected = f"data with pos of shape ({chains.size(0)}, columns)"
            got = "none" if total is None else f"shape {tuple(getattr(total, 'shape', ()))}"
            raise HaarPoolError(expected, got, "pass pos= to Data, before AddHaarChain")
        total = total if total.is_floating_point() else total.float()
        number = total.new_ones(len(total), 1)
        for j in range(level):
            total, number = sum_members(chains, total, j), sum_members(chains, number, j)
        return total / number

    def __repr__(self) -> str:
        parts = [
            size_repr(key, value) for key, value in self.tensors.items() if not is_chain_key(key)
        ]
        if sizes := self.chain_sizes:
            parts.append(f"chain={' -> '.join(map(str, sizes))}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return DIMENSION if is_chain_key(key) else super().__cat_dim__(key, value, *args, **kwargs)

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if is_chain_key(key):
            return self._store.increment(key)
        return super().__inc__(key, value, *args, **kwargs)


class ChainArguments(TypedDict, total=False):
    """Arguments of `AddHaarChain` besides those that a network sets, `num_levels` and `top`."""

    ratio: float | Iterable[float]
    method: str | ClusteringFunction
    seed: int
    sizes: Iterable[int] | Literal["paper"] | None
    order: Order
    measure: Measure
    symmetrize: bool
    options: Mapping[str, Any] | None
    chain: Callable[[Data], Chain] | None
    features: str | None
    edge_attr: Reduction | None
    reorder: bool


@functional_transform("add_haar_chain")
class AddHaarChain(BaseTransform):  # type: ignore[misc]
    """Build the chain of a graph and add it: `Data` -> `ChainData`.

    Pass it to a dataset as `pre_transform`; then chains are built once and saved with the dataset.

    The parameters from `num_levels` to `options` are those of `build_chain`. All graphs of a batch
    need the same K, `num_levels`.

    Args:
        chain: A function from a `Data` to its `Chain`, instead of all parameters of `build_chain`.
        features: Name of the node features for methods that use them, for example `"x"`.
        edge_attr: Give edges of coarse graphs features: `"mean"`, `"sum"`, `"max"` or `"min"` of
            `data.edge_attr` over the edges of the graph from the first cluster to the second, and
            as a last column their number. Poolings return them as `edge_attr`. With `None`, coarse
            edges have weights alone.
        reorder: Renumber the nodes in tree order, see `Chain.reorder`, which makes layers on large
            graphs faster. All that belongs to nodes is renumbered: x, also of shape (S, N, d),
            edge_index, masks, pos, and what else PyG counts as an attribute of nodes. The edges
            stay in order. `data.original_index` (N,) is the number that each node had before, so
            `out[data.original_index.argsort()]` has the rows of `out` in the order of the input,
            also for a batch.

    Example:
        >>> import torch_geometric.transforms as T
        >>> transform = T.Compose([T.Constant(), AddHaarChain(num_levels=2, method="matching")])
        >>> transform(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=5)).chain_sizes
        (5, 2, 1)
        >>> AddHaarChain(num_levels=3, seed=1)
        AddHaarChain(num_levels=3, seed=1)
    """

    def __init__(
        self,
        num_levels: int | Recipe | None = None,
        ratio: float | Iterable[float] = 0.5,
        top: int | None = 1,
        method: str | ClusteringFunction = "spectral",
        seed: int = 0,
        sizes: Iterable[int] | Literal["paper"] | None = None,
        order: Order = "degree",
        measure: Measure = "children",
        symmetrize: bool = False,
        options: Mapping[str, Any] | None = None,
        *,
        chain: Callable[[Data], Chain] | None = None,
        features: str | None = None,
        edge_attr: Reduction | None = None,
        reorder: bool = False,
    ) -> None:
        recipe = Recipe.of(
            num_levels, ratio, top, method, seed, sizes, order, measure, symmetrize, options
        )
        others = list(recipe.parameters()) + ["features"] * (features is not None)
        if chain is not None and not callable(chain):
            raise HaarPoolError(
                "as a function from a Data to its Chain",
                f"{chain!r}",
                "leave it out, and pass the parameters of build_chain",
                parameter="chain",
            )
        if chain is not None and others:
            raise HaarPoolError(
                "alone, without parameters of build_chain",
                f"it with {', '.join(others)}",
                "pass these parameters to build_chain inside your function",
                parameter="chain",
            )
        if features is not None and not isinstance(features, str):
            raise HaarPoolError(
                "as the name of an attribute of the graphs",
                f"{type(features).__name__}",
                "pass for example {features}",
                parameter="features",
                features="x",
            )
        self.recipe = None if chain is not None else recipe
        self.chain, self.features, self.reorder = chain, features, reorder
        self.edge_attr = checked_reduction(edge_attr)

    def forward(self, data: Data) -> ChainData:
        """Build the chain of a graph and add it."""
        return self.add(data, self.build(data))

    def add(self, data: Data, chain: Chain) -> ChainData:
        """Add an existing chain of a graph to it."""
        if self.reorder:
            chain, order = _add_graph(chain, data).reorder()
            data = renumber(data, order)
        return self._add(data, chain)

    def _add(self, data: Data, chain: Chain) -> ChainData:
        return ChainData.from_chain(data, chain, self.edge_attr)

    def join(
        self, forest: Chain, edges: Ints | None = None, edge_attr: NDArray[Any] | None = None
    ) -> JoinedTensors:
        """Build the chain tensors of many graphs at once.

        Args:
            forest: Their chains, one of `Chains.forests`.
            edges: (2, E) edges of all these graphs, with nodes numbered as in the forest; needed
                for edge features.
            edge_attr: (E, C) features of these edges.
        """
        features = None
        if self.edge_attr is not None:
            if edges is None or edge_attr is None:
                raise _without_edge_features()
            features = EdgeFeatures.of_input(edges, edge_attr, self.edge_attr)
        return joined_tensors(forest, features=features)

    def build(self, data: Data) -> Chain:
        """Build the chain of a graph."""
        if self.chain is None:
            if self.features is not None and self.features not in data:
                raise HaarPoolError(
                    f"as an attribute of the graphs, {self.features!r}",
                    "a graph without it",
                    "pass for example {features}",
                    parameter="features",
                    features="x",
                )
            features = None if self.features is None else data[self.features]
            return build_chain(data, self.recipe, features=features)
        chain = self.chain(data)
        if not isinstance(chain, Chain):
            raise HaarPoolError(
                "as a function that returns a Chain",
                f"one that returns {type(chain).__name__}",
                "return build_chain(...) or Chain.from_parents(...)",
                parameter="chain",
            )
        return _add_graph(chain, data)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments that differ from their defaults."""
        others: dict[str, Any] = {
            "chain": self.chain,
            "features": self.features,
            "edge_attr": self.edge_attr,
        }
        others |= {"reorder": True} if self.reorder else {}
        arguments = {} if self.recipe is None else self.recipe.parameters()
        return arguments | {name: value for name, value in others.items() if value is not None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({show_arguments(self._arguments())})"


def _add_graph(chain: Chain, data: Data) -> Chain:
    """Return a chain that knows its graph; if it has none, it gets that of `data`."""
    if chain.sizes[0] != data.num_nodes:
        raise HaarPoolError(
            f"a chain over the {data.num_nodes} nodes of the graph",
            f"{chain!r}",
            "build the chain from this graph",
        )
    if chain.has_graph:
        return chain
    return Chain.from_parents(
        chain.parents, adjacency=data, order=chain.order, measure=chain.measure
    )


def _edge_features(data: Data, reduction: Reduction) -> EdgeFeatures:
    """Return the features of the edges of a graph."""
    edges, values = data.edge_index, data.edge_attr
    if not isinstance(edges, Tensor) or not isinstance(values, Tensor):
        raise _without_edge_features()
    values = values.detach().cpu()
    if values.dtype in (torch.bfloat16, torch.float16):  # numpy does not have both
        values = values.float()
    return EdgeFeatures.of_input(edges.cpu().numpy(), np.asarray(values), reduction)


def _without_edge_features() -> HaarPoolError:
    return HaarPoolError(
        "graphs with edge_index and edge_attr, for features of coarse edges",
        "a graph without",
        "add edge_attr to the graphs, or leave {edge_attr} out of AddHaarChain",
        edge_attr=...,
    )


# Files with these classes can be loaded with weights_only=True. PyG registers its own classes but
# not the first two, which every Data contains.
torch.serialization.add_safe_globals([DataEdgeAttr, DataTensorAttr, ChainData, ChainStorage])
