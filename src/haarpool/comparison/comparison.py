"""`compare`: train methods on the same splits of some datasets, and say what came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from inspect import signature
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock, Timeout

from haarpool._files import write_text
from haarpool._numbers import as_json, fixed
from haarpool._progress import ProgressOption
from haarpool._text import count
from haarpool._validate import seed as check_seed
from haarpool.comparison.conclusions import conclusions
from haarpool.comparison.document import Grid, to_html, write_document
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import ResultLines, is_good, make_folder
from haarpool.comparison.methods import Method, default_methods, find_method, unique
from haarpool.comparison.picture import draw_intervals
from haarpool.comparison.report import TableReport
from haarpool.comparison.runner import run_table
from haarpool.comparison.statistics import estimate, paired_difference
from haarpool.comparison.table import REPEATS, Cell, Row, Table
from haarpool.comparison.trials import SCHEMA, data_hash
from haarpool.datasets import as_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.reading import labelled_graphs, words_of_graphs
from haarpool.datasets.splits import check_rule, default_rule
from haarpool.errors import HaarPoolError, errors_in_words, python_words
from haarpool.training.config import RunConfig
from haarpool.training.run import check_labels
from haarpool.training.run_folder import LOCK

LINES = "trainings"  # folder of the lines
RESULT, FIGURE = "result.json", "intervals.png"
TEXT = (
    "Every method is trained on the same splits. Intervals are those of 95 % for the mean over "
    "splits, mean ± t · s · sqrt(1/n + n_test/n_train) after Nadeau and Bengio (2003), because the "
    "training parts of splits overlap. Differences are paired: the same formula on the differences "
    "over the splits. No choice reads the test part. Seconds are those of a training on one "
    "thread, without reading and chains."
)


class Comparison(TableReport):
    """The result of `compare`: printed, it is a table.

    Example:
        >>> result = compare("rings", methods=["GC8-SUM-FC8"], repeats=1, settings={"epochs": 1})
        >>> [row["method"] for row in result.rows()]
        ['GC8-SUM-FC8']
    """

    shows_protocol = False
    details_caption = "{}: all methods. Seconds of a training, and weights of the network."
    last_header = ("Seconds", "Weights")

    @property
    def shows_overview(self) -> bool:
        """Whether there are several datasets."""
        return len(self.table.datasets) > 1

    def last_columns(self, row: Row, dataset: str, lines: Sequence[Line]) -> Sequence[str]:
        """Return seconds per training, and the number of weights."""
        seconds = sum(line["training_seconds"] for line in lines) / len(lines)
        return [fixed(seconds, 1), f"{lines[0]['num_parameters']:,}"]

    def conclusions(self) -> list[str]:
        """Return in words what the intervals allow to say."""
        return conclusions(self)

    def failed(self) -> list[str]:
        """Return which trainings failed, and why."""
        cells = self.table.cells
        return [text for cell in cells for text in self.failures(cell, self.lines[cell.key])]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each method and dataset, for example for `pandas.DataFrame`.

        Scores are as in the lines: accuracies between 0 and 1. What is not known is None.
        """
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        reference = self.table.reference
        for cell in self.table.cells:
            lines, all_lines = self.ok(*cell.key), self.lines[cell.key]
            row: dict[str, Any] = {
                "dataset": cell.dataset, "method": cell.method, "title": self.titles[cell.method],
                "split": cell.protocol, "trainings": len(lines),
                "failed": len(all_lines) - len(lines),
            }  # fmt: skip
            reasons = [line["reason"] for line in all_lines if not is_good(line)]
            row["reason"] = reasons[0] if reasons else None
            if lines:
                value = estimate(lines)
                low, high = value.interval
                row |= {
                    "metric": lines[0]["metric"], "splits": value.splits, "mean": value.mean,
                    "std": value.std, "low": low, "high": high,
                }  # fmt: skip
                others = self.ok(cell.dataset, reference, cell.protocol)
                if cell.method != reference and (gain := paired_difference(lines, others)):
                    low, high = gain.interval
                    row |= {"difference": gain.mean, "difference_low": low, "difference_high": high}
                row |= {
                    "seconds": sum(line["training_seconds"] for line in lines) / len(lines),
                    "weights": lines[0]["num_parameters"],
                }
            yield as_json(row)

    def grids(self) -> list[Grid]:
        """Return a table for each dataset, narrow enough for a terminal."""
        return list(map(self._narrow, self.table.datasets))

    def _narrow(self, dataset: str) -> Grid:
        full, score = self.details(dataset), self.score(dataset)
        header = ["Method", "Mean", *full.header[3:5], "s", "Weights"]
        rows = [[title, mean.partition(" ")[0], *rest] for title, _, mean, *rest in full.rows]
        rules = {cell.protocol for cell in self.table.cells if cell.dataset == dataset}
        of = f", {score.title}{' in %' * score.is_share}" if score else ""
        splits = f"{count(self.repeats, 'split')} ({', '.join(rules)})"
        return Grid(f"{dataset}: test part of {splits}{of}", header, rows)

    def write(self, folder: Path) -> list[Path]:
        """Write tables, figure and numbers to a folder; return the files."""
        picture = draw_intervals(self, folder / FIGURE)
        parts = ["# Comparison", *self.conclusions()]
        parts += [f"![Means with 95 % intervals]({FIGURE})"] if picture else []
        content = {"schema": SCHEMA, "rows": self.rows(), "conclusions": self.conclusions()}
        write_text(folder / RESULT, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return [*write_document([*parts, *self.parts()], folder), folder / RESULT]

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.grids()), *self.conclusions()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html(["# Comparison", *self.conclusions(), *self.grids()])


