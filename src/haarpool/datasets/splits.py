"""Which graphs train, which choose the epoch, which test: one `Split` per repeat."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from haarpool._types import Ints
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError

PARTS = ("train", "validation", "test")
RULES = "random, scaffold, kfold:K, given, or a JSON file"


class Split(NamedTuple):
    """Numbers of graphs, each part in rising order; no graph stands in two parts."""

    train: Ints
    validation: Ints
    test: Ints

    def digest(self) -> str:
        """A hash of the three parts."""
        text = json.dumps([part.tolist() for part in self])
        return sha256(text.encode()).hexdigest()


def make_splits(rule: str, graphs: Graphs, seed: int = 0, repeats: int = 1) -> list[Split]:
    """The splits of a run, of the labelled graphs.

    Args:
        rule: "random": a fresh 80/10/10 split per repeat. "kfold:K": K splits per repeat, in which
            each fold tests once and the next one chooses the epoch; classes are spread evenly.
            "scaffold": molecules of one scaffold stay together, frequent scaffolds train; "given":
            the published split; these two are the same in every repeat. Else a JSON file with
            {"train": [...], "validation": [...], "test": [...]}, graphs counted from 0, or a list
            of such.
        graphs: the dataset.
        seed: of the shuffles; repeat r takes (seed, r).
        repeats: how often.
    """
    labelled = np.flatnonzero(graphs.is_labelled)
    if rule == "random":
        splits = [_random(labelled, seed, r) for r in range(repeats)]
    elif rule.partition(":")[0] == "kfold":
        splits = [s for r in range(repeats) for s in _folds(rule, graphs, labelled, seed, r)]
    elif rule == "scaffold":
        splits = [_by_scaffold(graphs, labelled)] * repeats
    elif rule == "given":
        if graphs.split is None:
            raise HaarPoolError(
                "a dataset with a published split for --split given",
                graphs.name,
                "take --split random",
            )
        splits = [_checked(graphs.split, graphs, "the published split")] * repeats
    elif Path(rule).is_file():
        splits = _from_file(Path(rule), graphs, repeats)
    else:
        raise HaarPoolError(f"a split: {RULES}", f"{rule!r}", "take for example --split random")
    return splits


def num_folds(rule: str) -> int | None:
    """K of "kfold:K"; None for other rules."""
    name, _, number = rule.partition(":")
    return int(number) if name == "kfold" and number.isdecimal() else None


def _random(labelled: Ints, seed: int, repeat: int) -> Split:
    order = np.random.default_rng([seed, repeat]).permutation(labelled)
    tenth = max(1, len(order) // 10)
    if len(order) < 3:
        raise HaarPoolError(
            "at least 3 graphs with a label, one per part", f"{len(order)}", "add graphs"
        )
    return _sorted(order[2 * tenth :], order[:tenth], order[tenth : 2 * tenth])


def _folds(rule: str, graphs: Graphs, labelled: Ints, seed: int, repeat: int) -> list[Split]:
    k = num_folds(rule)
    if k is None or k < 3:
        raise HaarPoolError("kfold:K with K >= 3", f"{rule!r}", "take for example kfold:10")
    if len(labelled) < k:
        raise HaarPoolError(
            f"at least {k} graphs with a label for {rule}",
            f"{len(labelled)}",
            f"take fewer folds, for example kfold:{max(3, len(labelled))}",
        )
    order = np.random.default_rng([seed, repeat]).permutation(labelled)
    if graphs.task == "classification" and graphs.targets is not None:
        order = order[np.argsort(graphs.targets[order], kind="stable")]
    folds = [order[i::k] for i in range(k)]  # dealt like cards, so classes spread evenly
    return [
        _sorted(
            np.concatenate([fold for i, fold in enumerate(folds) if i not in (t, (t + 1) % k)]),
            folds[(t + 1) % k],
            folds[t],
        )
        for t in range(k)
    ]


def _by_scaffold(graphs: Graphs, labelled: Ints) -> Split:
    if graphs.id_name != "smiles" or graphs.ids is None:
        raise HaarPoolError(
            "molecules given as SMILES for --split scaffold", graphs.name, "take --split random"
        )
    from haarpool.datasets.smiles import scaffolds

    groups = defaultdict[str, list[int]](list)
    for g, scaffold in zip(labelled, scaffolds([graphs.ids[g] for g in labelled]), strict=True):
        groups[scaffold].append(int(g))
    # Large groups come first and train, so that what tests has scaffolds that were not seen.
    train, validation, test = list[int](), list[int](), list[int]()
    for group in sorted(groups.values(), key=lambda members: (-len(members), members)):
        if not train or len(train) + len(group) <= 0.8 * len(labelled):
            train += group
        else:
            (validation if len(validation) <= len(test) else test).extend(group)
    parts = (train, validation, test)
    if not all(parts):
        raise HaarPoolError(
            "enough scaffolds for three parts",
            f"{len(groups)} scaffolds of {len(labelled)} molecules",
            "take --split random",
        )
    return _sorted(*(np.array(part) for part in parts))


def _from_file(path: Path, graphs: Graphs, repeats: int) -> list[Split]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise HaarPoolError(f"a split: {RULES}", f"{path} ({error})", "check the file") from error
    many = found if isinstance(found, list) else [found]
    splits = [_checked(split, graphs, str(path)) for split in many]
    if len(splits) not in (1, repeats) and repeats != 1:
        raise HaarPoolError(
            f"1 or {repeats} splits in {path}, as many as repeats",
            f"{len(splits)}",
            "leave --repeats out",
        )
    return splits * (repeats // len(splits) or 1)


def _checked(given: Any, graphs: Graphs, where: str) -> Split:
    """A split that comes from outside."""
    if not isinstance(given, Mapping) or set(given) != set(PARTS):
        raise HaarPoolError(
            f"lists of graphs under {', '.join(PARTS)} in {where}",
            f"{sorted(given) if isinstance(given, Mapping) else type(given).__name__}",
            "name all three parts and nothing else",
        )
    parts = []
    for name in PARTS:
        numbers = np.asarray(given[name])
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
            raise HaarPoolError(
                f"numbers of graphs under {name} in {where}",
                "none" if not numbers.size else f"{numbers.dtype}",
                "count graphs from 0",
            )
        if numbers.min() < 0 or numbers.max() >= len(graphs):
            raise HaarPoolError(
                f"graphs in 0..{len(graphs) - 1} under {name} in {where}",
                f"{numbers.min() if numbers.min() < 0 else numbers.max()}",
                "count graphs from 0",
            )
        parts.append(numbers.astype(np.int64))
    every = np.concatenate(parts)
    if len(np.unique(every)) < len(every):
        twice = np.flatnonzero(np.bincount(every) > 1)[0]
        raise HaarPoolError(
            f"each graph at most once in {where}",
            f"graph {twice} twice",
            "leave it in one part only",
        )
    labelled = [part[graphs.is_labelled[part]] for part in parts]
    for name, part in zip(PARTS, labelled, strict=True):
        if not len(part):
            raise HaarPoolError(
                f"a graph with a label under {name} in {where}", "none", "add one, or its label"
            )
    return _sorted(*labelled)


def _sorted(*parts: Ints) -> Split:
    return Split(*(np.sort(part) for part in parts))


def as_json(splits: Sequence[Split]) -> str:
    """Splits as the text of a file that `make_splits` reads."""
    return json.dumps([{n: p.tolist() for n, p in zip(PARTS, s, strict=True)} for s in splits])
