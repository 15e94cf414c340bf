"""`PeerLearner`: worker processes that unpickle it know the peers."""

from __future__ import annotations

import paper.pooling.peers  # registers the networks, also in worker processes  # noqa: F401
from haarpool.comparison.learners import NetworkLearner


class PeerLearner(NetworkLearner):
    """Trains a network of the study."""
