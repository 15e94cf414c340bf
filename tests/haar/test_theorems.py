"""The theorems of the paper, and what its errata leave of them, on random chains."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

import haarpool as hp
from helpers.strategies import chains, parent_vectors, signal
from helpers.tolerances import close

levels = st.integers(0, 10**6)  # taken modulo what the chain has


def any_level(chain, number, highest=None):
    return number % ((chain.num_levels if highest is None else highest) + 1)


def below_top(chain, number):
    return any_level(chain, number, chain.num_levels - 1)


# ------------------------------------------------------------------ the basis


@given(chains(), levels)
def test_basis_is_orthonormal(chain, number):
    U = hp.haar_basis(chain, any_level(chain, number)).toarray()
    assert close(U.T @ U, np.eye(len(U)))


@given(chains(), levels)
def test_compressive_basis_is_the_first_columns(chain, number):
    j = below_top(chain, number)
    U, Phi = hp.haar_basis(chain, j).toarray(), hp.compressive_basis(chain, j).toarray()
    assert Phi.shape == chain.sizes[j : j + 2]
    assert close(Phi, U[:, : chain.sizes[j + 1]])


@given(chains(measures=["children"]), levels)
def test_coarse_columns_are_extended_from_the_level_above(chain, number):
    """Step 1 of the construction: φ_ℓ(v) = φ_ℓ^cg(parent of v) / sqrt(size of its cluster)."""
    j = below_top(chain, number)
    parent = chain.parents[j]
    above = hp.haar_basis(chain, j + 1).toarray()
    extended = above[parent] / np.sqrt(np.bincount(parent))[parent, None]
    assert close(hp.compressive_basis(chain, j).toarray(), extended)


@given(st.integers(1, 30))
def test_equations_2_and_3_on_one_cluster(n):
    chain = hp.Chain.from_parents([np.zeros(n, int)])
    expected = np.zeros((n, n))
    expected[:, 0] = 1 / np.sqrt(n)
    for ell in range(2, n + 1):  # the paper counts from 1
        chi = np.eye(n)
        mean = chi[:, ell - 1 :].sum(axis=1) / (n - ell + 1)
        expected[:, ell - 1] = np.sqrt((n - ell + 1) / (n - ell + 2)) * (chi[:, ell - 2] - mean)
    assert close(hp.haar_basis(chain).toarray(), expected)


@given(chains(measures=["mass"]))
def test_mass_first_vector_is_constant_and_the_others_have_mean_zero(chain):
    U = hp.haar_basis(chain).toarray()
    assert close(U[:, 0], np.full(len(U), 1 / np.sqrt(len(U))))
    assert close(U[:, 1:].sum(axis=0), np.zeros(len(U) - 1))


@given(chains(measures=["mass"]), st.floats(-5, 5))
def test_mass_constant_signal_has_one_coefficient(chain, value):
    n = chain.sizes[0]
    c = hp.adjoint(chain, np.full(n, value))
    assert close(c, np.array([value * np.sqrt(n), *np.zeros(n - 1)]))


@given(st.data())
def test_mass_is_children_on_one_step(data):
    parents = data.draw(parent_vectors(data.draw(st.integers(1, 20)), 1))
    bases = [
        hp.haar_basis(hp.Chain.from_parents(parents, measure=measure)).toarray()[
            :, max(parents[0]) + 1 :
        ]
        for measure in ("children", "mass")
    ]
    assert close(*bases)  # details; the top level may weigh its clusters by mass


def test_figures_1_and_2_written_out():
    """The 8 -> 3 -> 1 example: clusters {0, 1, 2}, {3, 4, 5}, {6, 7}."""
    chain = hp.Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]])
    a, b = 1 / 3, 1 / np.sqrt(6)  # 1/sqrt(3) spread over three members, over two
    c, d = np.sqrt(2) / 3, -1 / np.sqrt(18)  # sqrt(2/3) and -sqrt(1/6) over three members
    e = -1 / np.sqrt(12)  # -sqrt(1/6) over two members
    f, g = 1 / np.sqrt(6), 1 / 2  # 1/sqrt(2) over three members, over two
    h, i, s = np.sqrt(2 / 3), -1 / np.sqrt(6), 1 / np.sqrt(2)
    U0 = [
        [a, c, 0, h, 0, 0, 0, 0],
        [a, c, 0, i, s, 0, 0, 0],
        [a, c, 0, i, -s, 0, 0, 0],
        [a, d, f, 0, 0, h, 0, 0],
        [a, d, f, 0, 0, i, s, 0],
        [a, d, f, 0, 0, i, -s, 0],
        [b, e, -g, 0, 0, 0, 0, s],
        [b, e, -g, 0, 0, 0, 0, -s],
    ]
    t = 1 / np.sqrt(3)
    U1 = [[t, h, 0], [t, i, s], [t, i, -s]]
    assert close(hp.haar_basis(chain, 0).toarray(), np.array(U0))
    assert close(hp.haar_basis(chain, 1).toarray(), np.array(U1))
    assert close(hp.haar_basis(chain, 2).toarray(), np.ones((1, 1)))
    assert close(hp.compressive_basis(chain, 0).toarray(), np.array(U0)[:, :3])
    assert close(hp.compressive_basis(chain, 1).toarray(), np.array(U1)[:, :1])
    x = np.arange(1.0, 9.0)
    pooled = hp.compress(chain, x, 0)
    assert close(pooled, np.array(U0)[:, :3].T @ x)
    # The second pooling starts from the coefficients, as in the paper's figure.
    assert close(hp.compress(chain, pooled, 1), np.array([pooled.sum() / np.sqrt(3)]))


# ------------------------------------------------------------------ the transforms


@given(chains(), levels)
def test_parseval(chain, number):
    j = any_level(chain, number)
    x = signal(chain, j)
    assert close((hp.adjoint(chain, x, j) ** 2).sum(0), (x**2).sum(0))


@given(chains(), levels)
def test_equation_6(chain, number):
    """Energy of the pooled and of all coefficients, by clusters."""
    j = below_top(chain, number)
    x, parent, m = signal(chain, j, 1)[:, 0], chain.parents[j], chain.measures(j)
    sums = np.bincount(parent, weights=np.sqrt(m) * x)
    pooled = (sums**2 / np.bincount(parent, weights=m)).sum()
    if chain.measure == "children":  # then it is the printed formula
        assert close(pooled, (np.bincount(parent, weights=x) ** 2 / np.bincount(parent)).sum())
    assert close((hp.compress(chain, x, j) ** 2).sum(), pooled)
    everything = np.bincount(parent, weights=x**2).sum()
    assert close((hp.adjoint(chain, x, j) ** 2).sum(), everything)


@given(chains(), levels)
def test_adjointness(chain, number):
    j = any_level(chain, number)
    x, c = signal(chain, j, seed=1), signal(chain, j, seed=2)
    assert close((hp.adjoint(chain, x, j) * c).sum(), (x * hp.forward_transform(chain, c, j)).sum())
    if j < chain.num_levels:
        z = signal(chain, j + 1, seed=3)
        assert close((hp.compress(chain, x, j) * z).sum(), (x * hp.expand(chain, z, j)).sum())


@given(chains(), levels)
def test_proposition_1_reconstruction(chain, number):
    j = any_level(chain, number)
    x = signal(chain, j)
    assert close(hp.forward_transform(chain, hp.adjoint(chain, x, j), j), x)
    assert close(hp.adjoint(chain, hp.forward_transform(chain, x, j), j), x)


@given(chains(), levels)
def test_truncation(chain, number):
    j = below_top(chain, number)
    x = signal(chain, j)
    assert close(hp.compress(chain, x, j), hp.adjoint(chain, x, j)[: chain.sizes[j + 1]])


@given(chains(), levels)
def test_pooling_is_the_adjoint_of_the_level_above(chain, number):
    """Φ_jᵀ x = U_{j+1}ᵀ (P_jᵀ x)."""
    j = below_top(chain, number)
    x, parent, m = signal(chain, j, 1)[:, 0], chain.parents[j], chain.measures(j)
    sums = np.bincount(parent, weights=np.sqrt(m) * x) / np.sqrt(np.bincount(parent, weights=m))
    assert close(hp.compress(chain, x, j), hp.adjoint(chain, sums, j + 1))


@given(chains())
def test_theorem_1_for_every_layer(chain):
    for j in range(chain.num_levels):
        for x in (signal(chain, j), signal(chain, j, 1)[:, 0]):
            assert close(hp.algorithm1(chain, x, j), hp.compressive_basis(chain, j).T @ x)
            assert close(hp.algorithm1(chain, x, j), hp.compress(chain, x, j))


def test_erratum_1_theorem_1_fails_as_printed_above_the_first_layer():
    """With the weights of the whole chain on the base level, as printed, only j = 0 is right."""
    chain = hp.Chain.from_parents([[0, 0, 1, 1, 1], [0, 0], [0]])

    def as_printed(j):
        x = signal(chain, j, 1)[:, 0]
        children = [np.ones(5), *(np.bincount(p) for p in chain.parents)]
        S = np.bincount(chain.parents[j], weights=x / np.sqrt(children[j]))
        U = hp.haar_basis(chain, j + 1)
        return U.T @ (S / np.sqrt(children[j + 1])), hp.compress(chain, x, j)

    assert close(*as_printed(0))
    assert not close(*as_printed(1))


@given(chains())
def test_one_pooling_to_one_node_is_the_scaled_sum(chain):
    flat = hp.Chain.from_parents([np.zeros(chain.sizes[0], int)], measure=chain.measure)
    x = signal(flat)
    assert close(hp.compress(flat, x), x.sum(0, keepdims=True) / np.sqrt(len(x)))


# ------------------------------------------------------------------ locality and sparsity


@given(chains(), levels)
def test_what_holds_of_locality(chain, number):
    j = any_level(chain, number)
    result = hp.locality(chain, j)
    U = hp.haar_basis(chain, j).toarray()
    counted = [len(np.unique(column.round(9))) for column in U.T]
    assert result.distinct.tolist() == counted
    if j < chain.num_levels:
        if chain.measure == "children":
            assert result.details <= 3
            assert result.coarse <= chain.sizes[j + 1]
        assert result.coarse == max(counted[: chain.sizes[j + 1]])
        assert result.details == max(counted[chain.sizes[j + 1] :], default=0)


def test_erratum_6_locality_is_not_bounded_by_a_constant():
    """A filtration (at least two children everywhere) with ever more values in one column."""
    values = []
    for K in (3, 5, 7):
        parents = []
        for size in 3 ** np.arange(K, 0, -1):  # clusters of two and of four, in turn
            quarters = size // 3
            ids = np.repeat(np.arange(quarters), np.where(np.arange(quarters) % 2, 4, 2))
            parents.append(np.concatenate([ids, np.zeros(size - len(ids), int)]))
        chain = hp.Chain.from_parents(parents)
        assert chain.is_filtration
        values.append(hp.locality(chain).coarse)
    assert values[0] < values[1] < values[2]
    assert values[2] > 3


@given(chains(), levels)
def test_sparsity_counts_without_forming(chain, number):
    j = below_top(chain, number)
    U, Phi = hp.haar_basis(chain, j), hp.compressive_basis(chain, j)
    result = hp.sparsity(chain, j)
    assert result.nonzeros == U.nnz == np.count_nonzero(U.toarray())
    assert result.compressive_nonzeros == Phi.nnz
    assert result.share == pytest.approx(U.nnz / chain.sizes[j] ** 2)
    assert result.compressive_share == pytest.approx(Phi.nnz / (Phi.shape[0] * Phi.shape[1]))


def test_a_compressive_basis_costs_no_details():
    """One cluster of all nodes: U_0 would be dense, Φ_0 is one column."""
    Phi = hp.compressive_basis(hp.Chain.from_parents([np.zeros(100_000, int)]))
    assert Phi.nnz == 100_000
    assert np.allclose(Phi.data, 1 / np.sqrt(100_000))


def test_locality_tells_close_values_apart():
    """Clusters of 1000 and 1001 nodes: the two values of the first vector differ by 1e-5."""
    chain = hp.Chain.from_parents([np.repeat([0, 1], [1000, 1001]), [0, 0]])
    assert hp.locality(chain).distinct[0] == 2


def test_a_basis_of_100_000_nodes_takes_seconds_and_no_dense_matrix():
    n, parents = 100_000, []
    while n > 1:
        parents.append(np.arange(n) // 2)
        n = (n + 1) // 2
    chain = hp.Chain.from_parents(parents)
    U = hp.haar_basis(chain)
    assert isinstance(U, sparse.csr_array)
    assert hp.sparsity(chain).share == U.nnz / 1e10 < 2e-4
    x = signal(chain)
    assert close(U.T @ x, hp.adjoint(chain, x))


# ------------------------------------------------------------------ renumbering


@given(chains(orders=["degree"]), levels, st.integers(0, 2**32 - 1))
def test_relabelled_nodes_and_clusters_have_the_same_coefficients(chain, number, seed):
    """With the order by degree: nothing depends on ids where no two degrees are equal."""
    rng = np.random.default_rng(seed)
    n = chain.sizes[0]
    weights = rng.uniform(1, 2, (n, n))
    graph = weights + weights.T  # no two degrees equal, but always those of a level of two nodes
    assume(2 not in chain.sizes)
    chain = hp.Chain.from_parents(
        chain.parents, adjacency=graph, order="degree", measure=chain.measure
    )
    perms = [rng.permutation(size) for size in chain.sizes]  # new id -> old id
    news = [np.argsort(p) for p in perms]  # old id -> new id
    renamed = hp.Chain.from_parents(
        [news[j + 1][p[perms[j]]] for j, p in enumerate(chain.parents)],
        adjacency=graph[perms[0]][:, perms[0]],
        order="degree",
        measure=chain.measure,
    )
    j = any_level(chain, number)
    x = signal(chain, j)
    assert close(hp.adjoint(renamed, x[perms[j]], j), hp.adjoint(chain, x, j))


@given(chains(orders=["index"]), levels, st.integers(0, 2**32 - 1))
def test_relabelled_nodes_keep_pooled_values_and_detail_energies(chain, number, seed):
    """With the order by index: single details change, pooling and energies do not."""
    j = below_top(chain, number)
    perm = np.random.default_rng(seed).permutation(chain.sizes[j])
    parents = [p.copy() for p in chain.parents[j:]]
    chain = hp.Chain.from_parents(parents)
    renamed = hp.Chain.from_parents([parents[0][perm], *parents[1:]])
    x = signal(chain)
    before, after = hp.adjoint(chain, x), hp.adjoint(renamed, x[perm])
    assert close(before[: chain.sizes[1]], after[: chain.sizes[1]])
    ends = np.cumsum(np.bincount(parents[0]) - 1)
    for details in zip(
        np.split(before[chain.sizes[1] :], ends),
        np.split(after[chain.sizes[1] :], ends),
        strict=True,
    ):
        assert close(*((d**2).sum(0) for d in details))
    k = np.bincount(parents[0])
    sums = np.array([[np.bincount(parents[0], col)] for col in x.T])[:, 0].T
    squares = np.array([[np.bincount(parents[0], col)] for col in (x**2).T])[:, 0].T
    energy = [(d**2).sum(0) for d in np.split(before[chain.sizes[1] :], ends)[:-1]]
    assert close(np.array(energy), squares - sums**2 / k[:, None])
