"""Measure speed, memory and exactness of the core.

    python benchmarks/core.py [--out results/core.json]

Results are ratios of times measured in the same run; the exit code is 1 if one is outside its
limits. Chains have ratio 0.5 down to one node and clusters of random size. "ordered": members of a
cluster are next to each other; "shuffled": they are in random order, the worst case for memory.
Signals have 64 columns of float32 unless the name says otherwise. Times are the minimum of several
rounds; each round runs all sizes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from scipy import sparse

import haarpool as hp
from common import Result, memory_status, report, seconds

COLUMNS = 64
SIZES = [100_000 * 2**i for i in range(5)]


def halving_chain(size: int, *, ordered: bool = True, measure: str = "children") -> hp.Chain:
    """Build a chain that halves the number of nodes at each step."""
    rng = np.random.default_rng(size)
    parents = []
    while size > 1:
        clusters = size // 2
        ids = np.sort(np.r_[np.arange(clusters), rng.integers(0, clusters, size - clusters)])
        parents.append(ids if ordered else rng.permutation(ids))
        size = clusters
    return hp.Chain.from_parents(parents, measure=measure)


# ---------------------------------------------------------------------- exactness


def exactness() -> Iterator[Result]:
    """Measure how orthonormal the basis is and how well a signal is reconstructed."""
    for measure in ("children", "mass"):
        chain = halving_chain(100_000, ordered=False, measure=measure)
        for dtype, limit in ((np.float64, 1e-12), (np.float32, 1e-5)):
            U = hp.haar_basis(chain).astype(dtype).astype(np.longdouble)
            # Extended precision, so that rounding in this product does not count.
            gram = abs(U.T @ U - sparse.eye_array(U.shape[0], dtype=np.longdouble))
            name = f"orthonormality, {np.dtype(dtype)}, measure {measure}, 100,000 nodes"
            yield Result(name, float(gram.max()), at_most=limit, note="max |UᵀU - I|")
            x = torch.from_numpy(
                np.random.default_rng(0).standard_normal((100_000, 8)).astype(dtype)
            )
            back = hp.forward_transform(chain, hp.adjoint(chain, x))
            name = f"reconstruction, {np.dtype(dtype)}, measure {measure}, 100,000 nodes"
            error = float((back - x).abs().max() / x.abs().max())
            yield Result(name, error, at_most=limit, note="max |U Uᵀx - x| / max |x|")


# ---------------------------------------------------------------------- speed


def basis_speed() -> Iterator[Result]:
    """Compare `haar_basis` with the conversion of its non-zeros from COO to CSR."""
    for ordered in (True, False):
        chain = halving_chain(100_000, ordered=ordered)
        coo = hp.haar_basis(chain).tocoo()
        convert = partial(sparse.coo_matrix, (coo.data, (coo.row, coo.col)), coo.shape)
        basis_times, conversion_times = [], []
        for _ in range(5):
            fresh = hp.Chain.from_parents(chain.parents)
            basis_times.append(seconds(partial(hp.haar_basis, fresh)))
            conversion_times.append(seconds(lambda convert=convert: convert().tocsr()))
        name = f"haar_basis, 100,000 nodes, {'ordered' if ordered else 'shuffled'}"
        note = f"times one coo_matrix(...).tocsr() of the same {coo.nnz:,} non-zeros"
        yield Result(name, min(basis_times) / min(conversion_times), at_most=25, note=note)


def growth(ordered: bool) -> Iterator[Result]:
    """Check that the time of `adjoint` doubles with the number of nodes."""
    name = "ordered" if ordered else "shuffled"
    plans = [hp.TransformPlan.from_chains([halving_chain(n, ordered=ordered)]) for n in SIZES]
    signals = [torch.randn(n, COLUMNS) for n in SIZES]
    times, copies = [[] for _ in SIZES], [[] for _ in SIZES]
    for _ in range(15):
        for i, (plan, x) in enumerate(zip(plans, signals, strict=True)):
            times[i].append(seconds(partial(hp.adjoint, plan, x)))
            copies[i].append(seconds(x.clone))
    best = [min(t) for t in times]
    for n, (one, two) in zip(SIZES[1:], pairwise(best), strict=True):
        yield Result(f"adjoint at {n:,} over {n // 2:,} nodes, {name}", two / one, 1.7, 2.4)
    ratio = best[-1] / min(copies[-1])
    yield Result(
        f"adjoint of {SIZES[-1]:,} nodes over a copy, {name}", ratio, note="for information"
    )


# ---------------------------------------------------------------------- memory


def memory() -> Iterator[Result]:
    """Measure the extra memory that `adjoint` needs, its result included."""
    n = SIZES[-1]
    one_cluster = hp.Chain.from_parents([np.zeros(n, np.int64)])
    cases = [
        ("ordered", halving_chain(n), torch.float32),
        ("ordered, bfloat16", halving_chain(n), torch.bfloat16),
        ("shuffled", halving_chain(n, ordered=False), torch.float32),
        ("one cluster of all nodes", one_cluster, torch.float32),
    ]
    for name, chain, dtype in cases:
        plan = hp.TransformPlan.from_chains([chain])
        x = torch.randn(n, COLUMNS).to(dtype)
        hp.adjoint(plan, x)
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak
        before = memory_status("VmRSS")
        hp.adjoint(plan, x)
        ratio = (memory_status("VmHWM") - before) / (x.nbytes)
        yield Result(f"peak extra memory of adjoint over x, {n:,} nodes, {name}", ratio, at_most=4)


# ---------------------------------------------------------------------- report


def measure() -> Iterator[Result]:
    yield from exactness()
    yield from basis_speed()
    if Path("/proc/self/clear_refs").exists():
        yield from memory()
    else:
        print("skipped: peak memory (needs /proc)", file=sys.stderr)
    yield from growth(ordered=True)
    yield from growth(ordered=False)


if __name__ == "__main__":
    versions = {"cores": torch.get_num_threads(), "torch": torch.__version__}
    sys.exit(report(__doc__, measure(), "results/core.json", **versions))
