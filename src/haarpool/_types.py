"""Type aliases that several modules share."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

Order = Literal["index", "degree"]
Measure = Literal["children", "mass"]
Domain = Literal["haar", "vertex"]
Reduction = Literal["mean", "sum", "max", "min"]
