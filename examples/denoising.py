"""Denoise a signal on a graph: keep the Haar coefficients that stand out of the noise.

python examples/denoising.py
"""

import numpy as np
from scipy.spatial import KDTree

import haarpool as hp

rng = np.random.default_rng(0)
points = rng.random((4000, 2))
pairs = KDTree(points).query_pairs(0.03, output_type="ndarray")
n = len(points)
adjacency = np.zeros((n, n))
adjacency[pairs[:, 0], pairs[:, 1]] = adjacency[pairs[:, 1], pairs[:, 0]] = 1

# Three plateaus with sharp borders, the kind of signal for which wavelets are made.
radius = np.linalg.norm(points - 0.5, axis=1)
signal = np.where(radius < 0.2, 3.0, np.where(points.sum(1) > 1, 1.0, 0.0))
sigma = 1.0
noisy = signal + sigma * rng.standard_normal(n)


def snr(estimate: np.ndarray) -> float:
    """Signal to noise in decibels."""
    return 10 * np.log10(np.sum(signal**2) / np.sum((estimate - signal) ** 2))


# measure="mass" makes the first wavelet constant; universal threshold of Donoho and Johnstone.
chain = hp.build_chain(adjacency, method="matching", measure="mass")
coefficients = hp.adjoint(chain, noisy)
kept = hp.threshold(chain, coefficients, value=sigma * np.sqrt(2 * np.log(n)))
denoised = hp.forward_transform(chain, kept)

degree = adjacency.sum(1) + 1
smooth = (adjacency @ noisy + noisy) / degree  # for comparison: the mean over neighbours

print(f"{chain!r}")
print(f"{np.count_nonzero(kept)} of {n} coefficients kept")
print(f"noisy {snr(noisy):.1f} dB, neighbours' mean {snr(smooth):.1f} dB", end=", ")
print(f"Haar wavelets {snr(denoised):.1f} dB")
