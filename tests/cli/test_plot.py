"""`haarpool plot`."""

import pytest
from matplotlib.figure import Figure

from haarpool.datasets import read_graphs
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


def test_digits_are_drawn_at_their_pixels(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: saved.append(figure))
    run_main("plot", "chain", "digits", "--graph", 7, "--levels", 2, "--out", tmp_path / "7.png")
    panels = saved[0].axes
    assert len(panels) == 3
    position = read_graphs("digits").positions(7)
    drawn = panels[0].collections[-1].get_offsets()
    assert set(map(tuple, drawn.tolist())) == set(map(tuple, position.tolist()))
    assert all(ax.get_aspect() == 1.0 for ax in panels)
