"""Graphs that carry their chain: `ChainData`, and `AddHaarChain`, which makes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr, size_repr
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain
from haarpool.chains.chain import Chain
from haarpool.chains.coarsening import build_chain
from haarpool.chains.recipe import Recipe, show_arguments
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import (
    JoinedTensors,
    chain_tensors,
    increment,
    is_chain_key,
    joined_tensors,
)


class MissingChainError(HaarPoolError, KeyError):
    """A graph lacks chain tensors that others of its batch have. PyG expects a KeyError."""


class ChainStorage(GlobalStorage):  # type: ignore[misc]  # PyG has no types
    """The storage of a `ChainData`.

    It keeps PyG from taking chain tensors for features of nodes or edges, as it does by their
    length, and says why graphs do not batch.
    """

    def is_node_attr(self, key: str) -> bool:
        """Whether there is one of these per node."""
        return not is_chain_key(key) and bool(super().is_node_attr(key))

    def is_edge_attr(self, key: str) -> bool:
        """Whether there is one of these per edge."""
        return not is_chain_key(key) and bool(super().is_edge_attr(key))

    def __getitem__(self, key: str) -> Any:
        try:
            return self._mapping[key]  # as in PyG, without a further call: collating asks often
        except KeyError:
            if not is_chain_key(key):
                raise
        depth = next((k for k in self._mapping if k.startswith("haar_depth_")), None)
        raise MissingChainError(
            f"the same kind of chain in all graphs, here with {key}",
            f"a graph with a chain of {depth.split('_')[-1]} levels" if depth else "one without",
            "give all graphs of a dataset the same AddHaarChain, with num_levels= set",
        )


class ChainData(Data):  # type: ignore[misc]
    """A PyG `Data` with the tensors of its chain (see `haarpool.haar.chain_tensors`).

    It is batched, sliced, saved and moved by PyG's own means; `haarpool.nn` reads it, alone or in
    a `Batch`. Transforms that change nodes or edges come before `AddHaarChain`, not after it. For
    attributes with rules of their own in a batch (`__inc__`, `__cat_dim__`) subclass this class in
    the place of `Data`.

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
    def from_chain(
        data: Data, chain: Chain, *, domain: Domain = "haar", details: bool | None = None
    ) -> ChainData:
        """The same graph with a chain that you have.

        Args:
            data: the graph; a chain that it carries already is replaced.
            chain: a chain over its nodes. If it does not know its graph it gets that of `data`.
            domain, details: see `AddHaarChain`.
        """
        check_domain(domain)
        cls = type(data) if isinstance(data, ChainData) else ChainData
        rules = ("__inc__", "__cat_dim__")
        if not isinstance(data, ChainData) and any(
            getattr(type(data), name) is not getattr(Data, name) for name in rules
        ):
            raise HaarPoolError(
                "a Data, or a subclass of ChainData",
                f"{type(data).__name__} with rules of its own for batches, which would be lost",
                f"let {type(data).__name__} inherit from haarpool.data.ChainData",
            )
        chain = _with_graph(chain, data)
        weight = data.edge_weight if "edge_weight" in data else None
        dtype = weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
        kept = {key: value for key, value in data.to_dict().items() if not is_chain_key(key)}
        if data.x is None:
            kept.setdefault("num_nodes", data.num_nodes)
        bases, details = wanted_parts(domain, details)
        tensors = chain_tensors(chain, bases=bases, details=details, dtype=dtype)
        return cls(**kept, **tensors)

    @property
    def tensors(self) -> dict[str, Any]:
        """All that it holds as a plain dict: what layers read, much faster than through `Data`."""
        mapping: dict[str, Any] = self._store._mapping
        return mapping

    @property
    def chain_sizes(self) -> tuple[int, ...]:
        """(N_0, ..., N_K) of the chain, or of all chains of a batch together."""
        trees = [key for key in self.tensors if key.startswith("haar_tree_") and is_chain_key(key)]
        return tuple(self.tensors[f"haar_tree_{j}"].shape[-1] for j in range(len(trees)))

    def __repr__(self) -> str:
        shown = [
            size_repr(key, value) for key, value in self.tensors.items() if not is_chain_key(key)
        ]
        if sizes := self.chain_sizes:
            shown.append(f"chain={' -> '.join(map(str, sizes))}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return -1 if is_chain_key(key) else super().__cat_dim__(key, value, *args, **kwargs)

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if is_chain_key(key):
            return increment(key, self._store._mapping)
        return super().__inc__(key, value, *args, **kwargs)


@functional_transform("add_haar_chain")
class AddHaarChain(BaseTransform):  # type: ignore[misc]
    """Build the chain of a graph and add it: `Data` -> `ChainData`.

    Give it to a dataset as `pre_transform`, so that chains are built once and saved with it.

    Args:
        num_levels: K; all graphs of a batch need the same.
        chain: instead of all parameters of `build_chain` a function from a `Data` to its `Chain`.
        features: the name of the node features for a method that looks at them, for instance "x".
        domain: "haar", or "vertex" to leave the bases out: smaller and faster to batch, enough for
            pooling in the vertex domain, readouts and `HaarConv`.
        details: whether pooling with details="full" shall be possible, in either domain; by default
            in the domain "haar". A cluster of k nodes takes k²/2 numbers for it: say False where
            large graphs are pooled to one node and details are not wanted.
        parameters: all others of `build_chain`: ratio, top, method, seed, order, measure, ...

    >>> import torch_geometric.transforms as T
    >>> transform = T.Compose([T.Constant(), AddHaarChain(num_levels=2, method="matching")])
    >>> transform(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=5)).chain_sizes
    (5, 2, 1)
    >>> AddHaarChain(num_levels=3, seed=1)
    AddHaarChain(num_levels=3, seed=1)
    """

    def __init__(
        self,
        num_levels: int | None = None,
        *,
        chain: Callable[[Data], Chain] | None = None,
        features: str | None = None,
        domain: Domain = "haar",
        details: bool | None = None,
        **parameters: Any,
    ) -> None:
        check_domain(domain)
        if details not in (None, True, False):
            raise HaarPoolError("details True or False", f"{details!r}", "pass details=True")
        if chain is not None and (not callable(chain) or num_levels or features or parameters):
            others = {"num_levels": num_levels, "features": features} | parameters
            raise HaarPoolError(
                "chain= as a function from a Data to its Chain, and no parameters of build_chain",
                f"chain with {[k for k, v in others.items() if v is not None]}",
                "pass these parameters to build_chain inside your function",
            )
        self.recipe = None if chain is not None else Recipe.of(num_levels, **parameters)
        self.chain, self.features = chain, features
        self.domain, self.details = domain, details

    def forward(self, data: Data) -> ChainData:
        """The graph with its chain."""
        return self.add(data, self.build(data))

    def add(self, data: Data, chain: Chain) -> ChainData:
        """The graph with a chain of it that is there already."""
        return ChainData.from_chain(data, chain, domain=self.domain, details=self.details)

    def join(self, forest: Chain, dtype: torch.dtype = torch.float32) -> JoinedTensors:
        """What `add` gives to many graphs, at once; see `joined_tensors`.

        Args:
            forest: their chains, as `Chains.forests` gives them.
            dtype: of their edge weights.
        """
        bases, details = wanted_parts(self.domain, self.details)
        return joined_tensors(forest, bases=bases, details=details, dtype=dtype)

    def build(self, data: Data) -> Chain:
        """Build the chain of a graph."""
        if self.chain is None:
            if self.features is not None and self.features not in data:
                raise HaarPoolError(
                    f"data with the node features {self.features!r}",
                    "data without them",
                    'name an attribute of the graphs, for example features="x"',
                )
            features = None if self.features is None else data[self.features]
            return build_chain(data, self.recipe, features=features)
        chain = self.chain(data)
        if not isinstance(chain, Chain):
            raise HaarPoolError(
                "a Chain from the function chain=",
                f"{type(chain).__name__}",
                "return build_chain(...) or Chain.from_parents(...)",
            )
        return _with_graph(chain, data)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments that differ from their defaults."""
        arguments = {} if self.recipe is None else self.recipe.parameters()
        defaults = {
            parameter.name: parameter.default
            for parameter in inspect.signature(type(self)).parameters.values()
        }
        others = {name: getattr(self, name) for name in ("chain", "features", "domain", "details")}
        return arguments | {k: v for k, v in others.items() if v != defaults.get(k)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({show_arguments(self._arguments())})"


def _with_graph(chain: Chain, data: Data) -> Chain:
    """The chain, with the graph of `data` if it knows none."""
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


def wanted_parts(domain: Domain, details: bool | None) -> tuple[bool, bool]:
    """Whether bases and details of level 0 are kept."""
    details = domain == "haar" if details is None else details
    return domain == "haar" or details, details


def check_domain(domain: str) -> None:
    """Raise unless this is a domain."""
    if domain not in ("haar", "vertex"):
        raise HaarPoolError('domain "haar" or "vertex"', f"{domain!r}", "choose one of the two")


# A file with these classes loads with weights_only=True. PyG allows its own alike, but leaves out
# the first two, which every Data holds.
torch.serialization.add_safe_globals([DataEdgeAttr, DataTensorAttr, ChainData, ChainStorage])
