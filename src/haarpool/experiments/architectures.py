"""From the network of HaarPool to the networks of its peers."""

from __future__ import annotations

from dataclasses import replace

from haarpool.nn.strings.architecture import Architecture, Block


def peer_architecture(arch: str, token: str, readout: str = "AP") -> str:
    """Return the architecture of a peer with the convolutions and linear layers of another one.

    A pooling takes the place of each HP. One that leaves several nodes per graph gets a global
    readout before the linear layers. A global readout takes the place of all HP.

    Args:
        arch: Architecture with HP.
        token: Token of the pooling or of the global readout.
        readout: Global readout of a pooling that needs one.

    Example:
        >>> peer_architecture("2GC8-HP-GC8-HP-FC8", "SP"), peer_architecture("GC8-HP-FC8", "SORT")
        ('2GC8-SP-GC8-SP-AP-FC8', 'GC8-SORT-FC8')
        >>> peer_architecture("2GC8-HP-GC8-HP-FC8", "EIG")
        '2GC8-EIG-GC8-EIG-FC8'
    """
    blocks = Architecture.parse(arch).blocks
    features = [block for block in blocks if block.layer.kind != "linear"]
    linear = [block for block in blocks if block.layer.kind == "linear"]
    if Block(token).layer.kind == "readout":
        features = [block for block in features if block.token != "HP"] + [Block(token)]
    else:
        features = [Block(token) if block.token == "HP" else block for block in features]
        features += [] if Block(token).layer.chain else [Block(readout)]
    return str(Architecture((*features, *linear)))


def with_convolution(arch: str, token: str) -> str:
    """Return an architecture with another convolution of the same width in each place.

    Example:
        >>> with_convolution("2GC8-SUM-FC8", "GIN")
        '2GIN8-SUM-FC8'
    """
    blocks = Architecture.parse(arch).blocks
    changed = (
        replace(block, token=token) if block.layer.kind == "convolution" else block
        for block in blocks
    )
    return str(Architecture(tuple(changed)))
