"""Batch norm of padded minibatches: plain torch, and in Triton (interpreted without a GPU)."""

import os
import subprocess
import sys

import pytest
import torch
from torch_geometric.nn import BatchNorm

from haarpool.nn.layers import masked
from helpers.tolerances import close

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"


def results(norm, x, num_real, padded):
    """Output, running statistics and gradients; those of rows that count."""
    x = x.clone().requires_grad_()
    y = masked.masked_norm(norm, x, torch.tensor(num_real, device=x.device) if padded else None)
    norm, y = norm.module, y[:num_real]
    factor = torch.linspace(-1, 1, y.numel(), dtype=y.dtype, device=y.device).reshape(y.shape)
    (y * factor).square().sum().backward()
    return (
        y, norm.running_mean, norm.running_var, norm.num_batches_tracked,
        x.grad[:num_real], norm.weight.grad, norm.bias.grad,
    )  # fmt: skip


def norm_of(columns, dtype):
    torch.manual_seed(1)
    norm = BatchNorm(columns, allow_single_element=True).to(DEVICE, dtype)
    for values in (norm.module.weight, norm.module.bias, norm.module.running_mean):
        torch.nn.init.normal_(values)
    torch.nn.init.uniform_(norm.module.running_var, 0.5, 2.0)
    return norm


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("rows", "num_real", "columns"), [(7, 5, 3), (9, 9, 4), (40, 33, 9), (5, 1, 3)]
)
class TestPadding:
    def test_rows_that_do_not_count_change_nothing(self, rows, num_real, columns, dtype):
        x = torch.randn(rows, columns, dtype=torch.float64, generator=torch.manual_seed(0))
        x = (x + 3).to(DEVICE, dtype)
        expected = results(norm_of(columns, dtype), x[:num_real], num_real, padded=False)
        padded = results(norm_of(columns, dtype), x, num_real, padded=True)
        for one, other in zip(padded, expected, strict=True):
            assert close(one, other, dtype)


@pytest.mark.skipif(INTERPRETED or ON_GPU, reason="runs the tests below")
def test_in_the_interpreter():
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, f"{__file__}::TestInTriton"],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


class TestInTriton(TestPadding):
    """The same in Triton, with small tiles."""

    __test__ = INTERPRETED or ON_GPU

    @pytest.fixture(autouse=True)
    def in_triton(self, monkeypatch):
        from haarpool.nn.layers import masked_triton

        monkeypatch.setattr(masked_triton, "ROWS", 8)
        if INTERPRETED:  # its tensors are on the CPU
            monkeypatch.setattr(masked, "_is_on_gpu", lambda x: True)
