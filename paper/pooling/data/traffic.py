"""Traffic: the speed at missing sensors from the other sensors at the same time.

What is predicted: the speed (mph) at the sensors of Los Angeles' motorways that are missing in a
five-minute step; NaN elsewhere. About 20 % are missing: as blocks of neighbours, each grown from
a sensor in the graph, or at random. A sensor knows its speed (standardised by all sensors in the
training steps; 0 where missing), whether it is known, the time of day as sine and cosine, and its
own mean and deviation over the training steps.

Data: METR-LA (Jagadish et al., 2014; Li et al., ICLR 2018), one week of 207 sensors with the
adjacency matrix (closeness on the road) as T-GCN's authors publish them (MIT); below HAARPOOL_DATA
in metr-la. The matrix is directed; an edge has the larger one of both weights.

Split by time: the first 60 % of the steps for training, 20 % for validation, 20 % for test. The
missing sensors are drawn anew in training: `DRAWS` times for each of its steps, so that a network
sees each step with different ones; once for other steps. The five seeds differ in the draws: all
are signals of one file, and split s selects those of seed s. Blocks of the test part start at
sensors that are in no block of the training or validation part, so no block is the same.

What needs no graph network, test MAE (blocks / random): the mean of each sensor over the training
steps 7.6 / 7.4, the weighted mean of known neighbours 8.1 / 6.5, linear regression on all known
sensors by the covariance of the training steps 4.9 / 3.7. The last one knows each sensor by name;
of a network whose nodes share their weights, a node knows its mean and deviation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints
from haarpool.datasets.splits import Split
from paper.pooling.data.files import SPLITS, Dataset, raw_file

SHARE, DRAWS = 0.2, 5
BLOCK = 12, 20  # smallest and largest size of a block
GROUPS, GROUP = 4, 5  # groups of sensors that start blocks of a held-out part, and their size
DAY = 24 * 12  # steps

Flags = NDArray[np.bool_]


def make(blocks: bool = True, steps: int | None = None, seed: int = 0) -> Dataset:
    """Read speeds and hide some.

    Args:
        blocks: Whether missing sensors are blocks of neighbours; else they are random.
        steps: Number of steps to use; None for all.
        seed: Seed of what is missing.
    """
    speed = np.loadtxt(raw_file("metr-la/speed.csv"), delimiter=",", skiprows=1)[:steps]
    weights = np.loadtxt(raw_file("metr-la/adjacency.csv"), delimiter=",")
    weights = np.maximum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    ends = len(speed) * 6 // 10, len(speed) * 8 // 10
    step, missing, splits = [], [], []
    first = 0
    for s in range(SPLITS):
        rng = np.random.default_rng([seed, s])
        starts = first_parts(weights, rng)
        parts = []
        for number, steps_of_part in enumerate(np.split(np.arange(len(speed)), ends)):
            times = np.repeat(steps_of_part, 1 if number else DRAWS)
            allowed = starts <= number
            for _ in times:
                if blocks:
                    missing.append(draw_blocks(weights, starts == number, allowed, rng))
                else:
                    missing.append(rng.permutation(len(weights)) < round(SHARE * len(weights)))
            step.append(times)
            parts.append(np.arange(first, first + len(times)))
            first += len(times)
        splits.append(Split(*parts))
    return Dataset(arrays(speed, weights, np.concatenate(step), np.array(missing), ends[0]), splits)


def first_parts(weights: Floats, rng: np.random.Generator) -> Ints:
    """Return (N,) the first part, 0 to 2, that may have a sensor in its blocks.

    Blocks of a part start at its own sensors and grow over these and those of earlier parts. The
    sensors of parts 1 and 2 are small groups of neighbours, which leave few holes in the blocks of
    part 0.
    """
    part = np.zeros(len(weights), np.int64)
    for number in (1, 2) * GROUPS:
        free = part == 0
        part[grow(weights, rng.choice(np.flatnonzero(free)), GROUP, free, rng)] = number
    return part


def draw_blocks(weights: Floats, starts: Flags, allowed: Flags, rng: np.random.Generator) -> Flags:
    """Return (N,) the missing sensors: connected blocks, a share `SHARE` in all.

    Args:
        weights: (N, N) Adjacency matrix.
        starts: (N,) Sensors at which blocks may start.
        allowed: (N,) Sensors that may be in a block.
        rng: Random numbers.
    """
    missing, left = np.zeros(len(weights), bool), round(SHARE * len(weights))
    for start in rng.permutation(np.flatnonzero(starts)):
        if left and not missing[start]:
            size = min(left, int(rng.integers(*BLOCK, endpoint=True)))
            block = grow(weights, start, size, allowed & ~missing, rng)
            missing |= block
            left -= int(block.sum())
    return missing


def grow(weights: Floats, start: int, size: int, free: Flags, rng: np.random.Generator) -> Flags:
    """Return (N,) a connected block of up to `size` sensors around a start.

    The next sensor is the one with the strongest edges to the block, which leaves no holes; edges
    are weakened at random, so that blocks with the same start differ.
    """
    block, pull = np.zeros(len(weights), bool), weights * rng.uniform(0.5, 1, len(weights))
    block[start] = True
    for _ in range(size - 1):
        around = np.where(free & ~block, pull[block].sum(0), 0)
        if not around.any():
            break
        block[around.argmax()] = True
    return block


def arrays(
    speed: Floats, weights: Floats, step: Ints, missing: Flags, training: int
) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of one graph with signals.

    Args:
        speed: (steps, N) Speeds.
        weights: (N, N) Symmetric adjacency matrix.
        step: (S,) Step of each signal.
        missing: (S, N) Whether a sensor is missing.
        training: Number of the first steps, whose mean and deviation standardise.
    """
    scaled = (speed - speed[:training].mean()) / speed[:training].std()
    angle = np.broadcast_to(2 * np.pi * (step % DAY / DAY)[:, None], missing.shape)
    fixed = [scaled[:training].mean(0), scaled[:training].std(0)]
    x = np.stack(
        [
            np.where(missing, 0, scaled[step]),
            ~missing,
            np.sin(angle),
            np.cos(angle),
            *(np.broadcast_to(one, missing.shape) for one in fixed),
        ],
        axis=2,
    )
    edges = np.stack(np.nonzero(weights))
    return {
        "edge_index": edges,
        "edge_weight": weights[edges[0], edges[1]],
        "x": x.astype(np.float32),
        "y": np.where(missing, speed[step], np.nan).astype(np.float32),
    }
