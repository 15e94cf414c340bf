"""Splits of a dataset into training, validation and test part: one `Split` per repeat."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from haarpool import _validate
from haarpool._text import count
from haarpool._types import Ints
from haarpool.chains.adjacency import as_array
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.nodes import MASKS
from haarpool.errors import HaarPoolError

RULES = "stratified, random, nodes, scaffold, kfold:K, given, or a JSON file"


class Split(NamedTuple):
    """A split: numbers of graphs in ascending order; no graph is in two parts.

    Attributes:
        train: Graphs of the training part.
        validation: Graphs of the validation part, which may choose the epoch.
        test: Graphs of the test part.
    """

    train: Ints
    validation: Ints
    test: Ints

    def digest(self) -> str:
        """Return a hash of the three parts."""
        text = json.dumps([part.tolist() for part in self])
        return sha256(text.encode()).hexdigest()

    def graphs(self, part: Ints) -> Ints:
        """Return the graphs that a network reads for a part."""
        return part

    def rows(self, part: Ints, graphs: Graphs) -> Ints:
        """Return the rows of the targets of a part."""
        return graphs.rows(part)


class NodeSplit(Split):
    """A split of the nodes of a single graph: a network reads all of them, for every part."""

    def graphs(self, part: Ints) -> Ints:
        """Return the graph."""
        return np.zeros(1, np.int64)

    def rows(self, part: Ints, graphs: Graphs) -> Ints:
        """Return the nodes of the part."""
        return part


class _Units(NamedTuple):
    """What is split: the graphs or signals of a dataset, or the nodes of its only graph.

    Attributes:
        noun: What they are.
        labels: Their labels, for errors.
        labelled: Numbers of those with a label.
        number: Number of all.
        strata: The class of each, which parts share evenly; None if they have none each.
        split: The class of their splits.
    """

    noun: str
    labels: str
    labelled: Ints
    number: int
    strata: Ints | None
    split: type[Split]

    @classmethod
    def of(cls, graphs: Graphs, *, nodes: bool = False) -> _Units:
        """Return the graphs, or the nodes, of a dataset."""
        task, targets = graphs.task, graphs.targets
        by_row = nodes == graphs.has_node_labels
        strata = None
        if task is not None and targets is not None and by_row:
            strata = task.strata(targets)
        labels = f"{task} on {graphs.name}"
        if nodes:
            assert task is not None
            assert targets is not None
            known = task.labelled(targets)
            return cls("node", labels, np.flatnonzero(known), len(known), strata, NodeSplit)
        labelled = np.flatnonzero(graphs.is_labelled)
        return cls(graphs.unit, labels, labelled, len(graphs), strata, Split)

    def class_counts(self) -> Ints:
        """Count the units of each class that has some; empty if they have no single class each."""
        if self.strata is None:
            return np.zeros(0, np.int64)
        return np.unique(self.strata[self.labelled], return_counts=True)[1]


def splits_nodes(graphs: Graphs) -> bool:
    """Return whether splits of a dataset are of its nodes by default: it has a single graph."""
    return graphs.has_node_labels and len(graphs) == 1


def make_splits(rule: str, graphs: Graphs, seed: int = 0, repeats: int = 1) -> list[Split]:
    """Make the splits of a run; graphs without label are in no part.

    Args:
        rule: "random": a new 80/10/10 split per repeat. "stratified": the same with about the same
            share of each class in every part; a class with few graphs is in the training part
            first, then in the test part, then in the validation part. "kfold:K": K splits per
            repeat; each fold is the test part once, with the next fold as validation part, and
            every fold has about the same share of each class. "scaffold": molecules with the same
            scaffold are in the same part, frequent scaffolds in the training part, as in DeepChem.
            "given": the published split; if there are published folds instead, each is the test
            part once, as for "kfold:K". The last two are the same in every repeat. Otherwise a
            JSON file with {"train": [...], "validation": [...], "test": [...]}, graphs numbered
            from 0, or with a list of these. If a single graph has labels at its nodes, its nodes
            are split instead of graphs; "nodes" is then "stratified" for classes, else "random".
        graphs: The dataset.
        seed: Seed of the random numbers; repeat r uses (seed, r).
        repeats: Number of repeats.

    Returns:
        One split per repeat; K times as many for "kfold:K" and for K published folds.
    """
    check_rule(rule)
    _validate.seed(seed)
    _validate.whole_number("repeats", repeats)
    if rule == "nodes" and not splits_nodes(graphs):
        got = f"{count(len(graphs), graphs.unit)} of {graphs.name}"
        got += "" if graphs.has_node_labels else ", without labels of nodes"
        raise HaarPoolError(
            "a single graph with labels at its nodes", got, "pass {split}", split="random"
        )
    units = _Units.of(graphs, nodes=splits_nodes(graphs))
    if rule == "nodes":
        rule = _even_rule(units)
    orders = (np.random.default_rng([seed, r]).permutation(units.labelled) for r in range(repeats))
    if rule == "random":
        return [_random(units, order) for order in orders]
    if rule == "stratified":
        return [_stratified(units, order) for order in orders]
    if k := num_folds(rule):
        return [split for order in orders for split in _folds(k, units, order)]
    if rule == "scaffold":
        return [_by_scaffold(graphs, units.labelled)] * repeats
    if rule == "given":
        return _published(graphs, units) * repeats
    return _from_file(Path(rule), units, repeats)


def check_rule(rule: str) -> None:
    """Raise an error unless `make_splits` knows a rule, or the rule is a file."""
    if rule in ("random", "stratified", "nodes", "scaffold", "given"):
        return
    if rule.partition(":")[0] == "kfold":
        if (num_folds(rule) or 0) < 3:
            remedy = "pass for example {split}"
            raise HaarPoolError(
                "kfold:K with K >= 3", f"{rule!r}", remedy, parameter="split", split="kfold:10"
            )
        return
    path = Path(rule)
    if path.is_file():
        return
    if path.suffix.lower() == ".json" or path.name != rule:
        got = f"{rule!r}, which is no file that exists"
        raise HaarPoolError(RULES, got, "check the path", parameter="split")
    remedy = "pass for example {split}"
    raise HaarPoolError(RULES, f"{rule!r}", remedy, parameter="split", split="random")


def default_rule(graphs: Graphs) -> str:
    """Return the rule that "auto" means: "given", else "stratified" for classes, else "random"."""
    nodes = splits_nodes(graphs)
    if graphs.node_splits if nodes else graphs.split is not None:
        return "given"
    return _even_rule(_Units.of(graphs, nodes=nodes))


def _even_rule(units: _Units) -> str:
    return "stratified" if units.class_counts().max(initial=0) >= len(Split._fields) else "random"


def hold_out(graphs: Graphs, share: float, seed: int = 0) -> Split:
    """Split the graphs with a label into a training and a validation part; the test part is empty.

    The nodes of a single graph with labels at nodes are split likewise, or as its masks say.

    Args:
        graphs: The dataset.
        share: Share of the validation part, in (0, 1). It is about the same for each class.
        seed: Seed of the random numbers.
    """
    units = _Units.of(graphs, nodes=splits_nodes(graphs))
    if units.split is NodeSplit and graphs.node_splits:
        train, validation, _ = _published(graphs, units)[0]
        return NodeSplit(train, validation, validation[:0])
    order = np.random.default_rng([seed, 0]).permutation(units.labelled)
    size = max(1, round(share * len(order)))
    if len(order) <= size:
        noun = f"{units.noun}s"
        raise HaarPoolError(f"at least 2 {noun} with a label", f"{len(order)}", f"add {noun}")
    counts = units.class_counts()
    if counts.max(initial=0) < 2:
        return _sorted(units, order[size:], order[:size], order[:0])
    sizes = _class_shares(counts, size, reserve=1)
    return _sorted(units, *_by_class(units, order, counts, [sizes]), order[:0])


def num_folds(rule: str, graphs: Graphs | None = None) -> int | None:
    """Return K of "kfold:K", or the number of folds of "given"; None without several folds.

    Args:
        rule: As in `make_splits`.
        graphs: The dataset, whose published folds "given" means.
    """
    if rule == "given" and graphs is not None and graphs.node_splits and splits_nodes(graphs):
        folds = len(graphs.node_splits)
        return folds if folds > 1 else None
    if rule == "given" and graphs is not None and graphs.split is None:
        return None if graphs.folds is None else int(graphs.folds.max()) + 1
    name, _, number = rule.partition(":")
    return int(number) if name == "kfold" and number.isdecimal() else None


def _random(units: _Units, order: Ints) -> Split:
    tenth = max(1, len(order) // 10)
    if len(order) < 3:
        expected = f"at least 3 {units.noun}s with a label, one per part"
        raise HaarPoolError(expected, f"{len(order)}", f"add {units.noun}s")
    return _sorted(units, order[2 * tenth :], order[:tenth], order[tenth : 2 * tenth])


def _stratified(units: _Units, order: Ints) -> Split:
    counts = units.class_counts()
    if counts.max(initial=0) < len(Split._fields):
        raise HaarPoolError(
            f"a class of at least 3 {units.noun}s for a stratified split, one per part",
            f"at most {counts.max()}" if len(counts) else units.labels,
            "pass {split}",
            split="random",
        )
    test = _class_shares(counts, len(order) // 10, reserve=1)
    validation = np.minimum(_class_shares(counts, len(order) // 10, reserve=2), counts - 1 - test)
    train, in_test, in_validation = _by_class(units, order, counts, [test, validation])
    return _sorted(units, train, in_validation, in_test)


def _class_shares(counts: Ints, size: int, reserve: int) -> Ints:
    """Spread `size` graphs over classes in proportion to their (C,) counts; one of each is left.

    A class with more than `reserve` graphs gives at least one, unless there are many classes.
    """
    # Rounding the running total, not each share, keeps the sum.
    totals = np.rint(np.cumsum(counts) * size / counts.sum()).astype(np.int64)
    shares: Ints = np.diff(totals, prepend=0)
    of_all = np.maximum(shares, counts > reserve)
    # With very many classes, one graph of each would take most graphs from the training part.
    if of_all.sum() <= max(1.5 * size, size + 5):
        shares = of_all
    return np.minimum(shares, counts - 1)


def _by_class(units: _Units, order: Ints, counts: Ints, sizes: Sequence[Ints]) -> list[Ints]:
    """Cut parts off each class: the rest, then one part for each (C,) entry of `sizes`."""
    assert units.strata is not None
    order = order[np.argsort(units.strata[order], kind="stable")]
    # Position of each graph in its class, and the part that has this position.
    position = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = np.repeat(np.cumsum(sizes, axis=0), counts, axis=1)
    part = (position >= ends).sum(axis=0)
    return [order[part == len(sizes)], *(order[part == i] for i in range(len(sizes)))]


def _folds(k: int, units: _Units, order: Ints) -> list[Split]:
    if len(order) < k:
        raise HaarPoolError(
            f"at least {k} {units.noun}s with a label for kfold:{k}",
            f"{len(order)}",
            "use fewer folds, for example {split}",
            split=f"kfold:{max(3, len(order))}",
        )
    if units.strata is not None:
        order = order[np.argsort(units.strata[order], kind="stable")]
    return _rotated(
        units, [order[i::k] for i in range(k)]
    )  # every k-th graph, so that classes are even


def _rotated(units: _Units, folds: Sequence[Ints]) -> list[Split]:
    """Return a split per fold: the fold is its test part, the next one its validation part."""
    k = len(folds)
    return [
        _sorted(
            units,
            np.concatenate([fold for i, fold in enumerate(folds) if i not in (t, (t + 1) % k)]),
            folds[(t + 1) % k],
            folds[t],
        )
        for t in range(k)
    ]


def _published(graphs: Graphs, units: _Units) -> list[Split]:
    """Return the published splits, or one split for each published fold."""
    if units.split is NodeSplit and graphs.node_splits:
        _check_masks(graphs.node_splits)
        return [_check_split(one, units, "the published split") for one in graphs.node_splits]
    if graphs.split is not None:
        return [_check_split(graphs.split, units, "the published split")]
    if graphs.folds is None:
        raise HaarPoolError(
            "a dataset with a published split", graphs.name, "pass {split}", split="random"
        )
    folds = np.where(graphs.is_labelled, graphs.folds, -1)
    return _rotated(
        units, [np.flatnonzero(folds == fold) for fold in range(graphs.folds.max() + 1)]
    )


def _check_masks(splits: Sequence[Mapping[str, Ints]]) -> None:
    """Raise an error if a mask marks no node."""
    for column, split in enumerate(splits):
        for part, mask in MASKS.items():
            if not len(split[part]):
                where = f"column {column} of {mask}" if len(splits) > 1 else mask
                raise HaarPoolError(f"a node in {where}", "none", "mark one")


def _by_scaffold(graphs: Graphs, labelled: Ints) -> Split:
    if graphs.id_name != "smiles" or graphs.ids is None:
        raise HaarPoolError(
            "molecules given as SMILES", graphs.name, "pass {split}", split="random"
        )
    from haarpool.datasets.smiles import scaffolds

    groups = defaultdict[str, list[int]](list)
    for g, scaffold in zip(labelled, scaffolds([graphs.ids[g] for g in labelled]), strict=True):
        groups[scaffold].append(int(g))
    # As in DeepChem: large groups first; of groups of the same size, the one that appears last.
    ordered = sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True)
    parts = _fill(ordered, 0.8 * len(labelled), 0.9 * len(labelled))
    if not all(parts):  # a scaffold has most molecules: it trains, and the others are halved
        largest = len(ordered[0])
        parts = _fill(ordered, largest, (largest + len(labelled)) / 2)
    if not all(parts):
        raise HaarPoolError(
            "enough scaffolds for three parts",
            f"{len(groups)} scaffold{'s' * (len(groups) > 1)} of {len(labelled)} molecules",
            "pass {split}",
            split="random",
        )
    return _sorted(_Units.of(graphs), *(np.array(part) for part in parts))


def _fill(groups: Sequence[list[int]], train_end: float, validation_end: float) -> list[list[int]]:
    """Put each group into the first part where it fits; both ends are sums of sizes of parts."""
    train, validation, test = list[int](), list[int](), list[int]()
    for group in groups:
        if len(train) + len(group) <= train_end:
            train += group
        elif len(train) + len(validation) + len(group) <= validation_end:
            validation += group
        else:
            test += group
    return [train, validation, test]


def _from_file(path: Path, units: _Units, repeats: int) -> list[Split]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        got = f"{path} ({error})"
        raise HaarPoolError(RULES, got, "check the file", parameter="split") from error
    parts = content if isinstance(content, list) else [content]
    if not parts:
        raise HaarPoolError(f"a split in {path}", "an empty list", "add one")
    splits = [_check_split(split, units, str(path)) for split in parts]
    if len(splits) not in (1, repeats) and repeats != 1:
        raise HaarPoolError(
            f"1 or {repeats} splits in {path}, as many as repeats",
            f"{len(splits)}",
            "leave out {repeats}",
            repeats=...,
        )
    return splits * (repeats // len(splits) or 1)


def _check_split(split: Any, units: _Units, where: str) -> Split:
    """Check a split from a file or a dataset; `where` names it in error messages."""
    if not isinstance(split, Mapping) or set(split) != set(Split._fields):
        raise HaarPoolError(
            f"lists of {units.noun}s under {', '.join(Split._fields)} in {where}",
            f"{sorted(split) if isinstance(split, Mapping) else type(split).__name__}",
            "name all three parts and nothing else",
        )
    parts = []
    for name in Split._fields:
        numbers = as_array(split[name], f"{name} in {where}")
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
            raise HaarPoolError(
                f"numbers of {units.noun}s under {name} in {where}",
                "none" if not numbers.size else f"{numbers.dtype}",
                f"number {units.noun}s from 0",
            )
        if numbers.min() < 0 or numbers.max() >= units.number:
            raise HaarPoolError(
                f"{units.noun}s in 0..{units.number - 1} under {name} in {where}",
                f"{numbers.min() if numbers.min() < 0 else numbers.max()}",
                f"number {units.noun}s from 0",
            )
        parts.append(numbers.astype(np.int64))
    counts = np.bincount(np.concatenate(parts))
    if counts.max() > 1:
        raise HaarPoolError(
            f"each {units.noun} at most once in {where}",
            f"{units.noun} {counts.argmax()} {counts.max()} times",
            "leave it in one part only",
        )
    labelled = [np.intersect1d(part, units.labelled) for part in parts]
    for name, part in zip(Split._fields, labelled, strict=True):
        if not len(part):
            raise HaarPoolError(
                f"a {units.noun} with a label under {name} in {where}",
                "none",
                "add one, or add a label",
            )
    return _sorted(units, *labelled)


def _sorted(units: _Units, *parts: Ints) -> Split:
    return units.split(*(np.sort(part) for part in parts))


def as_json(splits: Sequence[Split]) -> str:
    """Return splits as the text of a file that `make_splits` reads."""
    return json.dumps([{n: p.tolist() for n, p in s._asdict().items()} for s in splits])
