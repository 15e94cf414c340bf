"""Colour connectivity: are all red nodes of a road graph one connected piece?"""

from __future__ import annotations

import os
from importlib.util import find_spec
from io import BytesIO

import numpy as np
from scipy import sparse
from scipy.io import loadmat

from haarpool._types import Floats

MISSING_EDGE = 348, 354


def minnesota() -> tuple[sparse.csr_array, Floats]:
    spec = find_spec("pygsp")
    path = os.path.join(os.path.dirname(spec.origin), "data", "pointclouds", "minnesota.mat")
    content = loadmat(BytesIO(spec.loader.get_data(path)))
    adjacency = sparse.lil_array(content["A"] != 0)
    for u, v in (MISSING_EDGE, MISSING_EDGE[::-1]):
        adjacency[u, v] = True
    return sparse.csr_array(adjacency), content["xy"]


def walk(indptr, indices, starts, choices):
    size = len(indptr) - 1
    red = np.zeros(size, np.bool_)
    at = starts.copy()
    number = 0
    for step in range(len(choices)):
        walker = step % 2
        node = at[walker]
        if not red[node]:
            red[node] = True
            number += 1
            if number == size // 2:
                return red
        degree = indptr[node + 1] - indptr[node]
        at[walker] = indices[indptr[node] + choices[step] % degree]
    return red