def compare(
    graphs: Any,
    y: Any = None,
    methods: Iterable[str] | None = None,
    *,
    repeats: int = REPEATS,
    split: str = "auto",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    device: str = "auto",
    folder: str | PathLike[str] | None = None,
    retry: bool = False,
    progress: ProgressOption = None,
    show: Callable[[str], object] = lambda text: None,
) -> Comparison:
    """Train methods on the same splits and return their results with intervals.

    Args:
        graphs: Graphs as `HaarClassifier.fit` takes them, or a mapping from names to such graphs.
        y: Labels instead of those of the graphs: (G,), or (G, T) for several targets.
        methods: Names of methods, see `haarpool.comparison.methods.find_method`: "haarnet",
            "haarnet:levels=0", "3GIN64-TP-GIN64-SUM-FC64", "plain-SP", "best", "config.json". The
            others are compared with the first one. By default the default network, the same without
            pooling, and each pooling in one plain network.
        repeats: Number of splits.
        split: Split rule, see `make_splits`.
        seed: Seed of splits, weights and shuffling.
        settings: Settings of `RunConfig` for all methods, such as {"epochs": 20}.
        n_jobs: Number of processes, one thread each.
        device: "auto", "cpu", "cuda", ...
        folder: Folder of the lines and tables. What is there is not trained again, so a killed
            comparison goes on. By default nothing is kept.
        retry: Train again what failed.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with lines of text.
        show: Is called with a line of text about each training.

    Example:
        >>> result = compare("rings", methods=["haarnet", "haarnet:levels=0"], repeats=2,
        ...     settings={"epochs": 1, "width": 4})
        >>> len(result.rows())
        2
    """
    with errors_in_words(_words), ExitStack() as stack:
        datasets = _datasets(graphs, y)
        table = make_table(datasets, methods, split, seed, settings)
        path = Path(folder or stack.enter_context(TemporaryDirectory()))
        return _run(table, datasets, path, repeats, n_jobs, device, progress, show, retry=retry)


