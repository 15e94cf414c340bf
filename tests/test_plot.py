import runpy
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

import haarpool as hp
from haarpool.plot import (
    plot_basis,
    plot_chain,
    plot_chains,
    plot_overview,
    plot_signal,
    plot_wavelets,
)
from helpers.tolerances import LOOSER

KARATE = Path(__file__).parents[1] / "examples" / "karate.py"
GRAPHS = {
    "karate": nx.karate_club_graph(),
    "disconnected": nx.disjoint_union_all([nx.cycle_graph(9), nx.star_graph(5), nx.empty_graph(2)]),
    "one node": nx.empty_graph(1),
    "no edges": nx.empty_graph(6),
    "self-loop": nx.Graph([(0, 0), (0, 1)]),
    "complete": nx.complete_graph(12),
    "beyond Kamada and Kawai": nx.path_graph(310),
}


QUICK = ("karate", "one node", "no edges")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in GRAPHS],
)
def chain(request):
    return hp.build_chain(GRAPHS[request.param], num_levels=3)


@pytest.fixture(scope="module")
def karate():
    return hp.build_chain(GRAPHS["karate"], num_levels=3, measure="mass")


def discs(ax):
    """The colours at each position of a panel, as (rim, disc) or as the only one."""
    (scatter,) = (c for c in ax.collections if isinstance(c, PathCollection))
    found = {}
    offsets = scatter.get_offsets().round(9).tolist()
    for (x, y), colour in zip(offsets, scatter.get_facecolors().round(9).tolist(), strict=True):
        found.setdefault((x, y), []).append(tuple(colour))
    return found


def image(ax):
    return ax.images[0].get_array()


def test_overview_draws_every_level_and_renders(chain, tmp_path):
    figure = plot_overview(chain)
    titles = [ax.get_title() for ax in figure.axes]
    for level, size in enumerate(chain.sizes):
        assert f"level {level}: {size} {'node' if size == 1 else 'nodes'}" in titles
    for level in range(chain.num_levels):
        size = chain.sizes[level]
        assert f"$U_{{{level}}}$: {size} × {size}" in titles
    assert len(figure.axes) == 2 * (chain.num_levels + 1)
    figure.savefig(tmp_path / "overview.png", dpi=40)


def test_members_have_the_colour_of_their_parent(karate):
    panels = [list(discs(ax).values()) for ax in plot_chain(karate).axes]
    assert tuple(map(len, panels)) == karate.sizes
    for parent, members, coarse in zip(karate.parents, panels, panels[1:], strict=False):
        rims = [colours[0] for colours in members]
        own = {colours[-1] for colours in coarse}
        assert set(rims) == own
        assert len(own) == len(coarse)  # so few clusters all have a colour of their own
        assert sorted(map(rims.count, own)) == sorted(np.bincount(parent))


def test_a_parent_is_drawn_in_the_middle_of_its_members(karate):
    fine, coarse = (discs(ax) for ax in plot_chain(karate).axes[:2])
    for position, (_, own) in coarse.items():
        members = [at for at, (parent,) in fine.items() if parent == own]
        assert np.allclose(np.mean(members, axis=0), position, atol=LOOSER["drawing"])


def test_neighbouring_clusters_are_told_apart(chain):
    for level, ax in list(enumerate(plot_chain(chain).axes))[1:]:
        (scatter,) = (c for c in ax.collections if isinstance(c, PathCollection))
        nodes = np.argsort(-chain.mass(level), kind="stable")
        per_node = len(scatter.get_offsets()) // chain.sizes[level]
        colour = np.empty((chain.sizes[level], 3))
        colour[nodes] = scatter.get_facecolors()[per_node - 1 :: per_node, :3]
        u, v = chain.adjacency(level).nonzero()
        assert (np.abs(colour[u] - colour[v]).max(axis=1, initial=0) > 0.04).all()


