"""Haar graph pooling: chains of coarser graphs, orthonormal Haar wavelets on them, fast transforms.

Names are imported on first use (PEP 562), so that `import haarpool` is fast and building chains
does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haarpool.chains.adjacency import as_adjacency
    from haarpool.chains.chain import Chain
    from haarpool.chains.clustering import clusterings, register
    from haarpool.chains.coarsening import build_chain
    from haarpool.chains.dataset_chains import Chains, precompute
    from haarpool.chains.quality import step_quality
    from haarpool.datasets.pyg import load_dataset
    from haarpool.errors import HaarPoolError, HaarPoolWarning
    from haarpool.estimator import HaarClassifier, HaarRegressor, load
    from haarpool.haar.basis import compressive_basis, haar_basis
    from haarpool.haar.chain_tensors import TransformPlan
    from haarpool.haar.coefficients import join, split, threshold
    from haarpool.haar.paper import algorithm1, locality, sparsity
    from haarpool.haar.transform import adjoint, compress, expand, forward_transform

__version__ = "0.1.0"

_MODULES = {
    "haar.basis": ["compressive_basis", "haar_basis"],
    "haar.paper": ["algorithm1", "locality", "sparsity"],
    "chains.chain": ["Chain"],
    "chains.clustering": ["clusterings", "register"],
    "chains.coarsening": ["build_chain"],
    "haar.coefficients": ["join", "split", "threshold"],
    "errors": ["HaarPoolError", "HaarPoolWarning"],
    "estimator": ["HaarClassifier", "HaarRegressor", "load"],
    "datasets.pyg": ["load_dataset"],
    "chains.adjacency": ["as_adjacency"],
    "haar.chain_tensors": ["TransformPlan"],
    "chains.dataset_chains": ["Chains", "precompute"],
    "chains.quality": ["step_quality"],
    "haar.transform": ["adjoint", "compress", "expand", "forward_transform"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Chain",
    "Chains",
    "HaarClassifier",
    "HaarPoolError",
    "HaarPoolWarning",
    "HaarRegressor",
    "TransformPlan",
    "__version__",
    "adjoint",
    "algorithm1",
    "as_adjacency",
    "build_chain",
    "clusterings",
    "compress",
    "compressive_basis",
    "expand",
    "forward_transform",
    "haar_basis",
    "join",
    "load",
    "load_dataset",
    "locality",
    "precompute",
    "register",
    "sparsity",
    "split",
    "step_quality",
    "threshold",
]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'haarpool' has no attribute {name!r}")
        value = getattr(import_module(f"haarpool.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
