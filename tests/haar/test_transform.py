"""Shapes, types, devices, gradients, many graphs at once: the fast transforms as software."""

import copy
import gc
import itertools
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import haarpool as hp
from haarpool.haar.signals import tensors_of
from helpers.strategies import chains, each_device, parent_vectors, signal
from helpers.tolerances import TOLERANCE, close

# Every transform with its reference matrix, and the levels (above j) of its rows going in and out.
# A new transform joins all tests by an entry in this table.
TRANSFORMS = {
    "adjoint": (hp.adjoint, lambda c, j: hp.haar_basis(c, j).T, 0, 0),
    "forward_transform": (hp.forward_transform, hp.haar_basis, 0, 0),
    "compress": (hp.compress, lambda c, j: hp.compressive_basis(c, j).T, 0, 1),
    "expand": (hp.expand, hp.compressive_basis, 1, 0),
}
each_transform = pytest.mark.parametrize("name", TRANSFORMS)

FIGURE = hp.Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]])
UNEVEN = hp.Chain.from_parents([[1, 0, 1, 1, 2, 1, 1], [0, 0, 1]], measure="mass")
SINGLE = hp.Chain.from_parents([[0], [0]])


def one_by_one(function, chain_list, x, level, rows):
    sizes = [chain.sizes[level + rows] for chain in chain_list]
    pieces = np.split(x, np.cumsum(sizes)[:-1])
    return np.concatenate(
        [function(c, piece, level) for c, piece in zip(chain_list, pieces, strict=True)]
    )


def test_every_transform_is_tested():
    module = hp.adjoint.__module__
    public = [name for name in hp.__all__ if name != "__version__"]
    assert set(TRANSFORMS) == {n for n in public if getattr(hp, n).__module__ == module}


@each_transform
@given(chains(), st.integers(0, 100))
def test_equals_the_reference(name, chain, number):
    function, matrix, rows_in, _ = TRANSFORMS[name]
    j = number % chain.num_levels
    x = signal(chain, j + rows_in)
    assert close(function(chain, x, j), matrix(chain, j) @ x)


@given(chains())
def test_equals_the_reference_on_the_top_level(chain):
    K = chain.num_levels
    x, U = signal(chain, K), hp.haar_basis(chain, K)
    assert close(hp.adjoint(chain, x, K), U.T @ x)
    assert close(hp.forward_transform(chain, x, K), U @ x)


