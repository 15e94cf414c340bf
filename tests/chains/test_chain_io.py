"""Chains in files: damaged, foreign and missing ones."""

import contextlib
import stat

import networkx as nx
import numpy as np
import pytest

import haarpool as hp


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "chain.npz"
    hp.build_chain(nx.karate_club_graph(), 3).save(path)
    return path


def fails(path, part):
    with pytest.raises(hp.HaarPoolError, match="npz") as caught:
        hp.Chain.load(path)
    assert str(path) in str(caught.value)
    assert part in str(caught.value)


def test_missing_file(tmp_path):
    fails(tmp_path / "none.npz", "check the path")


def test_truncated_at_every_tenth(saved):
    whole = saved.read_bytes()
    for cut in range(0, len(whole), max(1, len(whole) // 10)):
        saved.write_bytes(whole[:cut])
        fails(saved, "damaged")


def test_flipped_bytes(saved):
    """Whatever byte is wrong: an error of ours, or the very same chain."""
    whole, chain = saved.read_bytes(), hp.Chain.load(saved)
    for place in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        saved.write_bytes(broken)
        with contextlib.suppress(hp.HaarPoolError):
            assert hp.Chain.load(saved) == chain


def test_other_files(tmp_path):
    path = tmp_path / "chain.npz"
    path.write_text("level,parent\n0,1\n")
    fails(path, "damaged")
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    fails(path, "without a name")
    np.savez(path, weights=np.zeros(3))
    fails(path, "format")
    np.savez(path, format=99)
    fails(path, "99")
    np.savez(path, format=np.array([{"a": 1}], dtype=object))  # a pickle, which is not run
    fails(path, "allow_pickle")
    fails(tmp_path, "damaged")  # a folder


def test_files_whose_content_is_wrong(tmp_path):
    path = tmp_path / "chain.npz"
    good = {"format": 1, "order": "index", "measure": "children", "sizes": [3, 2]}
    np.savez(path, **good, parents=[0, 1, 7])
    fails(path, "0..2")
    np.savez(path, **good | {"order": "odd"}, parents=[0, 1, 1])
    fails(path, "odd")
    np.savez(path, **good, parents=[0, 1, 1], weights=[1.0], indices=[9], indptr=[0, 1, 1, 1])
    fails(path, "cannot be read")
    for sizes in ([3, 99], [-3, 2], [2, 2], [], 5):
        np.savez(path, **good | {"sizes": sizes}, digest="", parents=[0, 1, 1])
        fails(path, "cannot be read")
    chain = hp.Chain.from_parents([[0, 1, 1]])
    np.savez(path, **good, digest=chain.digest, parents=[0, 0, 1])
    fails(path, "does not match its digest")
    np.savez(path, **good, digest=chain.digest, parents=[0, 1, 1])
    assert hp.Chain.load(path) == chain


def test_unwritable_places(tmp_path):
    chain = hp.Chain.from_parents([[0, 0]])
    with pytest.raises(hp.HaarPoolError, match="choose another"):
        chain.save(tmp_path / "no such folder" / "chain.npz")
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(hp.HaarPoolError, match="choose another"):
        chain.save(taken)
    for name in ("x" * 300, "a\0b"):
        with pytest.raises(hp.HaarPoolError, match="choose another"):
            chain.save(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    chain.save(tmp_path / ("x" * 250))
    (tmp_path / ("x" * 250)).unlink()
    assert stat.S_ISDIR(taken.stat().st_mode)
