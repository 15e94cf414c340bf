"""What a run writes about itself: its configuration, its scores and its test predictions."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from haarpool._files import atomic_write
from haarpool._numbers import as_json
from haarpool._text import count, safe_cells
from haarpool._types import Floats
from haarpool._versions import RUN, find_versions
from haarpool.datasets.splits import NodeSplit, Split, num_folds
from haarpool.datasets.summary import summary
from haarpool.nn.networks.network import num_weights
from haarpool.training.devices import device_name
from haarpool.training.drawn_graphs import DrawnGraphs
from haarpool.training.run import SCORED, Run
from haarpool.training.run_folder import (
    DRAWN_GRAPHS,
    EXAMPLE_CHAIN,
    MODEL,
    RESULT,
    TEST,
    RunFolder,
)
from haarpool.training.trained_model import model_tensors

MAX_DRAWN = 1000  # nodes; a layout of more takes long and shows little
MIN_TEST_GRAPHS = 10  # with fewer, one graph changes the accuracy by more than 10 %


def describe_run(run: Run, command: str, read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `config.json`.

    Args:
        run: The run.
        command: The command that started it.
        read: The arguments of `read_graphs`.
    """
    graphs, network = run.graphs, run.network
    chains = None
    if run.chains is not None:
        chains = {**network.arch.chain_defaults, **run.config.chain, **network.chain_parameters}
        chains |= {"num_levels": run.chains.example.num_levels, "digest": run.chains.digest}
    return {
        "command": command,
        "versions": find_versions(*RUN),
        "device": device_name(run.group.device),
        "processes": run.group.size,
        "bfloat16": run.config.precision == "bfloat16",
        "data": {
            "read": dict(read),
            "name": graphs.name,
            "task": graphs.task,
            "classes": list(graphs.classes),
            "target_names": list(graphs.target_names),
            "encoding": run.encoding.to_json(),
            "features": run.encoding.describe(),
            "width": run.encoding.width,
            "digest": graphs.digest(),
            "summary": summary(graphs),
        },
        "model": {
            "arch": run.config.arch,
            "in_channels": network.in_channels,
            "out_channels": network.out_channels,
            "domain": network.domain,
            "dropout": run.config.dropout,
            "num_parameters": num_weights(network),
        },
        "chain": chains,
        "training": run.config.to_json(),
        "split_digests": [split.digest() for split in run.splits],
    }