@each_transform
@each_device
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (0,), (2, 3), (2, 1, 3)])
def test_shapes_types_and_devices(name, device, dtype, shape):
    function, matrix, rows_in, rows_out = TRANSFORMS[name]
    for chain in (FIGURE, UNEVEN, SINGLE):
        n, m = chain.sizes[rows_in], chain.sizes[rows_out]
        full = (*shape[:-1], n, *shape[-1:])
        x = torch.randn(full, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        result = function(chain, x.to(device, dtype))
        assert result.dtype == dtype
        assert result.device.type == device
        assert result.shape == (*shape[:-1], m, *shape[-1:])
        # The reference is applied to what the transform really received.
        given_x = x.to(dtype).double()
        rows = given_x if shape else given_x[:, None]
        expected = torch.from_numpy(matrix(chain, 0).toarray()) @ rows
        assert close(result, expected if shape else expected[:, 0], dtype)


@each_transform
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(name, dtype):
    function, _, rows_in, _ = TRANSFORMS[name]
    x = torch.randn(FIGURE.sizes[rows_in], 50).to(dtype)
    assert torch.equal(function(FIGURE, x), function(FIGURE, x.float()).to(dtype))


@each_transform
def test_numpy_in_numpy_out(name):
    function, matrix, rows_in, _ = TRANSFORMS[name]
    x = signal(FIGURE, rows_in)
    expected = matrix(FIGURE, 0) @ x
    read_only = x.copy()
    read_only.setflags(write=False)
    backwards = x[::-1].copy()[::-1]  # a view with a negative stride
    big_endian = x.astype(">f8")
    for given_x in (x, read_only, backwards, big_endian, np.asfortranarray(x)):
        result = function(FIGURE, given_x)
        assert isinstance(result, np.ndarray)
        assert close(result, expected)
    assert function(FIGURE, x.astype(np.float32)).dtype == np.float32
    assert function(FIGURE, x.astype(np.float16)).dtype == np.float16


@each_transform
def test_complex_signals(name):
    function, matrix, rows_in, _ = TRANSFORMS[name]
    x = signal(FIGURE, rows_in) + 1j * signal(FIGURE, rows_in, seed=1)
    result = function(FIGURE, x)
    expected = matrix(FIGURE, 0) @ x
    assert close(result.real, expected.real)
    assert close(result.imag, expected.imag)


@each_transform
def test_the_input_is_left_alone(name):
    function, _, rows_in, _ = TRANSFORMS[name]
    x = torch.randn(FIGURE.sizes[rows_in], 3)
    before = x.clone()
    function(FIGURE, x)
    assert torch.equal(x, before)


# ------------------------------------------------------------------ many graphs


@each_transform
@given(st.data(), st.integers(1, 3), st.integers(0, 100))
def test_batch_is_one_by_one(name, data, num_levels, number):
    function, _, rows_in, _ = TRANSFORMS[name]
    many = data.draw(st.lists(chains(num_levels=num_levels, max_nodes=10), min_size=1, max_size=5))
    j = number % num_levels
    plan = hp.TransformPlan.from_chains(many)
    x = np.random.default_rng(0).standard_normal((plan.sizes[j + rows_in], 2))
    assert close(function(plan, x, j), one_by_one(function, many, x, j, rows_in))


@each_device
def test_plan_moves_between_devices(device):
    plan = hp.TransformPlan.from_chains([FIGURE, UNEVEN.from_parents(UNEVEN.parents)])
    moved = plan.to(device)
    assert moved.device.type == device
    x = torch.randn(15, 2, dtype=torch.float64)
    assert close(hp.adjoint(moved, x.to(device)), hp.adjoint(plan, x))
    assert repr(plan) == "TransformPlan(2 graphs: 15 -> 6 -> 3, cpu)"
    assert (plan.num_graphs, plan.num_levels, plan.sizes) == (2, 2, (15, 6, 3))


def test_the_plan_of_a_chain_is_made_once_and_dies_with_it():
    chain = hp.Chain.from_parents([[0, 0, 1]])
    x = torch.randn(3)
    hp.adjoint(chain, x)
    plan = tensors_of(chain, x.device)
    hp.forward_transform(chain, x)
    assert tensors_of(chain, x.device) is plan
    assert tensors_of(copy.deepcopy(chain), x.device) is plan  # equal chains share it
    dead = [weakref.ref(one) for one in (chain, plan)]
    del chain, plan
    gc.collect()
    assert [one() for one in dead] == [None, None]


# ------------------------------------------------------------------ gradients


@each_transform
@each_device
@pytest.mark.parametrize("shape", [(), (2,), pytest.param((2, 2), marks=pytest.mark.slow)])
def test_gradients_of_any_order(name, device, shape):
    function, _, rows_in, _ = TRANSFORMS[name]
    plan = hp.TransformPlan.from_chains([FIGURE, SINGLE, UNEVEN], device)
    n = plan.sizes[rows_in]
    x = torch.randn(
        (*shape[:-1], n, *shape[-1:]), dtype=torch.float64, device=device, requires_grad=True
    )
    assert torch.autograd.gradcheck(lambda v: function(plan, v), x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda v: function(plan, v), x)
    # A linear map has no second derivative; squared it has one.
    assert torch.autograd.gradgradcheck(lambda v: function(plan, v).square().sum(), x)


@each_transform
@given(chains(), st.integers(0, 100))
def test_backward_is_the_exact_transpose(name, chain, number):
    function, matrix, rows_in, rows_out = TRANSFORMS[name]
    j = number % chain.num_levels
    x = torch.from_numpy(signal(chain, j + rows_in)).requires_grad_()
    grad = torch.from_numpy(signal(chain, j + rows_out, seed=1))
    function(chain, x, j).backward(grad)
    assert close(x.grad, matrix(chain, j).T @ grad.numpy())


@each_transform
def test_function_transforms(name):
    """jacrev, jacfwd and vmap: the Jacobian is the matrix."""
    function, matrix, rows_in, _ = TRANSFORMS[name]
    x = torch.randn(FIGURE.sizes[rows_in], dtype=torch.float64)
    expected = matrix(FIGURE, 0).toarray()
    assert close(torch.func.jacrev(lambda v: function(FIGURE, v))(x), expected)
    assert close(torch.func.jacfwd(lambda v: function(FIGURE, v))(x), expected)
    many = torch.randn(FIGURE.sizes[rows_in], 5, 2, dtype=torch.float64)
    mapped = torch.func.vmap(lambda v: function(FIGURE, v), in_dims=1)(many)
    assert close(mapped[3], expected @ many[:, 3].numpy())


@pytest.mark.slow
@pytest.mark.parametrize("fullgraph", [False, True])
def test_chains_used_first_in_compiled_code_work(fullgraph):
    x, given = torch.randn(3, 2), [hp.Chain.from_parents([p]) for p in ([0, 0, 1], [0, 1, 1])]
    holder = {}
    compiled = torch.compile(
        lambda v: hp.adjoint(holder["chain"], v), fullgraph=fullgraph, backend="eager"
    )
    for chain in (*given, given[0]):
        holder["chain"] = chain
        torch.testing.assert_close(compiled(x), hp.adjoint(chain, x))


# ------------------------------------------------------------------ long inputs


@each_device
@pytest.mark.parametrize("size", [100_000])
def test_no_cancellation_on_long_inputs(device, size):
    """One cluster of all nodes, on top of a large constant, in float32."""
    chain = hp.Chain.from_parents([np.zeros(size, int)])
    x = torch.from_numpy(1e4 + signal(chain)).to(device, torch.float32)
    exact = hp.adjoint(chain, x.double())
    got = hp.adjoint(chain, x)
    ulp = float(x.abs().max()) * 2**-23
    assert (got - exact)[1:].abs().max() < 8 * ulp  # a running sum is off by hundreds
    assert close(got, exact, torch.float32)
    assert close(hp.forward_transform(chain, got), x, torch.float32)


@each_device
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("measure", ["children", "mass"])
def test_reconstruction_at_100_000_nodes(device, dtype, measure):
    n, parents, rng = 100_000, [], np.random.default_rng(0)
    while n > 1:
        clusters = n // 2
        ids = np.r_[np.arange(clusters), rng.integers(0, clusters, n - clusters)]
        parents.append(rng.permutation(ids))
        n = clusters
    chain = hp.Chain.from_parents(parents, measure=measure)
    x = torch.from_numpy(signal(chain)).to(device, dtype)
    c = hp.adjoint(chain, x)
    assert close(hp.forward_transform(chain, c), x, dtype)
    assert close(c.double().square().sum(0), x.double().square().sum(0), dtype)


# ------------------------------------------------------------------ coefficients


@given(chains(), st.integers(0, 100))
def test_split_has_the_parts_of_pywt_and_join_inverts(chain, number):
    j = number % (chain.num_levels + 1)
    c = hp.adjoint(chain, signal(chain, j), j)
    parts = hp.split(chain, c, j)
    sizes = chain.sizes
    expected = [
        sizes[-1],
        *(sizes[i] - sizes[i + 1] for i in range(chain.num_levels - 1, j - 1, -1)),
    ]
    assert [len(part) for part in parts] == expected
    assert np.array_equal(np.concatenate(parts), c)
    assert np.array_equal(hp.join(chain, parts, j), c)
    assert not any(np.shares_memory(part, c) for part in parts)


@given(st.data(), st.integers(1, 3), st.integers(0, 100))
def test_split_and_join_of_many_graphs(data, num_levels, number):
    many = data.draw(st.lists(chains(num_levels=num_levels, max_nodes=8), min_size=2, max_size=4))
    j = number % (num_levels + 1)
    plan = hp.TransformPlan.from_chains(many)
    c = np.random.default_rng(0).standard_normal((plan.sizes[j], 2))
    pieces = np.split(c, np.cumsum([chain.sizes[j] for chain in many])[:-1])
    single = [hp.split(chain, piece, j) for chain, piece in zip(many, pieces, strict=True)]
    parts = hp.split(plan, c, j)
    assert all(
        np.array_equal(part, np.concatenate(graph_by_graph))
        for part, graph_by_graph in zip(parts, zip(*single, strict=True), strict=True)
    )
    assert np.array_equal(hp.join(plan, parts, j), c)


def test_dropping_all_details_of_a_level_is_compress_and_expand():
    x = signal(FIGURE)
    parts = hp.split(FIGURE, hp.adjoint(FIGURE, x))
    parts[-1] = np.zeros_like(parts[-1])
    smooth = hp.forward_transform(FIGURE, hp.join(FIGURE, parts))
    assert close(smooth, hp.expand(FIGURE, hp.compress(FIGURE, x)))
    means = np.array([x[FIGURE.parents[0] == p].mean(0) for p in range(3)])
    assert close(smooth, means[FIGURE.parents[0]])


@given(chains(), st.integers(0, 24), st.booleans())
def test_threshold_is_the_best_approximation(chain, number, as_share):
    """Of n terms, none is better; the squared error is the energy of what was dropped."""
    n = chain.sizes[0]
    number = min(number, n)
    x = signal(chain)
    c = hp.adjoint(chain, x)
    keep = number / n if as_share and number else number
    kept = hp.threshold(chain, c, keep)
    assert ((kept != 0).sum(0) == number).all()
    assert np.array_equal(kept[kept != 0], c[kept != 0])
    dropped = np.sort(np.abs(c), axis=0)[: n - number]
    error = ((x - hp.forward_transform(chain, kept)) ** 2).sum(0)
    assert close(error, (dropped**2).sum(0))


def test_threshold_of_many_graphs_counts_in_each():
    plan = hp.TransformPlan.from_chains(
        [FIGURE, UNEVEN.from_parents(UNEVEN.parents), SINGLE.from_parents([[0], [0]])]
    )
    c = np.random.default_rng(0).standard_normal((2, 16, 3))
    kept = hp.threshold(plan, c, 2)
    cuts = [0, 8, 15, 16]
    for a, b in itertools.pairwise(cuts):
        assert ((kept[:, a:b] != 0).sum(1) == min(2, b - a)).all()
        assert np.abs(kept[:, a:b]).sum() == pytest.approx(
            np.sort(np.abs(c[:, a:b]), axis=1)[:, -2:].sum()
        )
    half = hp.threshold(plan, c, 0.5)
    assert ((half != 0).sum(1) == 4 + 4 + 1).all()


def test_threshold_by_value_hard_and_soft():
    c = np.array([5.0, -1.0, 2.0, -3.0, 0.0, 0.5, 1.5, -1.5])
    hard = hp.threshold(FIGURE, c, value=1.5)
    assert hard.tolist() == [5, 0, 2, -3, 0, 0, 1.5, -1.5]
    soft = hp.threshold(FIGURE, c, value=1.5, mode="soft")
    assert close(soft, np.array([3.5, 0, 0.5, -1.5, 0, 0, 0, 0]))
    assert close(hp.threshold(FIGURE, c, value=0.0), c)
    # The largest magnitude that is dropped is what soft thresholding moves by.
    soft = hp.threshold(FIGURE, c, 2, mode="soft")
    assert close(soft, np.array([3.0, 0, 0, -1.0, 0, 0, 0, 0]))
    assert close(hp.threshold(FIGURE, c, 8, mode="soft"), c)
    # 0.07 · 100 is a little more than 7 in floating point, and yet 7 are kept.
    hundred = hp.Chain.from_parents([np.zeros(100, int)])
    assert np.count_nonzero(hp.threshold(hundred, np.arange(1.0, 101.0), 0.07)) == 7
    # Of equal magnitudes the coarser is kept.
    assert hp.threshold(FIGURE, np.ones(8), 3).tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_threshold_has_a_gradient():
    c = torch.tensor([5.0, -1.0, 2.0, -3.0, 0.2, 0.5, 1.5, -1.4], dtype=torch.float64)
    c.requires_grad_()
    by_number, by_value = {"keep": 3}, {"value": 1.2}
    for options in (by_number, by_value, by_number | {"mode": "soft"}, by_value | {"mode": "soft"}):
        assert torch.autograd.gradcheck(lambda v, o=options: hp.threshold(FIGURE, v, **o), c)


def test_denoising_works():
    """Soft thresholding at the universal threshold takes most noise off a piecewise signal."""
    rng = np.random.default_rng(0)
    n, parents = 1024, []
    while n > 1:
        parents.append(np.arange(n) // 2)
        n //= 2
    chain = hp.Chain.from_parents(parents)
    clean = np.repeat(rng.standard_normal(8), 128)
    noisy = clean + 0.3 * rng.standard_normal(1024)
    value = 0.3 * np.sqrt(2 * np.log(1024))
    c = hp.threshold(chain, hp.adjoint(chain, noisy), value=value)
    restored = hp.forward_transform(chain, c)
    assert np.mean((restored - clean) ** 2) < 0.1 * np.mean((noisy - clean) ** 2)


@given(st.data())
def test_threshold_of_nothing_but_zeros(data):
    chain = hp.Chain.from_parents(data.draw(parent_vectors(5, 2)))
    zeros = np.zeros((5, 2))
    for mode in ("hard", "soft"):
        assert np.array_equal(hp.threshold(chain, zeros, 2, mode=mode), zeros)


def test_the_first_call_may_be_in_inference_mode():
    chain = hp.Chain.from_parents([[0, 0, 1], [0, 0]])
    with torch.inference_mode():
        hp.adjoint(chain, torch.randn(3, 2))
    compiled = torch.compile(
        lambda x: hp.adjoint(chain, x).square().sum(), fullgraph=True, backend="aot_eager"
    )
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    compiled(x).backward()
    assert close(x.grad, 2 * x.detach())
