"""Every rule makes three parts without overlap; files are checked."""

import json

import numpy as np
import pytest

import haarpool as hp
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import (
    Split,
    as_json,
    default_rule,
    hold_out,
    make_splits,
    num_folds,
)
from helpers.errors import error_with
from helpers.files import REAL, needs_data


def random_graphs(count=50, classes=2, **more):
    targets = np.arange(count) % classes
    return Graphs(
        "SOME", np.arange(count + 1), np.zeros((2, 0), np.int64), task="classification",
        targets=targets, classes=tuple(map(str, range(classes))), **more,
    )  # fmt: skip


def check(split, graphs):
    every = np.concatenate(split)
    assert len(np.unique(every)) == len(every)
    assert all(len(part) for part in split)
    assert set(every) <= set(np.flatnonzero(graphs.is_labelled))
    assert all((np.diff(part) > 0).all() for part in split)


def test_random():
    graphs = random_graphs(188)
    splits = make_splits("random", graphs, seed=1, repeats=3)
    assert [len(part) for part in splits[0]] == [152, 18, 18]
    for split in splits:
        check(split, graphs)
        assert sum(map(len, split)) == 188
    assert len({split.digest() for split in splits}) == 3
    again = make_splits("random", graphs, seed=1, repeats=2)
    assert [split.digest() for split in again] == [split.digest() for split in splits[:2]]
    other = make_splits("random", graphs, seed=2)
    assert other[0].digest() != splits[0].digest()


def with_classes(*counts, **more):
    """Graphs with this many of each class, in random order."""
    graphs = random_graphs(sum(counts), classes=len(counts), **more)
    targets = np.repeat(np.arange(len(counts)), counts)
    graphs.targets[:] = np.random.default_rng(0).permutation(targets)
    return graphs


def test_hashes_of_published_results_do_not_change():
    graphs = random_graphs(188)
    found = [make_splits(rule, graphs, 1)[0].digest()[:12] for rule in ("random", "kfold:10")]
    assert found == ["3cc4642741d1", "1e4dc0c956d6"]


def test_stratified():
    graphs = with_classes(63, 125)
    splits = make_splits("stratified", graphs, seed=1, repeats=3)
    for split in splits:
        check(split, graphs)
        found = [np.bincount(graphs.targets[part]).tolist() for part in split]
        assert found == [[51, 101], [6, 12], [6, 12]]
    assert len({split.digest() for split in splits}) == 3
    again = make_splits("stratified", graphs, seed=1, repeats=2)
    assert [split.digest() for split in again] == [split.digest() for split in splits[:2]]
    assert make_splits("stratified", graphs, seed=2)[0].digest() != splits[0].digest()


def test_shares_of_many_classes_add_up():
    graphs = with_classes(*[14] * 20)
    (split,) = make_splits("stratified", graphs)
    check(split, graphs)
    assert [len(part) for part in split] == [224, 28, 28]
    counts = np.bincount(graphs.targets[split.test])
    assert (counts.min(), counts.max()) == (1, 2)


@pytest.mark.parametrize(("classes", "each"), [(200, 3), (40, 6)])
def test_many_small_classes_leave_enough_to_train(classes, each):
    (split,) = make_splits("stratified", with_classes(*[each] * classes))
    assert len(split.train) >= 0.75 * classes * each


def test_rare_classes_train_first_then_test_then_validate():
    graphs = with_classes(100, 1, 2, 3, 4)
    graphs.targets[np.flatnonzero(graphs.targets == 0)[:7]] = -1
    for split in make_splits("stratified", graphs, repeats=5):
        check(split, graphs)
        train, validation, test = (
            np.bincount(graphs.targets[part], minlength=5).tolist() for part in split
        )
        assert train[1:] == [1, 1, 1, 2]
        assert test[1:] == [0, 1, 1, 1]
        assert validation[1:] == [0, 0, 1, 1]
        assert train[0] + validation[0] + test[0] == 93


def test_stratified_needs_classes():
    values = Graphs(
        "SOME", np.arange(11), np.zeros((2, 0), np.int64), task="regression",
        targets=np.ones((10, 1)), target_names=("y",),
    )  # fmt: skip
    with error_with("a stratified split", "regression on SOME", 'pass split="random"'):
        make_splits("stratified", values)
    with error_with("a class of at least 3 graphs", "at most 2", 'pass split="random"'):
        make_splits("stratified", with_classes(2, 2, 1))


def test_default_rule():
    parts = {"train": np.arange(30), "validation": np.arange(30, 40), "test": np.arange(40, 50)}
    assert default_rule(random_graphs(split=parts)) == "given"
    assert default_rule(random_graphs()) == "stratified"
    assert default_rule(with_classes(2, 2, 2)) == "random"
    empty = np.zeros((2, 0), np.int64)
    values = Graphs("V", np.arange(4), empty, task="regression", targets=np.ones((3, 1)))
    assert default_rule(values) == "random"


