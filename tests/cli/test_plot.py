"""`haarpool plot`."""

import pytest

from helpers.commands import run_main


@pytest.mark.parametrize(
    "name",
    ["one.svg", *(pytest.param(name, marks=pytest.mark.slow) for name in ("two.pdf", "three.png"))],
)
def test_plot(name, root, tmp_path):
    out = run_main(
        *("plot", "chain", "RANDOM", "--root", root, "--graph", 3, "--levels", 3),
        *("--method", "spectral,metis,dbscan", "--out", tmp_path / name),
    ).out
    assert out == f"{tmp_path / name}\n"
    assert (tmp_path / name).stat().st_size > 5000
