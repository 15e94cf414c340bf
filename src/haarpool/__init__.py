"""Haar graph pooling: chains of coarser graphs, orthonormal Haar wavelets on them, fast transforms.

Names are imported on first use (PEP 562), so that `import haarpool` is fast and building chains
does not import torch.
"""

from typing import TYPE_CHECKING

from haarpool._lazy import lazy_names

if TYPE_CHECKING:
    from haarpool.chains.adjacency import as_adjacency as as_adjacency
    from haarpool.chains.chain import Chain as Chain
    from haarpool.chains.clustering import clusterings as clusterings
    from haarpool.chains.clustering import register as register
    from haarpool.chains.coarsening import build_chain as build_chain
    from haarpool.chains.dataset_chains import Chains as Chains
    from haarpool.chains.dataset_chains import precompute as precompute
    from haarpool.chains.quality import step_quality as step_quality
    from haarpool.comparison.comparison import Comparison as Comparison
    from haarpool.comparison.comparison import compare as compare
    from haarpool.datasets.pyg import load_dataset as load_dataset
    from haarpool.errors import HaarPoolError as HaarPoolError
    from haarpool.errors import HaarPoolWarning as HaarPoolWarning
    from haarpool.estimator import HaarClassifier as HaarClassifier
    from haarpool.estimator import HaarNodeClassifier as HaarNodeClassifier
    from haarpool.estimator import HaarNodeRegressor as HaarNodeRegressor
    from haarpool.estimator import HaarRegressor as HaarRegressor
    from haarpool.estimator import load as load
    from haarpool.haar.basis import compressive_basis as compressive_basis
    from haarpool.haar.basis import haar_basis as haar_basis
    from haarpool.haar.chain_tensors import TransformPlan as TransformPlan
    from haarpool.haar.coefficients import join as join
    from haarpool.haar.coefficients import split as split
    from haarpool.haar.coefficients import threshold as threshold
    from haarpool.haar.paper import algorithm1 as algorithm1
    from haarpool.haar.paper import locality as locality
    from haarpool.haar.paper import sparsity as sparsity
    from haarpool.haar.transform import adjoint as adjoint
    from haarpool.haar.transform import compress as compress
    from haarpool.haar.transform import expand as expand
    from haarpool.haar.transform import forward_transform as forward_transform

__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "haar.basis": ["compressive_basis", "haar_basis"],
            "haar.paper": ["algorithm1", "locality", "sparsity"],
            "chains.chain": ["Chain"],
            "chains.clustering": ["clusterings", "register"],
            "chains.coarsening": ["build_chain"],
            "haar.coefficients": ["join", "split", "threshold"],
            "comparison.comparison": ["Comparison", "compare"],
            "errors": ["HaarPoolError", "HaarPoolWarning"],
            "estimator": [
                "HaarClassifier",
                "HaarNodeClassifier",
                "HaarNodeRegressor",
                "HaarRegressor",
                "load",
            ],
            "datasets.pyg": ["load_dataset"],
            "chains.adjacency": ["as_adjacency"],
            "haar.chain_tensors": ["TransformPlan"],
            "chains.dataset_chains": ["Chains", "precompute"],
            "chains.quality": ["step_quality"],
            "haar.transform": ["adjoint", "compress", "expand", "forward_transform"],
        },
        "__version__",
    )
