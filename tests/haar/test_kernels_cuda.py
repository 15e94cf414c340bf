"""The kernels in Triton. Without a GPU they run in Triton's interpreter, in a process of its own.

Triton reads TRITON_INTERPRET when it is imported, which may have happened in this process already.
"""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from haarpool.chains.chain import Chain
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.kernels import portable
from helpers.tolerances import close

pytest.importorskip("triton")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
MODES = list(itertools.product([False, True], repeat=2))
# The interpreter takes milliseconds per operation on a tile, so small inputs must do.
TILES = {
    "graph_elements": 16, "graph_columns": 4, "few": 2, "lane_elements": 16, "lane_columns": 4,
    "unroll": 2, "long": 4, "chunk": 8,
}  # fmt: skip
ONLY_LARGE, ONLY_SMALL = 0, 10**6
each_regime = pytest.mark.parametrize("graph_nodes", [ONLY_LARGE, 3, ONLY_SMALL])


@pytest.mark.skipif(INTERPRETED or torch.cuda.is_available(), reason="runs the tests below")
@pytest.mark.parametrize("marker", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_in_the_interpreter(marker):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marker]
    result = subprocess.run(
        [*command, f"{__file__}::TestKernels"],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def random(rows, columns, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(0).standard_normal((rows, columns))).to(dtype)


def random_chain(sizes, measure="children"):
    rng = np.random.default_rng(sizes)
    parents = [
        rng.permutation(np.r_[np.arange(coarse), rng.integers(0, coarse, fine - coarse)])
        for fine, coarse in itertools.pairwise(sizes)
    ]
    return Chain.from_parents(parents, measure=measure)


class TestKernels:
    __test__ = INTERPRETED or torch.cuda.is_available()

    @pytest.fixture
    def cuda(self, monkeypatch):
        """`cuda(**tuning)` returns the kernels with small tiles."""
        from haarpool.haar.kernels import cuda

        def tuned(**tuning):
            monkeypatch.setattr(cuda, "TUNING", cuda.Tuning(**(TILES | tuning)))
            return cuda

        return tuned

    def check(self, kernels, chains, columns, modes=MODES, level=0, dtype=torch.float64):
        chains = ChainTensors.from_chains(chains)
        for skip, single in modes:
            there = chains.to(DEVICE).steps(level, skip=skip, single=single)
            here = chains.steps(level, skip=skip, single=single)
            x = random(chains.sizes[level], columns, dtype)
            expected = portable.analysis(x.double(), here)
            assert close(kernels.analysis(x.to(DEVICE), there), expected, dtype)
            c = random(len(expected), columns, dtype)
            expected = portable.synthesis(c.double(), here)
            assert close(kernels.synthesis(c.to(DEVICE), there), expected, dtype)

    @each_regime
    def test_same_as_portable(self, cuda, graph_nodes):
        kernels = cuda(graph_nodes=graph_nodes)
        batch = [random_chain(sizes, "mass") for sizes in ([13, 2, 1], [3, 3, 2])]
        self.check(kernels, batch, 2)

    @pytest.mark.slow
    @each_regime
    @pytest.mark.parametrize("measure", ["children", "mass"])
    def test_same_as_portable_on_more_chains(self, cuda, graph_nodes, measure):
        kernels = cuda(graph_nodes=graph_nodes)
        batch = [random_chain(sizes, measure) for sizes in ([29, 5, 3, 1], [7, 1, 1, 1])]
        for level in range(4):
            self.check(kernels, batch, 3, level=level)
        self.check(kernels, [random_chain([41, 1])], 1)
        self.check(kernels, [random_chain([30, 3]), random_chain([1, 1])], 1)

    @pytest.mark.parametrize("graph_nodes", [ONLY_LARGE, ONLY_SMALL])
    @pytest.mark.parametrize(
        ("dtype", "columns"),
        [(torch.float32, 257), (torch.bfloat16, 64), (torch.float64, 1)],
        ids=str,
    )
    def test_types_and_columns(self, cuda, graph_nodes, dtype, columns):
        wide = {"lane_elements": 1024, "lane_columns": 256}
        wide |= {"graph_elements": 1024, "graph_columns": 256}
        kernels = cuda(graph_nodes=graph_nodes, long=8, **wide)
        self.check(kernels, [random_chain([5, 2])], columns, [(False, True)], dtype=dtype)

    def test_half_precision_is_rounded_once(self, cuda):
        batch = ChainTensors.from_chains([random_chain([5, 3, 1])]).to(DEVICE)
        arguments = batch.steps(0, skip=True, single=False)
        x, kernels = random(5, 3, torch.float16).to(DEVICE), cuda()
        expected = kernels.analysis(x.float(), arguments)
        assert torch.equal(kernels.analysis(x, arguments), expected.half())

    @pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # 0 * inf in numpy
    @pytest.mark.parametrize("graph_nodes", [ONLY_LARGE, ONLY_SMALL])
    def test_infinite_numbers_stay_in_their_cluster(self, cuda, graph_nodes):
        kernels = cuda(graph_nodes=graph_nodes)
        parents = np.repeat([0, 1, 2], [3, 9, 2])
        chain = ChainTensors.from_chains([Chain.from_parents([parents])]).to(DEVICE)
        arguments = chain.steps(0, skip=False, single=True)
        x = random(14, 2).to(DEVICE)
        expected = kernels.analysis(x, arguments)
        for cluster, value in ((0, np.inf), (1, np.nan)):
            inside = torch.from_numpy(parents == cluster).to(DEVICE)
            c = kernels.analysis(x.masked_fill(inside[:, None], value), arguments)
            changed = ~c.isfinite().all(1)
            assert changed.sum() == inside.sum()
            assert torch.equal(c[~changed], expected[~changed])
            back = kernels.synthesis(c, arguments)
            assert torch.equal(back.isfinite().all(1), ~inside)

    @pytest.mark.parametrize("list_entries", [0, 10**6])
    def test_lists_of_rows(self, cuda, list_entries):
        kernels = cuda(list_entries=list_entries)
        rng = np.random.default_rng(0)
        lengths = [0, 3, 1, 0, 30, 4, 9, 0]
        x = random(10, 3)
        index = torch.from_numpy(rng.integers(0, 10, sum(lengths)))
        start = torch.from_numpy(np.cumsum(lengths) - lengths)
        weights = random(len(index), 1)[:, 0]
        for weight, int_type in ((None, torch.int32), (weights.float(), torch.int64)):
            factor = 1 if weight is None else weight.double()[:, None]
            rows = x[index] * factor
            sums = torch.stack([part.sum(0) for part in rows.split(lengths)])
            there = None if weight is None else weight.to(DEVICE)
            i, s = (t.to(DEVICE, int_type) for t in (index, start))
            assert close(kernels.gather_sum(x.to(DEVICE), i, s, there), sums)
            assert close(kernels.gather_sum(x.to(DEVICE), i, None, there), rows)

    def test_lists_without_rows(self, cuda):
        kernels = cuda()
        x, none = random(5, 3).to(DEVICE), torch.empty(0, dtype=torch.int32, device=DEVICE)
        four_lists = none.new_zeros(4)
        assert torch.equal(kernels.gather_sum(x, none, four_lists, None), x.new_zeros(4, 3))
        assert kernels.gather_sum(x, none, None, None).shape == (0, 3)
        assert kernels.gather_sum(x, none, none, x[:0, 0]).shape == (0, 3)

    @pytest.mark.parametrize("counted", [True, False])
    def test_facts_about_a_tree_follow_its_changes(self, cuda, monkeypatch, counted):
        """A static buffer may get another chain, with longer clusters."""
        kernels = cuda(graph_nodes=0)
        if not counted:  # torch does not tell its changes
            monkeypatch.setattr(kernels, "version", lambda tree: object())
        pairs, long = (
            ChainTensors.from_chains([Chain.from_parents([parents])])
            for parents in (np.arange(20) // 2, np.r_[np.zeros(11, int), np.arange(1, 10)])
        )
        there = pairs.to(DEVICE)
        x = random(20, 3)
        for chains in (pairs, long):
            for buffer, tree in zip(there.trees, chains.trees, strict=True):
                buffer.copy_(tree)
            for _ in range(2):
                result = kernels.analysis(x.to(DEVICE), there.steps(0, skip=False, single=False))
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
            expected = portable.analysis(x, chains.steps(0, skip=False, single=False))
            assert close(result, expected)