def test_hold_out_keeps_the_share_of_each_class():
    graphs = with_classes(90, 10, 2, 1)
    split = hold_out(graphs, 0.1)
    assert np.bincount(graphs.targets[split.validation]).tolist() == [9, 1, 1]
    assert np.bincount(graphs.targets[split.train]).tolist() == [81, 9, 1, 1]
    assert not len(split.test)
    assert hold_out(graphs, 0.1, seed=1).digest() != split.digest()
    assert [len(part) for part in hold_out(with_classes(1, 1, 1), 0.1)] == [2, 1, 0]
    with error_with("at least 2 graphs with a label"):
        hold_out(with_classes(1), 0.1)


def missing(graphs, splits):
    return graphs.task.check_parts(graphs.targets, graphs.names, splits)


def test_parts_that_lack_a_class_are_named():
    graphs = random_graphs(8, classes=4)  # 0 1 2 3 0 1 2 3
    full = Split(np.arange(4), np.arange(4, 8), np.arange(0))
    assert missing(graphs, [full]) == ""
    lacking = Split(np.arange(4), np.array([4, 5, 6]), np.array([7]))
    assert missing(graphs, [lacking]) == (
        "no graph of class '3' in the validation part (and 1 more)"
    )
    lacking = Split(np.arange(4), np.arange(4, 8), np.array([3]))
    assert missing(graphs, [full, lacking]) == (
        "no graph of class '0' and 2 other classes in the test part of repeat 2"
    )


def test_each_graph_is_in_one_test_fold_and_classes_are_even():
    graphs = random_graphs(60, classes=3)
    splits = make_splits("kfold:10", graphs, repeats=2)
    assert len(splits) == 20
    for split in splits:
        check(split, graphs)
        assert np.bincount(graphs.targets[split.test]).tolist() == [2, 2, 2]
    for half in (splits[:10], splits[10:]):
        assert sorted(np.concatenate([split.test for split in half])) == list(range(60))
        assert sorted(np.concatenate([split.validation for split in half])) == list(range(60))
    assert splits[0].digest() != splits[10].digest()


def test_graphs_without_label_are_in_no_part():
    graphs = random_graphs(50)
    graphs.targets[::5] = -1
    for rule in ("random", "kfold:5"):
        for split in make_splits(rule, graphs):
            check(split, graphs)
            assert sum(map(len, split)) == 40


