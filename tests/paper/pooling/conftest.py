"""The networks of the study are known in its tests alone."""

import pytest

from haarpool.chains.clustering import registry as clusterings
from haarpool.nn.strings import registry as networks
from paper.pooling.peers.registering import PEERS, register_peers


@pytest.fixture(autouse=True)
def _peers():
    register_peers()
    yield
    for name in PEERS:
        networks._NETWORKS.pop(name)
    clusterings._METHODS.pop("kmis")
    register_peers.cache_clear()
