"""Poisson's equation on random meshes: -Δu = f in the unit square, u = 0 on its boundary.

What is predicted: the solution u (times `SCALE`, so that its deviation is about 1) at each node of
a mesh, from f at each node: a random smooth field, and noise. A node also knows its area (the
lumped mass, times `AREA`) and whether it is on the boundary. Edge weights are the entries of the
stiffness matrix, 1/2 Σ cot of the angles opposite to an edge. The solution is that of linear
finite elements. All of u depends on all of f.

Data: generated here, nothing is read. 600 Delaunay meshes of 600 to 1,000 random nodes, and 60
meshes with four times as many.

Split: 480 / 60 / 60 of the 600 meshes at random, five times; the 60 large ones are also in the test
part, to be scored separately: they have more than 2,000 nodes.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve
from scipy.spatial import Delaunay

from haarpool._types import Floats, Ints
from haarpool.datasets.splits import Split
from paper.pooling.data.files import Arrays, Dataset, both_directions, random_splits

SIZES, LARGER = (600, 1000), 4
WAVES, FREQUENCY, NOISE = 16, 0.75, 0.3  # of f; frequencies are normal, in periods per side
SCALE, AREA = 50.0, 800.0
SMALLEST = 1e-3  # edge weight: in a Delaunay mesh, those inside are >= 0, on the boundary any


def make(number: int = 600, large: int = 60, seed: int = 0) -> Dataset:
    """Make meshes and solve the equation.

    Args:
        number: Number of meshes; a tenth each is for validation and test.
        large: Number of large meshes, which are the last ones.
        seed: Seed of meshes, fields and splits.
    """
    graphs = []
    for g in range(number + large):
        rng = np.random.default_rng([seed, g])
        size = rng.integers(*SIZES, endpoint=True) * (LARGER if g >= number else 1)
        graphs.append(problem(*random_mesh(int(size), rng), rng))
    extra = number + np.arange(large)
    parts = random_splits(number, number // 10, seed)
    splits = [Split(one.train, one.validation, np.append(one.test, extra)) for one in parts]
    return Dataset(graphs, splits)


def random_mesh(size: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return (size, 2) points, of which those on the boundary are the first, and (T, 3) triangles.

    Points on the boundary are evenly spaced. Those inside are uniform, and then each moves to the
    mean of its neighbours, so that hardly any triangle is nearly flat.
    """
    side = round(size**0.5)
    t = np.arange(side) / side
    zero, one = np.zeros(side), np.ones(side)
    border = np.array([[*t, *one, *(1 - t), *zero], [*zero, *t, *one, *(1 - t)]]).T
    inside = rng.uniform(0.5 / side, 1 - 0.5 / side, (size - len(border), 2))
    points = np.concatenate([border, inside])
    u, v = triangle_edges(Delaunay(points).simplices.astype(np.int64), size)
    neighbours = sparse.csr_array((np.ones(len(u)), (u, v)), (size, size))
    points[len(border) :] = (neighbours @ points / np.bincount(u)[:, None])[len(border) :]
    return points, Delaunay(points).simplices.astype(np.int64)


def triangle_edges(triangles: Ints, size: int) -> Ints:
    """Return (2, E) the sides of triangles in both directions."""
    return both_directions(triangles[:, [0, 1, 2, 1, 2, 0]].T.reshape(2, -1), size)


def problem(points: Floats, triangles: Ints, rng: np.random.Generator) -> Arrays:
    """Draw a field f on a mesh, solve the equation, and return the arrays of the graph."""
    wave = rng.normal(0, 2 * np.pi * FREQUENCY, (2, WAVES))
    smooth = np.cos(points @ wave + rng.uniform(0, 2 * np.pi, WAVES)).sum(1) * (2 / WAVES) ** 0.5
    f = smooth + NOISE * rng.normal(size=len(points))
    stiffness, mass = matrices(points, triangles)
    border = ((points == 0) | (points == 1)).any(1)
    edges = triangle_edges(triangles, len(points))
    weights = -stiffness[edges[0], edges[1]]
    area = mass.sum(axis=1)
    return {
        "edge_index": edges.astype(np.int32),
        "edge_weight": np.maximum(weights, SMALLEST).astype(np.float32),
        "x": np.stack([f, AREA * area, border], 1).astype(np.float32),
        "y": (SCALE * solve(stiffness, mass @ f, border)).astype(np.float32)[:, None],
        "pos": points.astype(np.float32),
    }


def matrices(points: Floats, triangles: Ints) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the stiffness and the mass matrix of linear elements."""
    corner = points[triangles]  # (T, 3, 2)
    side = np.roll(corner, -2, 1) - np.roll(corner, -1, 1)  # opposite to each corner
    area = np.abs(side[:, 0, 0] * side[:, 1, 1] - side[:, 0, 1] * side[:, 1, 0]) / 2
    kept = area > 1e-14  # points on a straight boundary may form a triangle without area
    side, area, triangles = side[kept], area[kept], triangles[kept]
    at = np.repeat(triangles, 3, 1).ravel(), np.tile(triangles, 3).ravel()
    values = (side @ side.transpose(0, 2, 1)) / (4 * area[:, None, None])
    masses = area[:, None, None] / 12 * (np.ones((3, 3)) + np.eye(3))
    shape = (len(points), len(points))
    return tuple(sparse.coo_array((one.ravel(), at), shape).tocsr() for one in (values, masses))


def solve(stiffness: sparse.csr_array, load: Floats, border: Ints) -> Floats:
    """Return u (N,) with stiffness @ u = load at the nodes inside, and 0 on the boundary."""
    inside = np.flatnonzero(~border)
    u = np.zeros(len(load))
    u[inside] = spsolve(stiffness[inside][:, inside].tocsc(), load[inside])
    return u
