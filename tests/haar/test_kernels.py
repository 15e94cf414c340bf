"""All kernels compute the same maps: those of `basis`, for any sizes and types."""

import multiprocessing
import sys
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from haarpool.chains.chain import Chain
from haarpool.haar import basis, operators
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.kernels import portable
from helpers.strategies import at_most, chains
from helpers.tolerances import close

MODULES = ["portable", "cpu"]
TYPES = [torch.float32, torch.float64]
each_type = pytest.mark.parametrize("dtype", TYPES, ids=str)


@pytest.fixture(params=MODULES, scope="module")
def kernels(request):
    return import_module(f"haarpool.haar.kernels.{request.param}")


@pytest.fixture
def threads():
    """`threads(n)` sets the number of threads until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def steps(chains, level=0, skip=False, single=False):
    return ChainTensors.from_chains(chains).steps(level, skip=skip, single=single)


def random(rows, columns, dtype=torch.float64, seed=0):
    x = np.random.default_rng(seed).standard_normal((rows, columns))
    return torch.from_numpy(x).to(dtype)


def chain_of(cluster_sizes, measure="children", seed=0):
    """A chain with clusters of these sizes, whose members are not neighbours."""
    rng = np.random.default_rng(seed)
    parents = rng.permutation(np.repeat(np.arange(len(cluster_sizes)), cluster_sizes))
    if measure == "children":
        return Chain.from_parents([parents])
    below = np.repeat(np.arange(len(parents)), rng.integers(1, 4, len(parents)))
    return Chain.from_parents([below, parents], measure=measure)


# ------------------------------------------------------------------ the same as the reference


def reference(chains, level, skip, single):
    """The matrix whose transpose is `analysis`, for all graphs together."""
    if not single:
        build = basis.compressive_basis if skip else basis.haar_basis
        return sparse.block_diag([build(chain, level) for chain in chains]).toarray()
    parts = [basis._coarse_vectors] if skip else [basis._coarse_vectors, basis._detail_vectors]
    matrices = [sparse.block_diag([part(chain, level) for chain in chains]) for part in parts]
    return sparse.hstack(matrices).toarray()


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("skip", [False, True])
@given(data=st.data())
def test_same_as_the_reference(kernels, skip, single, data):
    K = data.draw(st.integers(1, 3))
    batch = data.draw(st.lists(chains(num_levels=K), min_size=1, max_size=4))
    level = data.draw(st.integers(0, K if single or not skip else K - 1))
    matrix = reference(batch, level, skip, single)
    arguments = steps(batch, level, skip, single)
    for dtype in TYPES:
        x, c = (random(rows, 3, dtype) for rows in matrix.shape)
        assert close(kernels.analysis(x, arguments), matrix.T @ x.double().numpy(), dtype)
        assert close(kernels.synthesis(c, arguments), matrix @ c.double().numpy(), dtype)


SIZES = [*range(1, 10), *range(62, 70), 100, 127, 128, 129, 132, 200, 257]


@pytest.mark.parametrize(
    ("columns", "measure"), [(1, "children"), (3, "mass"), (64, "children"), (257, "mass")]
)
def test_sizes_of_clusters_and_columns(kernels, columns, measure):
    chain = chain_of(SIZES, measure)
    level = chain.num_levels - 1
    for skip, single in ((False, False), (True, False), (False, True), (True, True)):
        arguments = steps([chain, chain], level, skip, single)
        x = random(2 * sum(SIZES), columns, torch.float32)
        coefficients = portable.analysis(x.double(), arguments)
        c = coefficients.float()
        signal = portable.synthesis(c.double(), arguments)
        for dtype in TYPES:
            assert close(kernels.analysis(x.to(dtype), arguments), coefficients, dtype)
            assert close(kernels.synthesis(c.to(dtype), arguments), signal, dtype)


@each_type
def test_long_clusters_lose_no_digits(kernels, dtype):
    size = 100_000
    chain = Chain.from_parents([np.zeros(size, int)])
    x = (random(size, 2) * torch.tensor([0, 1]) + 1 / 3).to(dtype)
    exact = x.numpy().astype(np.longdouble)
    sums = exact[::-1].cumsum(0)[::-1]  # over this and all later rows
    later = np.arange(size, 1, -1)[:, None].astype(np.longdouble)
    details = np.sqrt((later - 1) / later) * (exact[:-1] - sums[1:] / (later - 1))
    coarse = sums[:1] / np.sqrt(np.longdouble(size))
    bound = {torch.float32: 2e-6, torch.float64: 5e-14}[dtype]
    c = kernels.analysis(x, steps(chain, single=True))
    assert np.abs(c[1:].numpy() - details).max() <= bound
    assert np.abs(c[:1].numpy() / coarse - 1).max() <= bound
    pooled = kernels.analysis(x, steps(chain, skip=True, single=True))
    assert np.abs(pooled.numpy() / coarse - 1).max() <= bound
    back = kernels.synthesis(c, steps(chain, single=True))
    assert (back - x).abs().max() <= 2 * bound


def test_infinite_numbers_stay_in_their_cluster(kernels):
    chain = chain_of([3, 70, 1, 4, 200, 2])
    parents = torch.tensor(chain.parents[0])
    for value in (np.inf, np.nan):
        for cluster in range(6):
            x = random(len(parents), 3)
            inside = parents == cluster
            expected = kernels.analysis(x, steps(chain, single=True))
            x[inside] = value
            c = kernels.analysis(x, steps(chain, single=True))
            changed = ~c.isfinite().all(1)
            assert changed.sum() == inside.sum()
            assert torch.equal(c[~changed], expected[~changed])
            pooled = kernels.analysis(x, steps(chain, skip=True, single=True))
            assert (~pooled.isfinite()).all(1).tolist() == [i == cluster for i in range(6)]
            back = kernels.synthesis(c, steps(chain, single=True))
            assert torch.equal(back.isfinite().all(1), ~inside)


# ------------------------------------------------------------------ lists of rows


def test_lists_of_rows(kernels):
    rng = np.random.default_rng(0)
    lengths = [0, *SIZES, 0, 0]
    x = random(50, 3)
    index = torch.from_numpy(rng.integers(0, 50, sum(lengths)))
    weights = random(len(index), 1)[:, 0]
    start = torch.from_numpy(np.cumsum(lengths) - lengths)
    for weight in (None, weights, weights.float()):
        factor = torch.ones(len(index)).double() if weight is None else weight.double()
        rows = x[index] * factor[:, None]
        sums = torch.stack([part.sum(0) for part in rows.split(lengths)])
        weight_of_x = None if weight is None else weight.to(x.dtype)
        for i, s in ((index, start), (index.int(), start.int()), (index, start.int())):
            weight_given = weight if kernels is not portable else weight_of_x
            assert close(kernels.gather_sum(x, i, s, weight_given), sums)
            assert close(kernels.gather_sum(x, i, None, weight_of_x), rows)


@each_type
def test_lists_without_rows(kernels, dtype):
    x, none = random(5, 3, dtype), torch.empty(0, dtype=torch.int32)
    four_lists = torch.zeros(4, dtype=torch.int32)
    assert torch.equal(
        kernels.gather_sum(x, none, four_lists, None), torch.zeros(4, 3, dtype=dtype)
    )
    assert kernels.gather_sum(x, none, None, None).shape == (0, 3)
    assert kernels.gather_sum(x, none, none, x[:0, 0]).shape == (0, 3)


# ------------------------------------------------------------------ threads and processes


def all_maps(kernels, arguments, x, rows):
    c = kernels.analysis(x, arguments)
    return c, kernels.synthesis(c, arguments), kernels.gather_sum(x, *rows)


@pytest.mark.parametrize("cluster_sizes", [[7, 1, 4] * 40, [3, 400, 5]], ids=["many", "one"])
def test_same_bits_for_any_number_of_threads(kernels, threads, cluster_sizes, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 1, raising=False)
    n = sum(cluster_sizes)
    chain = chain_of(cluster_sizes)
    start = torch.from_numpy(np.cumsum(cluster_sizes) - cluster_sizes).int()
    rows = torch.from_numpy(np.random.default_rng(0).permutation(n)).int(), start, torch.rand(n)
    for columns in (7, 64):
        x = random(n, columns, torch.float32)
        for skip in (False, True):
            results = []
            for number in (1, 2, 3, 3):
                threads(number)
                results.append(all_maps(kernels, steps(chain, 0, skip), x, rows))
            for others in zip(*results, strict=True):
                assert all(torch.equal(others[0], other) for other in others)


@at_most(40)
@given(
    st.lists(st.integers(0, 60), max_size=60),
    st.integers(1, 100),
    st.integers(2, 9),
    st.booleans(),
)
def test_pieces_cover_everything_once(sizes, columns, threads, lists_of_one):
    cpu = import_module("haarpool.haar.kernels.cpu")
    first = np.zeros(0, np.int32) if lists_of_one else (np.cumsum(sizes) - sizes).astype(np.int32)
    num_members = len(sizes) if lists_of_one else sum(sizes)
    covered = np.zeros((len(sizes), columns), int)
    for i, j, k, end in cpu._pieces(first, num_members, len(sizes), columns, threads):
        covered[i:j, k:end] += 1
    assert (covered == 1).all()


def _send_maps(pipe, *arguments):
    pipe.send_bytes(b"".join(result.numpy().tobytes() for result in all_maps(*arguments)))


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forked_process(threads, monkeypatch):
    """As in the workers of DataLoader: the threads of the parent do not exist in the child."""
    cpu = import_module("haarpool.haar.kernels.cpu")
    monkeypatch.setattr(cpu, "SMALL", 1)
    threads(2)
    chain, x = chain_of([4] * 100), random(400, 8)
    rows = torch.arange(400), None, None
    arguments = cpu, steps(chain), x, rows
    expected = b"".join(result.numpy().tobytes() for result in all_maps(*arguments))
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_send_maps, args=(there, *arguments))
        child.start()
        try:
            assert here.poll(60)
            assert here.recv_bytes() == expected
            child.join(60)
            assert child.exitcode == 0
        finally:
            child.kill()
            child.join()


# ------------------------------------------------------------------ without numba or its files


@pytest.fixture
def choose_again():
    operators._kernels.cache_clear()
    yield
    operators._kernels.cache_clear()


def test_without_numba(monkeypatch, choose_again):
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("cpu", "cpu_loops"):
        monkeypatch.delitem(sys.modules, f"haarpool.haar.kernels.{name}", raising=False)
        monkeypatch.delattr(f"haarpool.haar.kernels.{name}", raising=False)
    assert operators._kernels("cpu") is portable


def test_with_numba(choose_again):
    assert operators._kernels("cpu").__name__ == "haarpool.haar.kernels.cpu"


def test_compiled_loops_that_cannot_be_saved(monkeypatch):
    """numba finds no folder for a function without a file, and fails on a full disk."""
    cpu, loops = (import_module(f"haarpool.haar.kernels.{name}") for name in ("cpu", "cpu_loops"))
    assert loops._loop(eval("lambda x: x + 1"))(1) == 2

    calls = []

    def loop(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise OSError("No space left on device")

    cpu._call(loop, (1,), (2, 3, 4, 5))
    assert calls == [(1, 2, 3, 4, 5)] * 2
