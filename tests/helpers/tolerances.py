"""The one table of tolerances. They do not grow; a looser one carries its reason."""

import numpy as np
import torch

# Largest error, relative to the largest entry of what is compared.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.bfloat16: 2e-2,  # 8 bits of mantissa, rounded once on the way in and once on the way out
}

LOOSER = {
    "eigenvectors": 1e-9,  # of float64: a rounding error is divided by the gap of eigenvalues
    "eigenvectors of other units": 1e-6,  # the same, where weights span 400 orders of magnitude
    "energy of a constant": 1e-6,  # of float32: the difference of two equal squares
    "published matrices": 1e-5,  # their entries are float32 up to 400
    "batch norm": 1e-2,  # divides by sqrt(variance + 1e-5)
    "deep bfloat16": 5e-2,  # each of a dozen layers rounds to 8 bits
    "six digits": 1e-5,  # of a number in a CSV file
    "other batches": 1e-4,  # float32 sums in another order, in six digits
    "training": 1e-4,  # float32 sums in another order, then steps of Adam
    "training compiled": 1e-3,  # the same, with fused operations
    "training in bfloat16": 2e-2,
    "drawing": 1e-7,  # positions of matplotlib
}


def close(actual, expected, dtype=torch.float64) -> bool:
    """Equal up to the tolerance of `dtype`; shapes must agree."""
    actual, expected = (
        np.asarray(a.detach().cpu().to(torch.float64) if isinstance(a, torch.Tensor) else a)
        for a in (actual, expected)
    )
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    scale = max(1.0, np.abs(expected).max(initial=0))
    return bool(np.abs(actual - expected).max(initial=0) <= TOLERANCE[dtype] * scale)
