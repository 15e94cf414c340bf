"""Traffic of the study: what is missing, in which part, and that nothing shows it."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from helpers.files import needs_data
from helpers.study import check_splits, same
from paper.pooling.data import make, traffic
from paper.pooling.data.files import read, save


@pytest.fixture
def sensors(tmp_path, monkeypatch):
    """Speeds and adjacency of 80 sensors at random places, in the files of METR-LA."""
    rng = np.random.default_rng(0)
    pos = rng.random((80, 2))
    distance = np.linalg.norm(pos[:, None] - pos, axis=2)
    weights = np.where(distance < 0.25, np.exp(-((distance / 0.15) ** 2)), 0)
    weights[np.tril_indices(80, -1)] *= rng.random(80 * 79 // 2) < 0.9  # some in one direction
    folder = tmp_path / "metr-la"
    folder.mkdir()
    speed = 40 + 20 * np.sin(np.arange(50)[:, None] / 9 + 4 * pos[:, 0])
    np.savetxt(folder / "speed.csv", speed, delimiter=",", header="sensors", comments="")
    np.savetxt(folder / "adjacency.csv", weights, delimiter=",")
    monkeypatch.setenv("HAARPOOL_DATA", str(tmp_path))
    return speed


def missing_by_part(made):
    """The distinct sets of missing sensors of each part, by split."""
    missing = np.isfinite(made.graphs["y"])
    return [[{row.tobytes() for row in missing[part]} for part in split] for split in made.splits]


@pytest.mark.parametrize("name", ["traffic-blocks", "traffic-random"])
def test_signals(sensors, tmp_path, name):
    made = make(name)
    assert same(made, make(name))
    assert not same(made, make(name, seed=1))
    x, y = made.graphs["x"], made.graphs["y"]
    missing = np.isfinite(y)
    assert abs(missing.mean() - traffic.SHARE) < 0.01
    assert (x[:, :, 1] == ~missing).all()
    assert (x[missing][:, 0] == 0).all()
    known = sensors[:30].mean() + sensors[:30].std() * x[:, :, 0]  # the training part standardises
    step = np.abs(known[:, None] - sensors)[:, :, :]
    step = np.where(missing[:, None], 0, step).max(2).argmin(1)
    assert np.allclose(y[missing], sensors[step][missing], atol=1e-4)
    graphs, splits = read(save(made, name, tmp_path))
    assert (len(graphs), graphs.signals, str(graphs.task)) == (len(y), True, "node_regression")
    parts = [np.concatenate(split) for split in splits]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(y)))  # one split, one seed
    for split in splits:
        assert [len(part) for part in split] == [30 * traffic.DRAWS, 10, 10]
        times = [set(step[part].tolist()) for part in split]
        assert max(times[0]) < min(times[1])
        assert max(times[1]) < min(times[2])
    assert len(missing_by_part(made)[0][0]) > 50  # drawn anew


def test_blocks_of_the_test_part_are_others(sensors):
    made = make("traffic-blocks")
    for train, validation, test in missing_by_part(made):
        assert len(train | validation | test) == len(train) + len(validation) + len(test)
    missing = np.isfinite(made.graphs["y"])
    for split in made.splits:
        # Some sensor of each is never missing in training.
        never = ~missing[split.train].any(0)
        assert (missing[split.validation] & never).any(1).all()
        assert (missing[split.test] & never).any(1).all()


def test_a_block_is_connected_and_allowed():
    rng = np.random.default_rng(0)
    weights = np.zeros((60, 60))
    ring = np.arange(60)
    weights[ring, (ring + 1) % 60] = weights[(ring + 1) % 60, ring] = 1
    free = ring != 30
    for start in (29, 5):
        block = traffic.grow(weights, start, 7, free, rng)
        assert block.sum() == 7
        assert block[start]
        assert not block[30]
        assert connected_components(weights[block][:, block])[0] == 1
    assert traffic.grow(weights, 30, 70, ring < 40, rng).sum() == 40  # no more are free


@needs_data
def test_metr_la():
    made = make("traffic-blocks", steps=50)
    assert made.graphs["x"].shape == (5 * (30 * traffic.DRAWS + 20), 207, 6)
    assert np.nanmax(made.graphs["y"]) <= 70
    check_splits([*made.splits[:1]] * 5, len(made.graphs["y"]) // 5)
