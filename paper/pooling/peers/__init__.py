"""The networks that `HaarUNet` is compared with; `register_peers` makes their names known."""

from paper.pooling.peers.registering import register_peers as register_peers