def test_scaffolds_stay_together():
    rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNCC1", "c1ccoc1", "C1CC1", "C1CCC1"]
    smiles = tuple("C" * (i // 7 + 1) + rings[i % 7] for i in range(70))
    graphs = random_graphs(70, ids=smiles, id_name="smiles")
    (split,) = make_splits("scaffold", graphs)
    check(split, graphs)
    assert sum(map(len, split)) == 70
    kinds = [{g % 7 for g in part} for part in split]
    assert sum(map(len, kinds)) == 7
    rare = (*("CC1CC1",) * 3, *("C" * i + "c1ccccc1" for i in range(40)), *("CC1CCC1",) * 3)
    (split,) = make_splits("scaffold", random_graphs(46, ids=rare, id_name="smiles"))
    assert [len(part) for part in split] == [40, 3, 3]  # although 40 are more than four fifths
    rare = (*("CC1CC1",) * 5, *("C" * i + "c1ccccc1" for i in range(20)), *("CC1CCC1",) * 5)
    (split,) = make_splits("scaffold", random_graphs(30, ids=rare, id_name="smiles"))
    assert split.train.tolist() == list(range(5, 25))  # frequent scaffolds train
    assert [len(part) for part in split] == [20, 5, 5]
    with pytest.raises(hp.HaarPoolError, match="molecules given as SMILES"):
        make_splits("scaffold", random_graphs())
    with pytest.raises(hp.HaarPoolError, match="1 scaffold of 50"):
        make_splits("scaffold", random_graphs(ids=("CC",) * 50, id_name="smiles"))


def test_scaffolds_in_the_order_of_deepchem():
    """Largest group first, of equal ones the last; train, then validation, then test."""

    def ring(size, tail):
        return "C" * tail + "C1" + "C" * (size - 2) + "C1"

    # Of 100 molecules: 75 train; 16 fit only into the test part; of the single ones the last five
    # train and the others validate.
    sizes = [75, 16, *[1] * 9]
    smiles = tuple(ring(kind + 3, i + 1) for kind, size in enumerate(sizes) for i in range(size))
    (split,) = make_splits("scaffold", random_graphs(100, ids=smiles, id_name="smiles"))
    assert split.train.tolist() == [*range(75), *range(95, 100)]
    assert split.validation.tolist() == [*range(91, 95)]
    assert split.test.tolist() == [*range(75, 91)]


@needs_data
@pytest.mark.parametrize(
    ("name", "target", "sizes"),
    [("BBBP", "BBBP", [1631, 204, 204]), ("BACE", "Class", [1210, 151, 152])],
)
@pytest.mark.filterwarnings("ignore:.*invalid SMILES")
def test_scaffold_splits_of_moleculenet_have_both_classes(name, target, sizes):
    graphs = read_graphs(f"{REAL}/molecules/{name}.csv", targets=[target])
    (split,) = make_splits("scaffold", graphs)
    assert [len(part) for part in split] == sizes
    assert missing(graphs, [split]) == ""


def test_published_split():
    parts = {"train": np.arange(30), "validation": np.arange(30, 40), "test": np.arange(40, 50)}
    graphs = random_graphs(split=parts)
    splits = make_splits("given", graphs, repeats=2)
    assert splits[0].train.tolist() == list(range(30))
    assert splits[0].digest() == splits[1].digest()
    with pytest.raises(hp.HaarPoolError, match="a published split"):
        make_splits("given", random_graphs())


def test_published_folds():
    folds = np.arange(30) % 5
    graphs = random_graphs(30, folds=folds)
    splits = make_splits("given", graphs, repeats=2)
    assert len(splits) == 10
    for fold, split in enumerate(splits[:5]):
        assert set(folds[split.test]) == {fold}
        assert set(folds[split.validation]) == {(fold + 1) % 5}
        assert sum(map(len, split)) == 30
    assert splits[0].digest() == splits[5].digest()
    assert default_rule(graphs) != "given"  # folds are used only if asked for
    assert num_folds("given", graphs) == 5
    assert num_folds("random", graphs) is None
    assert num_folds("given", random_graphs(30)) is None


def test_files(tmp_path):
    graphs = random_graphs()
    splits = make_splits("random", graphs, repeats=3)
    path = tmp_path / "split.json"
    path.write_text(as_json(splits))
    for repeats in (1, 3):
        found = make_splits(str(path), graphs, repeats=repeats)
        assert [s.digest() for s in found] == [s.digest() for s in splits]
    path.write_text(json.dumps(dict(zip(Split._fields, ([0, 1], [2], [3]), strict=True))))
    assert len(make_splits(str(path), graphs, repeats=4)) == 4


BAD = {
    "no such rule": ("halves", "split stratified, random, nodes, scaffold"),
    "two folds": ("kfold:2", "K >= 3"),
    "folds in words": ("kfold:ten", "K >= 3"),
    "more folds than graphs": ("kfold:51", "at least 51 graphs"),
}
BAD_FILES = {
    "no JSON": ("{", "check the file"),
    "a part is missing": ('{"train": [0], "test": [1]}', "train, validation, test"),
    "an empty part": ('{"train": [0], "validation": [], "test": [1]}', "validation"),
    "graph 50 of 50": ('{"train": [0], "validation": [50], "test": [1]}', "0..49"),
    "negative": ('{"train": [0], "validation": [-1], "test": [1]}', "got -1"),
    "not whole": ('{"train": [0.5], "validation": [1], "test": [2]}', "float64"),
    "twice": ('{"train": [0, 7], "validation": [7], "test": [2]}', "graph 7 2 times"),
    "a number": ("7", "got int"),
    "no splits": ("[]", "an empty list"),
    "rows": ('{"train": [[0, 1], [2]], "validation": [1], "test": [2]}', "same length"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rules(name):
    rule, part = BAD[name]
    with pytest.raises(hp.HaarPoolError, match=part):
        make_splits(rule, random_graphs())


@pytest.mark.parametrize("name", Split._fields)
def test_parts_without_labels(name, tmp_path):
    graphs = random_graphs()
    graphs.targets[7] = -1
    path = tmp_path / "split.json"
    parts = {part: [i] for i, part in enumerate(Split._fields)} | {name: [7]}
    path.write_text(json.dumps(parts))
    with pytest.raises(hp.HaarPoolError, match=f"a graph with a label under {name}"):
        make_splits(str(path), graphs)


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(name, tmp_path):
    text, part = BAD_FILES[name]
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(hp.HaarPoolError, match=part):
        make_splits(str(path), random_graphs())


def test_other_errors(tmp_path):
    with pytest.raises(hp.HaarPoolError, match="at least 3 graphs"):
        make_splits("random", random_graphs(2))
    path = tmp_path / "split.json"
    path.write_text(as_json(make_splits("random", random_graphs(), repeats=3)))
    with pytest.raises(hp.HaarPoolError, match="1 or 2 splits"):
        make_splits(str(path), random_graphs(), repeats=2)
