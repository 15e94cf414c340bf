"""The networks of the study: the same convolutions, width and training, other ways to reach far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import paper.pooling.peers  # noqa: F401 (registers the architectures)

GRID = (0.001, 0.002, 0.004)  # learning rates that the validation part chooses from, by one trial


class StudyMethod(NamedTuple):
    """A network of the study.

    Attributes:
        title: Its name in the page.
        arch: Its architecture.
        chain: Parameters of its chain.
        note: What a reader must know about it.
        longer: How many times as many epochs it trains.
    """

    title: str
    arch: str
    chain: Mapping[str, Any] = {}
    note: str = ""
    longer: int = 1


METHODS: dict[str, StudyMethod] = {
    "haarunet": StudyMethod("HaarUNet", "haarunet", note="Clustering `matching`."),
    "haarunet-spectral": StudyMethod("HaarUNet, spectral", "haarunet", {"method": "spectral"}),
    "haarunet-metis": StudyMethod("HaarUNet, METIS", "haarunet", {"method": "metis"}),
    "random": StudyMethod(
        "random clusters", "haarunet", {"method": "random"}, "HaarUNet on clusters of random nodes."
    ),
    "kmis": StudyMethod(
        "k-MIS", "haarunet", {"method": "kmis"}, "HaarUNet on the clusters of k-MIS pooling."
    ),
    "ndp": StudyMethod("NDP", "ndpunet", note="The U-Net on nodes chosen by node decimation."),
    "topk": StudyMethod("TopK", "topkunet", note="The U-Net on nodes chosen by TopK."),
    "sag": StudyMethod("SAG", "sagunet", note="The U-Net on nodes chosen by SAGPool."),
    "graphunet": StudyMethod("GraphUNet", "graphunet", note="That of PyG, as published."),
    **{
        f"flat-{n}": StudyMethod(f"flat, {n} layers", f"haarunet:depth={n},levels=0")
        for n in (4, 8, 16, 32)
    },
    "flat-32-long": StudyMethod(
        "flat, 32 layers, trained three times as long", "haarunet:depth=32,levels=0", longer=3
    ),
    "gcnii": StudyMethod("GCNII, 32 layers", "gcnii:depth=32", note="Initial residuals, flat."),
    "virtual": StudyMethod(
        "flat, 16 layers, virtual node", "haarunet:depth=16,levels=0,virtual_node=true"
    ),
}
ALL = tuple(METHODS)
FIVE = ("haarunet", "random", "graphunet", "flat-16", "virtual")


def graph_arch(arch: str) -> str:
    """Return an architecture with one output per graph instead of one per node.

    Example:
        >>> graph_arch("haarunet:depth=4,levels=0")
        'haarunetgraph:depth=4,levels=0'
    """
    name, colon, sizes = arch.partition(":")
    return f"{name}graph{colon}{sizes}"
