"""Examples in docstrings may use `np`, as every page on numpy does."""

from typing import Any

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["np"] = np
