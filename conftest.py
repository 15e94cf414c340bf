"""Threads of all tests; examples in docstrings may use `np`, as every page on numpy does."""

import os
from typing import Any

import pytest

# One thread each for the workers of pytest-xdist and for their children. Set before the first
# import of numpy or torch, which read it.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"


@pytest.fixture(autouse=True, scope="session")
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    import numpy as np

    doctest_namespace["np"] = np