def write_results(run: Run, folder: RunFolder) -> None:
    """Write the model, the test predictions, the scores and what else the report shows."""
    assert run.model is not None
    folder.write_tensors(MODEL, model_tensors(run.model))
    with (
        atomic_write(folder.path / TEST) as partial,
        open(partial, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        columns = run.network.task.test_columns(run.graphs.names)
        ids = ["repeat", "graph", *["node"] * run.network.task.of_nodes]
        writer.writerow(safe_cells([*ids, *columns]))
        writer.writerows(map(safe_cells, _test_rows(run)))
    if run.chains is not None:
        run.chains.example.save(folder.path / EXAMPLE_CHAIN)
    folder.write_json(RESULT, run_result(run))
    # Last: the report works without these pictures.
    if drawn := DrawnGraphs.of_run(run):
        drawn.save(folder.path / DRAWN_GRAPHS)


def run_result(run: Run) -> dict[str, Any]:
    """Return the content of `result.json`: the scores of all repeats.

    The mean of a score is over the repeats in which it is defined; "each" has null for the others.
    ROC-AUC is not defined for more than two classes, nor in a part with one class only.

    "members" has the scores of single members beside those of their mean prediction, with a list
    per repeat under "each"; None unless there are several. "targets" has the scores of each target,
    and "scored_targets" the number of targets in the mean of the main score; None unless there are
    several. "example_positions" has where the nodes of the graph "example_graph" are drawn, and
    "example_signal" the first column of their features "x"; None without positions in the plane.
    """
    results, task = run.results, run.network.task
    parts = [part for r in results for part in (r.validation, r.test)]
    names = [one.name for one in task.scores if any(one.name in part for part in parts)]
    return {
        "dataset": run.graphs.name,
        "arch": run.config.arch,
        "features": run.encoding.describe(),
        "metric": task.scores[0].name,
        "repeats": len(results),
        "ensemble": run.config.ensemble,
        "folds": num_folds(run.config.split, run.graphs),
        "scores": _scores(names, {part: [getattr(r, part) for r in results] for part in SCORED}),
        "members": _member_results(run, names) if run.config.ensemble > 1 else None,
        **_target_results(run),
        "best_epoch": [result.best_epoch for result in results],
        "model_of_repeat": run.model_repeat,
        "example_graph": None if run.chains is None else run.chains.example_graph,
        **_example_picture(run),
        "graphs": {p: [len(getattr(s, p)) for s in run.splits] for p in Split._fields},
        "parts_of": _parts_of(run),
        "seconds": sum(epoch.seconds for epoch in run.epochs),
    }


def statistics_of(scores: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the statistics of all parts from scores in `result.json`."""
    return [score[part] for score in scores.values() for part in SCORED]


def num_defined(score: Mapping[str, Any]) -> int:
    """Return in how many repeats a score is defined.

    Args:
        score: Statistics of a score in `result.json`.

    Example:
        >>> num_defined({"mean": 0.5, "std": None, "each": [0.5, None]})
        1
    """
    members = [one if isinstance(one, list) else [one] for one in score["each"]]
    return sum(None not in one for one in members)


def scored_targets(result: Mapping[str, Any]) -> str:
    """Return for how many targets the main score is defined in the test parts, as text.

    Args:
        result: Content of `result.json` of a run with several targets.

    Example:
        >>> scored_targets({"targets": {"a": {}, "b": {}}, "scored_targets": {"test": [2, 1]}})
        '1 to 2 of 2'
    """
    numbers, total = result["scored_targets"]["test"], len(result["targets"])
    low, high = min(numbers), max(numbers)
    scored = f"{low}" if low == high else f"{low} to {high}"
    return scored if low == high == total else f"{scored} of {total}"


def small_test_part(result: Mapping[str, Any]) -> str:
    """Say that a test part has too few graphs for its scores to mean much; "" if all have enough.

    Args:
        result: Content of `result.json`.

    Example:
        >>> small_test_part({"graphs": {"test": [2]}})
        'the test part has 2 graphs: its scores say little'
        >>> small_test_part({"graphs": {"test": [9, 8]}})
        'a test part has only 8 graphs: the scores of a single repeat say little'
        >>> small_test_part({"graphs": {"test": [1]}, "parts_of": "signals"})
        'the test part has 1 signal: its scores say little'
    """
    smallest, repeats = min(result["graphs"]["test"]), len(result["graphs"]["test"])
    if smallest >= MIN_TEST_GRAPHS:
        return ""
    counted = count(smallest, result.get("parts_of", "graphs").removesuffix("s"))
    if repeats > 1:
        return f"a test part has only {counted}: the scores of a single repeat say little"
    return f"the test part has {counted}: its scores say little"


def _parts_of(run: Run) -> str:
    """Return what the parts of the splits consist of."""
    if isinstance(run.splits[0], NodeSplit):
        return "nodes"
    return "signals" if run.graphs.signals else "graphs"


def _example_picture(run: Run) -> dict[str, Any]:
    """Return what the report draws of its example graph besides the chain, rounded."""
    positions = signal = None
    if run.chains is not None and run.chains.example.sizes[0] <= MAX_DRAWN:
        positions = run.graphs.positions(run.chains.example_graph)
    if positions is not None and "x" in run.graphs.columns:
        assert run.chains is not None
        nodes = run.graphs.start[run.chains.example_graph :][:2].tolist()
        signal = run.graphs.columns["x"][slice(*nodes), 0]
    return {"example_positions": _rounded(positions), "example_signal": _rounded(signal)}


def _rounded(values: Floats | None) -> list[Any] | None:
    """Return values with the digits that a picture shows."""
    if values is None:
        return None
    width = float(np.ptp(values, axis=0).max()) or 1.0
    digits = 4 - math.floor(math.log10(width))
    rounded: list[Any] = np.round(values.astype(np.float64), digits).tolist()
    return rounded


def _member_results(run: Run, names: Iterable[str]) -> dict[str, Any]:
    """Return the scores of single members, and the mean and spread of their mean per repeat."""

    def each(name: str, part: str) -> list[list[float]]:
        return [[getattr(m, part).get(name, math.nan) for m in r.members] for r in run.results]

    return {
        "scores": {
            name: {part: _statistics(each(name, part)) for part in SCORED} for name in names
        },
        "best_epoch": [[m.best_epoch for m in r.members] for r in run.results],
    }


def _target_results(run: Run) -> dict[str, Any]:
    """Return the scores of each target, and for how many of them the main score is defined."""
    targets = [result.targets for result in run.results if result.targets]
    if not targets:
        return {"targets": None, "scored_targets": None}
    names = [one.name for one in run.network.task.scores]
    parts = {part: [scores[part] for scores in targets] for part in SCORED}
    return {
        "targets": {
            name: _scores(names, {part: [one[t] for one in each] for part, each in parts.items()})
            for t, name in enumerate(run.network.task.column_names(run.graphs.names))
        },
        "scored_targets": {
            part: [sum(names[0] in scores for scores in one) for one in each]
            for part, each in parts.items()
        },
    }


def _scores(
    names: Iterable[str], parts: Mapping[str, Sequence[Mapping[str, float]]]
) -> dict[str, Any]:
    """Return statistics of the scores of each repeat, by name and part."""
    return {
        name: {
            part: _statistics([scores.get(name, math.nan) for scores in each])
            for part, each in parts.items()
        }
        for name in names
    }


def _statistics(values: Sequence[float | list[float]]) -> dict[str, Any]:
    """Return mean and standard deviation over the repeats that define a score, as JSON has them.

    Args:
        values: The score of each repeat, or of each member of it.
    """
    means = np.array([np.mean(value) for value in values])
    defined = means[np.isfinite(means)]
    return {
        "mean": float(np.mean(defined)) if len(defined) else None,
        "std": float(np.std(defined, ddof=1)) if len(defined) > 1 else None,
        "each": as_json(values),
    }


def _test_rows(run: Run) -> Iterator[list[Any]]:
    task, names, targets = run.network.task, run.graphs.names, run.graphs.targets
    assert targets is not None
    for repeat, (split, result) in enumerate(zip(run.splits, run.results, strict=True)):
        rows = split.rows(split.test, run.graphs)
        for row, *place, predicted in zip(
            rows, *run.graphs.places(rows), result.predicted, strict=True
        ):
            if task.labelled(targets[row : row + 1]).all():
                yield [repeat, *place, *task.test_cells(targets[row], predicted, names)]
