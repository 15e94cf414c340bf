"""The linear maps of `haarpool.haar.operators`: values, transposes, derivatives, torch.library."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import sparse
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck

import haarpool as hp
from haarpool.haar import operators
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.operators import Rows, analysis, gather_sum, sum_graphs, sum_members, synthesis
from helpers.layers import D, P, Phi, U, built, lists_of_chains, whole
from helpers.strategies import at_most, each_device
from helpers.tolerances import TOLERANCE, close

# ------------------------------------------------------------------ maps and their matrices


def with_graphs_on_top(chain):
    """The chain with one more step, which merges all: then the maps of level K have matrices."""
    return hp.Chain.from_parents(
        (*chain.parents, np.zeros(chain.sizes[-1], int)),
        adjacency=chain.adjacency(0, self_loops=True),
        order=chain.order,
        measure=chain.measure,
    )


def members(chain, j):
    return np.eye(chain.sizes[j + 1])[chain.parents[j]]


def nodes(chain, j):
    return np.ones((chain.sizes[j], 1))


def coarse_and_details(many, j):
    return torch.cat([whole(P, many, j), whole(D, many, j)], 1)


# The transposed matrix of each map, by the bases of the reference: (many, level) -> tensor.
MATRICES = {
    "neither": partial(whole, U),
    "skip": partial(whole, Phi),
    "single": coarse_and_details,
    "skip-single": partial(whole, P),
    "sum_members": partial(whole, members),
    "sum_graphs": partial(whole, nodes),
}
CHAIN_MAPS = {
    **{
        f"{function.__name__}-{options}": partial(
            function, skip="skip" in options, single="single" in options
        )
        for function in (analysis, synthesis)
        for options in ("neither", "skip", "single", "skip-single")
    },
    "sum_members": sum_members,
    "sum_graphs": sum_graphs,
}


def map_and_matrix(name, many, level, device="cpu"):
    """The map of a signal alone, and its matrix."""
    matrix = MATRICES[name.partition("-")[2] or name](list(map(with_graphs_on_top, many)), level)
    chain = ChainTensors.from_chains(many, device)
    matrix = matrix if name.startswith("synthesis") else matrix.T
    return lambda x: CHAIN_MAPS[name](chain, x, level), matrix


def rows_of(matrix, *, weights=True, dtype=torch.int32):
    """A sparse matrix as lists of rows."""
    matrix = sparse.csr_array(matrix)
    index, start = (torch.from_numpy(a).to(dtype) for a in (matrix.indices, matrix.indptr[:-1]))
    return Rows(index, start, torch.from_numpy(matrix.data) if weights else None)


RANDOM = np.random.default_rng(0)
SPARSE = RANDOM.standard_normal((9, 7)) * (RANDOM.random((9, 7)) < 0.3)
SPARSE[[2, 8]] = SPARSE[:, 4] = 0  # empty lists inside and at the end
SELECTED = [3, 0, 0, 2, 6, 3]


def gather_and_matrix(name, device="cpu"):
    matrix, transposed = SPARSE, rows_of(SPARSE.T)
    if name == "gather_sum-weights":
        rows = rows_of(matrix, dtype=torch.int64)
    elif name == "gather_sum-ones":
        matrix = (SPARSE != 0).astype(float)
        rows, transposed = (rows_of(m, weights=False) for m in (matrix, matrix.T))
    else:  # each list is one row, which several lists may share
        matrix = np.eye(7)[SELECTED]
        rows, transposed = Rows(torch.tensor(SELECTED)), rows_of(matrix.T)
    parts = (None if part is None else part.to(device) for part in (*rows, *transposed))
    rows, transposed = (Rows(*(next(parts) for _ in range(3))) for _ in range(2))
    return lambda x: gather_sum(x, rows, transposed), torch.from_numpy(matrix)


# Graphs of one and of several nodes on the top level, both orders and both measures.
MANY = [
    *built([1, 7, 2]),
    *built([6], top=None, measure="mass"),
    *built([5], order="index"),
]
FIXED = {name: partial(map_and_matrix, name, MANY, 0) for name in CHAIN_MAPS} | {
    name: partial(gather_and_matrix, name)
    for name in ("gather_sum-weights", "gather_sum-ones", "gather_sum-rows")
}
each_map = pytest.mark.parametrize("name", FIXED)


def fixed(name, device="cpu", shape=(3,), dtype=torch.float64):
    """A map, its matrix and a signal (*shape[:-1], N, shape[-1])."""
    apply, matrix = FIXED[name](device=device)
    generator = torch.Generator().manual_seed(0)
    full = (*shape[:-1], matrix.shape[1], *shape[-1:])
    return apply, matrix, torch.randn(full, generator=generator, dtype=dtype).to(device)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("name", CHAIN_MAPS)
@at_most(30)
@given(many=lists_of_chains())
def test_equals_the_matrix_and_the_gradient_its_transpose(name, many):
    for level in range(many[0].num_levels + 1):
        apply, matrix = map_and_matrix(name, many, level)
        rng = np.random.default_rng(level)
        x = torch.from_numpy(rng.standard_normal((matrix.shape[1], 2))).requires_grad_()
        grad = torch.from_numpy(rng.standard_normal((matrix.shape[0], 2)))
        result = apply(x)
        result.backward(grad)
        assert close(result, matrix @ x.detach())
        assert close(x.grad, matrix.T @ grad)
        assert close((result * grad).sum(), (x * x.grad).sum())


@each_map
@each_device
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("columns", [1, 3, 64, 257])
def test_columns_and_types(name, device, dtype, columns):
    apply, matrix, x = fixed(name, device, (columns,), dtype)
    result = apply(x)
    assert (result.dtype, result.device) == (dtype, x.device)
    assert close(result, matrix @ x.cpu().double(), dtype)


@each_map
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_of_16_bits_are_rounded_once(name, dtype):
    apply, _, x = fixed(name, shape=(50,), dtype=dtype)
    x.requires_grad_()
    result = apply(x)
    assert torch.equal(result, apply(x.float()).to(dtype))
    wide = x.detach().float().requires_grad_()
    grad = torch.randn_like(result)
    assert torch.equal(
        torch.autograd.grad(result, x, grad)[0],
        torch.autograd.grad(apply(wide), wide, grad.float())[0].to(dtype),
    )


@each_map
@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3), (0, 3), (2, 0)])
def test_leading_dimensions(name, shape):
    apply, matrix, x = fixed(name, shape=shape)
    assert close(apply(x), matrix @ x)


@each_map
def test_complex_signals(name):
    apply, matrix, x = fixed(name, shape=(2, 3), dtype=torch.complex128)
    for values in (x, x.conj(), x.mT.contiguous().mT, x[:, :, :1].conj()):
        expected = matrix.to(x.dtype) @ values
        assert close(torch.view_as_real(apply(values)), torch.view_as_real(expected))
    x = x[0].requires_grad_()
    assert gradcheck(apply, x)


@each_map
def test_any_memory_layout(name):
    apply, matrix, x = fixed(name, shape=(6,))
    strided = torch.stack([x, -x], -1)[..., 0]
    column = x[:, :1].expand(-1, 4)
    imaginary = torch.complex(x, x).conj().imag  # its sign is changed lazily
    for values in (x.T.contiguous().T, strided, column, imaginary, imaginary[:, :1]):
        assert close(apply(values), matrix @ values)


@each_map
@each_device
def test_no_columns_and_no_rows(name, device):
    apply, matrix, x = fixed(name, device, (0,))
    x.requires_grad_()
    assert apply(x).shape == (matrix.shape[0], 0)
    assert torch.autograd.grad(apply(x).sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("name", CHAIN_MAPS)
@each_device
def test_no_graphs(name, device):
    full = ChainTensors.from_chains(MANY, device)
    empty = ChainTensors({key: value[..., :0] for key, value in full.tensors.items()})
    assert (empty.num_graphs, empty.sizes) == (0, (0, 0, 0))
    x = torch.zeros(0, 3, device=device, requires_grad=True)
    result = CHAIN_MAPS[name](empty, x, 0)
    assert result.shape == (0, 3)
    assert torch.autograd.grad(result.sum(), x)[0].shape == (0, 3)


@each_device
def test_no_edges(device):
    x = torch.randn(4, 2, device=device, requires_grad=True)
    none = Rows(torch.zeros(0, dtype=torch.int64, device=device))
    of_three, of_four = (
        none._replace(start=torch.zeros(n, dtype=torch.int64, device=device)) for n in (3, 4)
    )
    weight = torch.zeros(0, device=device)
    for rows in (of_three, of_three._replace(weight=weight)):
        result = gather_sum(x, rows, of_four)
        assert torch.equal(result, torch.zeros(3, 2, device=device))
        assert not torch.autograd.grad(result.sum(), x)[0].any()


@each_map
@each_device
def test_infinite_values_stay_where_the_matrix_has_entries(name, device):
    apply, matrix, x = fixed(name, device)
    reached = matrix.abs() > 1e-12
    for row in range(len(x)):
        for value in (torch.inf, torch.nan):
            bad = x.clone()
            bad[row, 1] = value
            result = apply(bad).cpu()
            # A detail of a cluster may read all its members, also with a weight of zero, but no
            # other cluster and no other column.
            assert result[:, [0, 2]].isfinite().all()
            assert not result[reached[:, row], 1].isfinite().any()
            if "single" in name or "sum" in name:
                near = (reached.double() @ reached.T.double())[reached[:, row]].sum(0) > 0
                assert result[~near, 1].isfinite().all()


def test_infinite_values_stay_in_their_graph():
    plan = ChainTensors.from_chains(MANY)
    for level in range(3):
        graph = torch.repeat_interleave(torch.arange(len(MANY)), plan.num_nodes(level))
        for function in (analysis, synthesis):
            for row in range(plan.sizes[level]):
                x = torch.randn(plan.sizes[level], 2)
                x[row] = torch.nan
                result = function(plan, x, level)
                assert result[graph != graph[row]].isfinite().all()


@each_map
@each_device
def test_the_same_bits_each_time(name, device):
    apply, _, x = fixed(name, device, (33,), torch.float32)
    results = [apply(x) for _ in range(5)]
    assert all(torch.equal(results[0], other) for other in results)


@each_device
def test_the_same_bits_on_large_signals(device):
    """Large enough for several threads; clusters of one node and of thousands."""
    rng = np.random.default_rng(0)
    sizes = [30_000, 3_000, 7, 1]
    parents = [
        rng.permutation(np.r_[np.arange(n), rng.integers(0, n, m - n) // 2])
        for m, n in itertools.pairwise(sizes)
    ]
    plan = ChainTensors.from_chains([hp.Chain.from_parents(parents)], device)
    x = torch.randn(30_000, 16, generator=torch.Generator().manual_seed(0)).to(device)
    threads = torch.get_num_threads()
    try:
        for function in (analysis, synthesis, sum_members):
            results = []
            for number in (1, 2, 3, 2):
                torch.set_num_threads(number)
                results.append(function(plan, x, 0))
            assert all(torch.equal(results[0], other) for other in results)
    finally:
        torch.set_num_threads(threads)


# ------------------------------------------------------------------ derivatives


@each_map
@each_device
def test_derivatives_of_any_order(name, device):
    apply, _, x = fixed(name, device, (2,))
    x.requires_grad_()
    assert gradcheck(apply, x, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(apply, x, check_fwd_over_rev=True, check_rev_over_rev=True)
    # A linear map has no second derivative; squared it has one.
    assert gradgradcheck(lambda v: apply(v).square().sum(), x, check_fwd_over_rev=True)


@each_map
def test_forward_and_reverse_derivatives(name):
    apply, matrix, x = fixed(name, shape=(1,))
    x = x[:, 0]

    def column(v):
        return apply(v[:, None])[:, 0]

    def energy(v):
        return column(v).square().sum()

    gram = matrix.T @ matrix
    assert close(torch.func.grad(energy)(x), 2 * gram @ x)
    tangent = torch.randn_like(x)
    value, derivative = torch.func.jvp(column, (x,), (tangent,))
    assert close(value, matrix @ x)
    assert close(derivative, matrix @ tangent)
    value, pull = torch.func.vjp(column, x)
    assert close(pull(value)[0], gram @ x)
    assert close(torch.func.jacfwd(column)(x), matrix)
    assert close(torch.func.jacrev(column)(x), matrix)
    assert close(torch.func.hessian(energy)(x), 2 * gram)
    assert close(torch.func.jacrev(torch.func.jacrev(energy))(x), 2 * gram)
    # The derivative of a derivative in forward mode, whose tangent is easy to lose.
    twice = torch.func.jvp(torch.func.grad(energy), (x,), (tangent,))[1]
    assert close(twice, 2 * gram @ tangent)
    third = torch.func.jvp(lambda v: column(v).pow(3).sum(), (x,), (tangent,))[1]
    assert close(third, 3 * (column(x).square() * column(tangent)).sum())


@each_map
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_vmap(name, dim):
    apply, matrix, x = fixed(name, shape=(4, 3))
    vmap, expected = torch.func.vmap, matrix @ x
    assert close(vmap(apply, in_dims=dim)(x.movedim(0, dim)), expected)
    assert close(vmap(apply, in_dims=dim, out_dims=2)(x.movedim(0, dim)).movedim(2, 0), expected)
    nested = vmap(vmap(apply, in_dims=dim), in_dims=1)
    pair = torch.stack([x.movedim(0, dim), 2 * x.movedim(0, dim)], 1)
    assert close(nested(pair), torch.stack([expected, 2 * expected]))

    def energy(v):
        return apply(v).square().sum()

    gradient = vmap(torch.func.grad(energy), in_dims=dim)(x.movedim(0, dim))
    assert close(gradient, 2 * matrix.T @ expected)
    tangent = torch.ones_like(x)
    derivative = vmap(lambda v, t: torch.func.jvp(apply, (v,), (t,))[1])(x, tangent)
    assert close(derivative, matrix @ tangent)
    inside = torch.func.grad(lambda v: vmap(apply)(v).square().sum())(x)
    assert close(inside, 2 * matrix.T @ expected)


# ------------------------------------------------------------------ torch.library


LIBRARY = {
    **{
        f"{name}-{skip}-{single}": (name, skip, single)
        for name in ("analysis", "synthesis")
        for skip in (False, True)
        for single in (False, True)
    },
    "gather_sum": ("gather_sum",),
}


def library_arguments(name, level=0):
    if name == "gather_sum":
        return (torch.randn(7, 3, dtype=torch.float64), *rows_of(SPARSE), *rows_of(SPARSE.T))
    _, skip, single = LIBRARY[name]
    arguments = ChainTensors.from_chains(MANY).steps(level, skip=skip, single=single)
    rows = operators._num_rows("analysis", arguments) if "synthesis" in name else None
    plan = ChainTensors.from_chains(MANY)
    return (torch.randn(rows or plan.sizes[level], 3), *arguments[:4])


@pytest.mark.slow
# torch 2.15 reads it and means to hide the warning, which fails where warnings are errors.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("name", LIBRARY)
def test_operators_of_torch(name):
    """By the checks of torch: schema, autograd, shapes without values, dynamic shapes."""
    arguments = library_arguments(name)
    x = arguments[0].requires_grad_()
    torch.library.opcheck(getattr(torch.ops.haarpool, LIBRARY[name][0]), (x, *arguments[1:]))


@pytest.mark.parametrize("name", LIBRARY)
def test_operators_of_torch_give_what_eager_mode_gives(name):
    x, *arguments = library_arguments(name)
    operator = getattr(torch.ops.haarpool, LIBRARY[name][0])
    x.requires_grad_()
    eager, library = (
        operators._linear(LIBRARY[name][0], x, tuple(arguments)),
        operator(x, *arguments),
    )
    assert torch.equal(eager, library)
    grad = torch.randn_like(eager)
    gradients = [torch.autograd.grad(y, x, grad)[0] for y in (eager, library)]
    assert torch.equal(*gradients)
    many = torch.stack([x.detach(), 2 * x.detach()], 1)
    mapped = torch.func.vmap(lambda v: operator(v, *arguments), in_dims=1)(many)
    assert close(mapped, torch.stack([eager, 2 * eager]), x.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAIN_MAPS)
def test_compiled_once_for_all_batches(name):
    torch.compiler.reset()
    counter = CompileCounterWithBackend("aot_eager")

    def apply(x, tensors):
        return CHAIN_MAPS[name](ChainTensors(tensors), x, 0).square()

    compiled = torch.compile(apply, fullgraph=True, dynamic=True, backend=counter)
    for many in (MANY, MANY[1:], MANY * 3):
        plan = ChainTensors.from_chains(many)
        rows = map_and_matrix(name, many, 0)[1].shape[1]
        x = torch.randn(rows, 3, dtype=torch.float64, requires_grad=True)
        results = [f(x, plan.tensors) for f in (apply, compiled)]
        assert close(results[1], results[0])
        gradients = [torch.autograd.grad(y.sum(), x)[0] for y in results]
        assert close(*gradients)
    assert counter.frame_count == 1
    torch.compiler.reset()


@pytest.mark.slow
def test_forward_mode_in_compiled_code_is_an_error():
    """Operators of torch.library have no rule for it: torch would take the tangent for zero."""
    torch.compiler.reset()
    plan = ChainTensors.from_chains(MANY)
    x = torch.randn(plan.sizes[0], 2)

    def tangent(x):
        return torch.func.jvp(lambda v: analysis(plan, v, 0), (x,), (x,))[1]

    assert close(tangent(x), analysis(plan, x, 0), torch.float32)
    with pytest.raises(Exception, match="HaarPoolError"):
        torch.compile(tangent, fullgraph=True, backend="aot_eager")(x)
    torch.compiler.reset()
