"""A road network: which tenth of all junctions is each one in, by eccentricity within 16 hops?

What is predicted: for each of 5,268 junctions of a part of Shanghai, the decile of its largest
distance to any junction within 16 hops. It looks 16 hops far. Features are the 37 of the authors
(among them longitude and latitude, which are also the positions in drawings).

Data: `huangpu` of City-Networks (Liang et al., ICLR 2026), derived from OpenStreetMap (ODbL 1.0,
"© OpenStreetMap contributors" on maps); below HAARPOOL_DATA in city/huangpu.

Split: 10 / 10 / 80 % of the nodes at random, as the authors have it, five times.

What needs no graph: k nearest neighbours on the first two features reach about 40 %.
"""

from __future__ import annotations

import numpy as np

from paper.pooling.data.files import SPLITS, Dataset, both_directions, raw_file


def make(seed: int = 0) -> Dataset:
    """Read the network.

    Args:
        seed: Seed of the splits.
    """
    import torch

    x, y, pairs = (
        torch.load(raw_file(f"city/huangpu/{key}.pt"), weights_only=True).numpy()
        for key in ("x", "y", "edge_index")
    )
    size, tenth = len(y), len(y) // 10
    orders = [np.random.default_rng([seed, s]).permutation(size) for s in range(SPLITS)]
    place = np.stack([np.argsort(order) for order in orders], axis=1)  # of a node in each order
    return Dataset(
        {
            "edge_index": both_directions(pairs, size),
            "x": x,
            "y": y,
            "pos": x[:, :2],
            "train_mask": place < tenth,
            "val_mask": (place >= tenth) & (place < 2 * tenth),
            "test_mask": place >= 2 * tenth,
        }
    )
