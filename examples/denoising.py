"""Denoise a signal on a graph: keep the Haar coefficients that are larger than the noise.

python examples/denoising.py
"""

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

import haarpool as hp

rng = np.random.default_rng(0)
points = rng.random((4000, 2))
pairs = KDTree(points).query_pairs(0.03, output_type="ndarray")
n = len(points)
adjacency = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(n, n)).tocsr()
adjacency = adjacency + adjacency.T

# A piecewise constant signal; wavelets represent it by few large coefficients.
radius = np.linalg.norm(points - 0.5, axis=1)
signal = np.where(radius < 0.2, 3.0, np.where(points.sum(1) > 1, 1.0, 0.0))
sigma = 1.0
noisy = signal + sigma * rng.standard_normal(n)


def snr(estimate: np.ndarray) -> float:
    """Compute the ratio of signal to noise in decibels."""
    return 10 * np.log10(np.sum(signal**2) / np.sum((estimate - signal) ** 2))


def denoise(seed: int) -> np.ndarray:
    """Set coefficients below the universal threshold of Donoho and Johnstone to zero."""
    # With measure="mass" the first wavelet is constant.
    chain = hp.build_chain(adjacency, method="matching", measure="mass", seed=seed)
    coefficients = hp.adjoint(chain, noisy)
    kept = hp.threshold(chain, coefficients, value=sigma * np.sqrt(2 * np.log(n)))
    print(f"chain {seed}: {np.count_nonzero(kept)} of {n} coefficients kept")
    return hp.forward_transform(chain, kept)


# The borders of clusters are visible in each estimate; the mean over chains smooths them.
estimates = [denoise(seed) for seed in range(8)]
smooth = (adjacency @ noisy + noisy) / (adjacency.sum(1) + 1)
print(f"noisy {snr(noisy):.1f} dB, mean over neighbours {snr(smooth):.1f} dB")
print(f"Haar wavelets, one chain {snr(estimates[0]):.1f} dB", end=", ")
print(f"mean of 8 chains {snr(np.mean(estimates, axis=0)):.1f} dB")