def _words(name: str, value: Any = ...) -> str:
    """Return a parameter as `compare` writes it: settings of a run are entries of `settings`."""
    is_setting = name.partition(".")[0] in {one.name for one in fields(RunConfig)}
    if is_setting and name not in signature(compare).parameters:
        return python_words(f"settings.{name}", value)
    return words_of_graphs(name, value)


def _run(
    table: Table,
    datasets: Mapping[str, Graphs],
    folder: Path,
    repeats: int,
    n_jobs: int,
    device: str,
    progress: ProgressOption,
    show: Callable[[str], object],
    *,
    retry: bool = False,
) -> Comparison:
    with _locked(folder):
        lines = ResultLines(folder, table.name)
        _check_folder(lines, datasets)
        run_table(
            table, folder, repeats, datasets.__getitem__, jobs=n_jobs, device=device,
            retry=retry, progress=progress, show=show,
        )  # fmt: skip
        comparison = Comparison(table, lines.read(), repeats)
        comparison.write(folder)
    return comparison


def make_table(
    datasets: Mapping[str, Graphs],
    methods: Iterable[str] | None = None,
    split: str = "auto",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Table:
    """Return what is compared.

    Args:
        datasets: Datasets by name.
        methods: As in `compare`.
        split: As in `compare`.
        seed: As in `compare`.
        settings: As in `compare`.
    """
    if split != "auto":
        check_rule(split)
    chosen = default_methods() if methods is None else unique([find_method(m) for m in methods])
    if not chosen:
        raise HaarPoolError("at least one method", "none", "leave {methods} out", methods=...)
    common = {**(settings or {}), "seed": check_seed(seed)}
    rules = {name: default_rule(g) if split == "auto" else split for name, g in datasets.items()}
    cells = [
        Cell(name, method.row.name, rules[name], _checked(method, graphs, common))
        for name, graphs in datasets.items()
        for method in chosen
    ]
    title = f"{count(len(chosen), 'method')} on {', '.join(datasets)}"
    return Table(
        name=LINES, title=title, text=TEXT, rows=[method.row for method in chosen], cells=cells,
        reference=chosen[0].row.name,
    )  # fmt: skip


def _checked(method: Method, graphs: Graphs, common: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method for a dataset; misspelt or wrong ones are an error."""
    settings = {**method.settings_for(graphs), **common}
    settings.pop("split", None)  # that of the preset
    try:
        RunConfig(**settings)
    except TypeError as error:
        expected = "settings of RunConfig in {settings}"
        remedy = "pass for example {settings}"
        raise HaarPoolError(expected, f"{error}", remedy, settings={"epochs": 20}) from error
    return settings


def _datasets(graphs: Any, y: Any) -> dict[str, Graphs]:
    """Return datasets with labels by name."""
    if isinstance(graphs, Mapping):
        if y is not None:
            expected, remedy = "no y for several datasets", "set the labels of the graphs"
            raise HaarPoolError(expected, "y", remedy)
        datasets = {str(name): as_graphs(one) for name, one in graphs.items()}
    else:
        one, _ = labelled_graphs(graphs, y)
        datasets = {one.name: one}
    for one in datasets.values():
        check_labels(one)
    return datasets


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make a folder, and keep other commands out of it."""
    make_folder(folder)
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout as error:
        got = f"{folder}, which another process uses"
        raise HaarPoolError("a folder for this comparison", got, "choose another folder") from error


def _check_folder(lines: ResultLines, datasets: Mapping[str, Graphs]) -> None:
    """Raise an error if a folder has results of other datasets."""
    known = {name: data_hash(graphs) for name, graphs in datasets.items()}
    for line in lines.read():
        name, digest = line["dataset"], line.get("data_hash")
        if name not in known or digest not in (None, known[name]):
            other = "another dataset of this name" if name in known else "another dataset"
            expected = f"results of {', '.join(known)} in {lines.folder.parent}"
            raise HaarPoolError(expected, f"those of {name}, {other}", "choose another folder")