def test_area_is_mass(karate):
    for level, ax in enumerate(plot_chain(karate).axes):
        (scatter,) = (c for c in ax.collections if isinstance(c, PathCollection))
        areas = scatter.get_sizes()[:: len(scatter.get_offsets()) // karate.sizes[level]]
        shares = np.sort(karate.mass(level)) / karate.sizes[0]
        assert np.allclose(np.sort(areas) / areas.sum(), shares)


def test_layout_follows_the_seed(karate):
    first, again, other = (discs(plot_chain(karate, seed=s).axes[0]) for s in (0, 0, 1))
    assert first.keys() == again.keys()
    assert first.keys() != other.keys()


PICTURES = {
    "chain": plot_chain,
    "chains": lambda chain, **options: plot_chains({"some": chain}, **options),
    "wavelets": lambda chain, **options: plot_wavelets(chain, [0], **options),
    "overview": plot_overview,
    "signal": lambda chain, **options: plot_signal(chain, np.arange(34), **options),
}


@pytest.mark.parametrize("name", PICTURES)
def test_nodes_are_drawn_where_they_are(name, karate):
    positions = np.stack([np.arange(34) % 6, 100 + np.arange(34) // 6 * 3], axis=1)
    figure = PICTURES[name](karate, positions=positions)
    ax = figure.axes[0]
    drawn = np.concatenate([c.get_offsets() for c in ax.collections if type(c) is PathCollection])
    assert np.unique(drawn, axis=0).tolist() == np.unique(positions, axis=0).tolist()
    # Equal scales, and the second coordinate goes up.
    assert ax.get_aspect() == 1.0
    assert np.ptp(ax.get_xlim()) == pytest.approx(np.ptp(ax.get_ylim()))
    assert not ax.yaxis_inverted()
    low, high = ax.get_ylim()
    assert low < 100 < 115 < high


def test_a_parent_is_in_the_middle_of_given_positions(karate):
    positions = np.random.default_rng(0).normal(size=(34, 2))
    top = discs(plot_chain(karate, positions=positions.tolist()).axes[1])
    members = karate.parents[0] == karate.parents[0][0]
    assert tuple(positions[members].mean(axis=0).round(9)) in top


@pytest.mark.parametrize("chain", ["one node"], indirect=True)
def test_one_node_at_a_position(chain):
    ax = plot_chain(chain, positions=[[3.0, 5.0]]).axes[0]
    assert ax.get_xlim() == pytest.approx((2.4, 3.6))


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize(
    ("positions", "got"),
    [
        (np.zeros((33, 2)), r"shape \(33, 2\)"),
        (np.zeros((34, 3)), r"shape \(34, 3\)"),
        (np.full((34, 2), np.nan), "nan or infinity"),
        ([["a", "b"]] * 34, "dtype <U1"),
    ],
)
def test_wrong_positions(name, positions, got, karate):
    with pytest.raises(hp.HaarPoolError, match=rf"positions as finite .* \(34, 2\), got .*{got}"):
        PICTURES[name](karate, positions=positions)


def test_a_larger_value_has_more_colour(karate):
    values = np.random.default_rng(0).normal(size=34)
    (scatter,) = plot_signal(karate, values).axes[0].collections
    share = scatter.get_facecolors()[:, 3]
    assert (np.argsort(share) == np.argsort(values)).all()
    assert (share.min(), share.max()) == pytest.approx((0.08, 1))
    (scatter,) = plot_signal(karate, np.ones(34)).axes[0].collections
    assert len(np.unique(scatter.get_facecolors()[:, 3])) == 1
    with pytest.raises(hp.HaarPoolError, match=r"signal as finite numbers of shape \(34,\)"):
        plot_signal(karate, np.ones((34, 1)))


def test_basis_shows_the_entries_in_rows_of_clusters(karate):
    panels = [ax for ax in plot_basis(karate).axes if ax.get_title()]
    assert len(panels) == karate.num_levels
    for level, ax in enumerate(panels):
        shown = image(ax)
        basis = hp.haar_basis(karate, level).toarray()
        assert np.array_equal(np.sort(shown.filled(0), axis=0), np.sort(basis, axis=0))
        assert np.array_equal(shown.mask.sum(axis=0), (basis == 0).sum(axis=0))
        # Members of a cluster stand together: the support of every vector is one piece.
        steps = np.abs(np.diff(shown.mask.astype(int), axis=0, prepend=1, append=1))
        assert (steps.sum(axis=0) == 2).all()
        low, high = ax.images[0].get_clim()
        assert low == -high
        assert rf"$\Phi_{{{level}}}$" in [text.get_text() for text in ax.texts]


def test_basis_needs_no_graph_but_the_chain_does():
    chain = hp.Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]])
    assert image(plot_basis(chain).axes[0]).shape == (8, 8)
    with pytest.raises(hp.HaarPoolError, match="pass adjacency to"):
        plot_chain(chain)


def draw_wavelets(chain, *given, **bar):
    return plot_wavelets(chain, [0, 1, 2], *given, **bar)


