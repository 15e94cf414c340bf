"""The networks of the study: the same width and training, different ways to reach far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from haarpool.nn import parse_architecture

# Learning rates, of which the validation part of the first split chooses one, by one trial each.
GRID = (0.0005, 0.001, 0.002, 0.004, 0.008)


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
    "graphunet": StudyMethod(
        "GraphUNet", "graphunet", note="That of PyG, with weights of A² that stay finite."
    ),
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
# Why do pooled networks lose on graphs larger than those of training? One thing is changed at once.
_SUMS = {
    "haarsum": StudyMethod("HaarSumNet", "haarsum"),
    "haarsum-flat": StudyMethod("HaarSumNet, no pooling", "haarsum:levels=0"),
    "haarsum-deep": StudyMethod("HaarSumNet, no pooling, 5 layers", "haarsum:levels=0,depth=5"),
    "haarsum-mean": StudyMethod("HaarSumNet, means over clusters", "haarsummean"),
    "haarsum-sum": StudyMethod("HaarSumNet, sums over clusters", "haarsumsum"),
    "haarsum-shared": StudyMethod("HaarSumNet, shared weights", "haarsumshared:levels=3"),
    "haarsum-three": StudyMethod("HaarSumNet, three levels", "haarsum:levels=3"),
    "haarsum-nodes": StudyMethod(
        "HaarSumNet, sum over input nodes",
        "haarsumnodes",
        note="Coarse layers are copied to the nodes of the input graph, whose sum is the output.",
    ),
    "haarsum-matching": StudyMethod("HaarSumNet, matching", "haarsum", {"method": "matching"}),
    "haarsum-random": StudyMethod("HaarSumNet, random clusters", "haarsum", {"method": "random"}),
    "haarnet": StudyMethod("HaarNet", "haarnet"),
    "haarnet-flat": StudyMethod("HaarNet, no pooling", "haarnet:levels=0"),
    "haarnet-mean": StudyMethod("HaarNet, means over clusters", "haarnetmean"),
}
SUMS = tuple(_SUMS)
METHODS |= _SUMS
FIVE = ("haarunet", "random", "graphunet", "flat-16", "virtual")


def graph_arch(arch: str) -> str:
    """Return an architecture with one output per graph instead of one per node.

    Example:
        >>> graph_arch("haarunet:depth=4,levels=0"), graph_arch("haarnet")
        ('haarunetgraph:depth=4,levels=0', 'haarnet')
    """
    if not parse_architecture(arch).of_nodes:
        return arch
    name, colon, sizes = arch.partition(":")
    return f"{name}graph{colon}{sizes}"


def with_levels(arch: str, levels: int) -> str:
    """Return an architecture with a number of levels, if it has levels and names no number.

    Example:
        >>> with_levels("haarunet", 7), with_levels("haarunet:depth=4,levels=0", 7)
        ('haarunet:levels=7', 'haarunet:depth=4,levels=0')
    """
    parsed: Any = parse_architecture(arch)
    return str(replace(parsed, levels=levels)) if getattr(parsed, "levels", 0) is None else arch
