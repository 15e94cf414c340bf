"""Speed, memory and exactness of the core, as ratios in one run; exit code 1 if a figure is missed.

    python benchmarks/core.py [--out results/core.json]

Chains: ratio 0.5 down to one node, clusters of random size. "ordered": members of a cluster stand
together; "shuffled": in random order, the worst case for memory. d = 64 columns of float32 unless
said otherwise. Times are the least of several rounds, in which the sizes take turns.
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
from figures import Figure, report, seconds, status

COLUMNS = 64
SIZES = [100_000 * 2**i for i in range(5)]


def halving_chain(size: int, *, ordered: bool = True, measure: str = "children") -> hp.Chain:
    rng = np.random.default_rng(size)
    parents = []
    while size > 1:
        clusters = size // 2
        ids = np.sort(np.r_[np.arange(clusters), rng.integers(0, clusters, size - clusters)])
        parents.append(ids if ordered else rng.permutation(ids))
        size = clusters
    return hp.Chain.from_parents(parents, measure=measure)


# ---------------------------------------------------------------------- exactness


def exactness() -> Iterator[Figure]:
    for measure in ("children", "mass"):
        chain = halving_chain(100_000, ordered=False, measure=measure)
        for dtype, most in ((np.float64, 1e-12), (np.float32, 1e-5)):
            U = hp.haar_basis(chain).astype(dtype).astype(np.longdouble)
            # Summed in extended precision, so that it is the basis that is measured, not the sum.
            gram = abs(U.T @ U - sparse.eye_array(U.shape[0], dtype=np.longdouble))
            name = f"orthonormality, {np.dtype(dtype)}, measure {measure}, 100,000 nodes"
            yield Figure(name, float(gram.max()), most=most, note="max |UᵀU - I|")
            x = torch.from_numpy(
                np.random.default_rng(0).standard_normal((100_000, 8)).astype(dtype)
            )
            back = hp.forward_transform(chain, hp.adjoint(chain, x))
            name = f"reconstruction, {np.dtype(dtype)}, measure {measure}, 100,000 nodes"
            error = float((back - x).abs().max() / x.abs().max())
            yield Figure(name, error, most=most, note="max |U Uᵀx - x| / max |x|")


# ---------------------------------------------------------------------- speed


def basis_speed() -> Iterator[Figure]:
    for ordered in (True, False):
        chain = halving_chain(100_000, ordered=ordered)
        coo = hp.haar_basis(chain).tocoo()
        convert = partial(sparse.coo_matrix, (coo.data, (coo.row, coo.col)), coo.shape)
        basis, conversion = [], []
        for _ in range(5):
            fresh = hp.Chain.from_parents(chain.parents)
            basis.append(seconds(partial(hp.haar_basis, fresh)))
            conversion.append(seconds(lambda convert=convert: convert().tocsr()))
        name = f"haar_basis, 100,000 nodes, {'ordered' if ordered else 'shuffled'}"
        note = f"times one coo_matrix(...).tocsr() of the same {coo.nnz:,} non-zeros"
        yield Figure(name, min(basis) / min(conversion), most=25, note=note)


def growth(ordered: bool) -> Iterator[Figure]:
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
        yield Figure(f"adjoint at {n:,} over {n // 2:,} nodes, {name}", two / one, 1.7, 2.4)
    ratio = best[-1] / min(copies[-1])
    yield Figure(
        f"adjoint of {SIZES[-1]:,} nodes over a copy, {name}", ratio, note="for information"
    )


# ---------------------------------------------------------------------- memory


def memory() -> Iterator[Figure]:
    """Peak of resident memory during `adjoint` above that before it, the result included."""
    n = SIZES[-1]
    whole = hp.Chain.from_parents([np.zeros(n, np.int64)])
    cases = [
        ("ordered", halving_chain(n), torch.float32),
        ("ordered, bfloat16", halving_chain(n), torch.bfloat16),
        ("shuffled", halving_chain(n, ordered=False), torch.float32),
        ("one cluster of all nodes", whole, torch.float32),
    ]
    for name, chain, dtype in cases:
        plan = hp.TransformPlan.from_chains([chain])
        x = torch.randn(n, COLUMNS).to(dtype)
        hp.adjoint(plan, x)
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = status("VmRSS")
        hp.adjoint(plan, x)
        ratio = (status("VmHWM") - before) / (x.nbytes)
        yield Figure(f"peak extra memory of adjoint over x, {n:,} nodes, {name}", ratio, most=4)


# ---------------------------------------------------------------------- report


def measured() -> Iterator[Figure]:
    yield from exactness()
    yield from basis_speed()
    if Path("/proc/self/clear_refs").exists():
        yield from memory()
    else:
        print("peak memory is read from /proc, which is not here: left out", file=sys.stderr)
    yield from growth(ordered=True)
    yield from growth(ordered=False)


if __name__ == "__main__":
    versions = {"cores": torch.get_num_threads(), "torch": torch.__version__}
    sys.exit(report(__doc__, measured(), "results/core.json", **versions))