def test_wavelets_show_the_entries_at_their_nodes(chain):
    columns = sorted({0, chain.sizes[0] // 2, chain.sizes[0] - 1})
    figure = plot_wavelets(chain, columns)
    basis = hp.haar_basis(chain).toarray()
    places = plot_chain(chain).axes[0].collections[-1].get_offsets()
    nodes = np.argsort(-chain.mass(0), kind="stable")  # as plot_chain draws them
    place = dict(zip(nodes.tolist(), places.tolist(), strict=True))
    for column, ax in zip(columns, figure.axes, strict=False):
        grey, coloured = (c for c in ax.collections if isinstance(c, PathCollection))
        support = np.flatnonzero(basis[:, column])
        assert coloured.get_array().tolist() == basis[support, column].tolist()
        assert coloured.get_offsets().tolist() == [place[v] for v in support.tolist()]
        assert len(grey.get_offsets()) == chain.sizes[0] - len(support)
        low, high = coloured.get_clim()
        assert low == -high


def test_wavelets_say_which_level_they_belong_to(karate):
    # 34 -> 17 -> 8 -> 1
    titles = [ax.get_title() for ax in plot_wavelets(karate, [0, 1, 7, 8, 17, 33]).axes[:-1]]
    levels = ["top level", *(f"detail of level {level}" for level in (2, 2, 1, 0, 0))]
    numbers = (1, 2, 8, 9, 18, 34)
    assert titles == [f"vector {n}: {text}" for n, text in zip(numbers, levels, strict=True)]
    wide = hp.build_chain(GRAPHS["karate"], num_levels=1, top=None)
    titles = [ax.get_title() for ax in plot_wavelets(wide, [16, 17]).axes[:-1]]
    assert titles == ["vector 17: top level", "vector 18: detail of level 0"]


@pytest.mark.parametrize("columns", [[], [34], [-1]])
def test_unknown_wavelets(karate, columns):
    with pytest.raises(hp.HaarPoolError, match=r"columns of U_0 in 0\.\.33.*coarsest"):
        plot_wavelets(karate, columns)


def test_position_of_the_colour_bar(karate):
    for plot in (plot_basis, draw_wavelets):
        panels = [Figure().subplots() for _ in range(3)]  # each in a figure of its own
        bar = Figure().subplots()
        plot(karate, panels, bar=bar)
        assert bar.get_xlabel() == "entry of the basis (zero: blank)"
        assert all(len(ax.figure.axes) == 1 for ax in panels)


def test_draws_into_given_axes(karate):
    figure = Figure(figsize=(12, 6))
    top, bottom = figure.subfigures(2)
    assert plot_chain(karate, top.subplots(1, 4)) is figure
    assert plot_basis(karate, list(bottom.subplots(1, 3))) is figure
    one_step = hp.Chain.from_parents([[0, 0]])
    assert plot_basis(one_step, Figure().subplots()).axes[0].images
    with pytest.raises(hp.HaarPoolError, match="expected 4 axes, got 3"):
        plot_chain(karate, Figure().subplots(1, 3))


@pytest.mark.parametrize("plot", [plot_chain, plot_basis, plot_overview, draw_wavelets])
def test_a_plan_is_no_chain(karate, plot):
    with pytest.raises(hp.HaarPoolError, match=r"a Chain, got ChainTensors.*build_chain"):
        plot(hp.TransformPlan.from_chains([karate]))


def test_karate_example(tmp_path, capsys, karate):
    out = tmp_path / "new" / "karate.png"
    runpy.run_path(str(KARATE))["main"](["--out", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    for text in ("34 -> 17 -> 8 -> 1", karate.digest[:12], "7 of 34", "34 of 34 members", str(out)):
        assert text in printed
    clubs = nx.get_node_attributes(GRAPHS["karate"], "club").values()
    c = hp.adjoint(karate, np.array([1.0 if club == "Mr. Hi" else -1.0 for club in clubs]))
    (line,) = (line for line in printed.splitlines() if "level 2:" in line)
    assert f"{(c[:8] ** 2).sum() / 34:.1%}" in line


def test_karate_example_has_help(capsys):
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(KARATE))["main"](["--help"])
    assert "example: python examples/karate.py" in capsys.readouterr().out


def test_a_basis_too_large_to_draw_is_an_error():
    chain = hp.Chain.from_parents([np.arange(4000) // 2])
    for plot in (plot_basis, draw_wavelets):
        with pytest.raises(hp.HaarPoolError, match=r"3,000 nodes.*4,000.*plot_chain"):
            plot(chain)
