"""`compare`: train methods on the same splits of some datasets, and say what came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
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
from haarpool.comparison import check_amounts
from haarpool.comparison.conclusions import conclusions
from haarpool.comparison.document import Grid, Part, to_html, write_document
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import ResultLines, is_good, make_folder, refuse_other_files
from haarpool.comparison.methods import default_methods, find_method, node_methods, unique
from haarpool.comparison.picture import draw_intervals
from haarpool.comparison.report import TableReport
from haarpool.comparison.runner import run_table
from haarpool.comparison.statistics import estimate, paired_difference
from haarpool.comparison.table import REPEATS, Cell, Row, Table, Trial
from haarpool.comparison.trials import SCHEMA, data_hash, splits_of
from haarpool.datasets import as_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.reading import labelled_graphs, words_of_graphs
from haarpool.datasets.splits import check_rule, default_rule
from haarpool.errors import HaarPoolError, errors_in_words, python_words
from haarpool.training.config import RunConfig
from haarpool.training.devices import find_device
from haarpool.training.run import check_labels
from haarpool.training.run_folder import LOCK

LINES = "trainings"  # folder of the lines
RESULT, FIGURE = "result.json", "intervals.png"
MADE_BY = "Made by `haarpool.compare`"
KEYS = (
    "dataset", "method", "title", "split", "trainings", "failed", "reason", "metric", "splits",
    "mean", "std", "low", "high", "reference", "difference", "difference_low", "difference_high",
    "seconds", "weights",
)  # fmt: skip
# Settings that are arguments of `compare`.
ARGUMENTS = {"arch": "methods", "split": "split", "seed": "seed", "repeats": "repeats"}
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
    last_header = ("Seconds", "Weights")

    def __init__(self, table: Table, lines: Sequence[Line], repeats: int = REPEATS) -> None:
        asked = {(*trial.cell.key, trial.seed) for trial in table.trials(repeats)}
        keys = ("dataset", "method", "protocol", "seed")
        kept = [line for line in lines if tuple(line[key] for key in keys) in asked]
        super().__init__(table, kept, repeats)
        self.own_references = {row.name: row.reference for row in table.rows}

    @property
    def shows_overview(self) -> bool:
        """Whether there are several datasets."""
        return len(self.table.datasets) > 1

    def reference(self, cell: Cell) -> str | None:
        """Return its own reference if that works, else the first method that works."""
        working = [one.method for one in self.cells(cell.dataset) if self.ok(*one.key)]
        if not working or cell.method == working[0]:
            return None
        own = self.own_references[cell.method]
        return own if own in working else working[0]

    def caption(self, dataset: str) -> str:
        """Return score, unit, number of repeats and split rule."""
        score, cell = self.score(dataset), self.cells(dataset)[0]
        of = f"{score.title}{' in %' * score.is_share}" if score else "no results"
        repeats = count(self.repeats, "repeat") + f" of {cell.folds} folds" * (cell.folds > 1)
        return f"{dataset}: {of} on the test part, {repeats}, split rule {cell.protocol}."

    def overview(self) -> Grid:
        """Return a row per method, a column per dataset."""
        texts = [
            *map(self.caption, self.table.datasets),
            "Mean ± standard deviation over the splits,",
        ]
        caption = f"{' '.join(texts)} with their number where trainings failed."
        return super().overview()._replace(caption=caption)

    def without_result(self, cell: Cell) -> Iterator[list[str]]:
        """Yield a row with the reason why all trainings failed."""
        for line in self.lines[cell.key][:1]:
            reason = str(line["reason"]).removeprefix(f"{HaarPoolError.__name__}: ")
            yield [self.titles[cell.method], f"fails: {reason}"]

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

        Scores are as in the lines: accuracies between 0 and 1. All rows have the same keys. What is
        not known is None.
        """
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for cell in self.table.cells:
            lines, all_lines, reference = self.ok(*cell.key), self.lines[cell.key], None
            reasons = [line["reason"] for line in all_lines if not is_good(line)]
            row = dict.fromkeys(KEYS) | {
                "dataset": cell.dataset, "method": cell.method, "title": self.titles[cell.method],
                "split": cell.protocol, "trainings": len(lines), "failed": len(reasons),
                "reason": reasons[0] if reasons else None,
            }  # fmt: skip
            if lines:
                value, reference = estimate(lines), self.reference(cell)
                low, high = value.interval
                row |= {
                    "metric": lines[0]["metric"], "splits": value.splits, "mean": value.mean,
                    "std": value.std, "low": low, "high": high,
                    "seconds": sum(line["training_seconds"] for line in lines) / len(lines),
                    "weights": lines[0]["num_parameters"],
                }  # fmt: skip
            others = self.ok(cell.dataset, reference, cell.protocol) if reference else []
            if others and (gain := paired_difference(lines, others)):
                low, high = gain.interval
                row |= {"reference": reference, "difference": gain.mean}
                row |= {"difference_low": low, "difference_high": high}
            yield as_json(row)

    def grids(self) -> list[Grid]:
        """Return a table for each dataset, narrow enough for a terminal."""
        return list(map(self._narrow, self.table.datasets))

    def _narrow(self, dataset: str) -> Grid:
        full, cells = self.details(dataset), self.cells(dataset)
        trainings = {len(self.ok(*cell.key)) for cell in cells} - {0}
        shows_n = bool(trainings) and trainings != {self.repeats * cells[0].folds}

        def narrow(row: Sequence[str]) -> Sequence[str]:
            if len(row) < len(full.header):
                return row
            title, n, mean, *rest = row
            return [title, *[n] * shows_n, mean.partition(" ")[0], *rest]

        return Grid(full.caption, narrow(full.header), list(map(narrow, full.rows)))

    def write(self, folder: Path) -> list[Path]:
        """Write tables, figure and numbers to a folder; return the files."""
        parts: list[Part] = ["# Comparison", f"{MADE_BY} from the lines in `{LINES}/`."]
        parts += self.conclusions()
        if draw_intervals(self, folder / FIGURE):
            parts.append(f"![Means with 95 % intervals]({FIGURE})")
        content = {"schema": SCHEMA, "rows": self.rows(), "conclusions": self.conclusions()}
        write_text(folder / RESULT, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        paths = write_document([*parts, *self.parts()], folder, FIGURE)
        return [*paths, folder / RESULT]

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.grids()), *self.conclusions()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html(["# Comparison", *self.conclusions(), *self.grids()])


def compare(
    graphs: Any,
    y: Any = None,
    methods: str | Iterable[str] | None = None,
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
            others are compared with the first one, and poolings in the plain network with "plain".
            By default the default network, the same without pooling, and each pooling in one plain
            network.
        repeats: Number of splits; with folds, of trainings of each fold.
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
    with errors_in_words(_words):
        check_amounts(repeats, n_jobs)
        datasets = _datasets(graphs, y)
        table = make_table(datasets, methods, split, seed, settings, repeats)
        with TemporaryDirectory() if folder is None else nullcontext(folder) as path:
            return train_table(
                table, datasets, Path(path), repeats,
                jobs=n_jobs, device=device, retry=retry, progress=progress, show=show, words=_words,
            )  # fmt: skip


def _words(name: str, value: Any = ...) -> str:
    """Return a parameter as `compare` writes it: settings of a run are entries of `settings`."""
    if name == "arch" and value is not ...:
        return python_words("methods", [value])
    is_setting = name.partition(".")[0] in {one.name for one in fields(RunConfig)}
    if is_setting and name not in signature(compare).parameters:
        return python_words(f"settings.{name}", value)
    return words_of_graphs(name, value)


def train_table(
    table: Table, datasets: Mapping[str, Graphs], folder: Path, repeats: int, **options: Any
) -> Comparison:
    """Train what is missing in a folder, write its report and return it.

    Args:
        table: The table, from `make_table`.
        datasets: Its datasets by name.
        folder: Folder of the lines and the report.
        repeats: Number of repeats.
        **options: Options of `run_table`.
    """
    check_out(folder)
    find_device(options["device"])
    with _locked(folder):
        lines = ResultLines(folder, table.name)
        _check_datasets(lines, datasets)
        run_table(table, folder, repeats, datasets.__getitem__, **options)
        comparison = Comparison(table, lines.read(), repeats)
        comparison.write(folder)
    return comparison


def check_out(folder: Path) -> None:
    """Raise an error if a folder has files that are not those of a comparison."""
    refuse_other_files(folder, (LINES,), (MADE_BY,), "a comparison")


def make_table(
    datasets: Mapping[str, Graphs],
    methods: str | Iterable[str] | None = None,
    split: str = "auto",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    repeats: int = REPEATS,
) -> Table:
    """Return what is compared; what is wrong for all methods is an error.

    Args:
        datasets: Datasets by name.
        methods: As in `compare`.
        split: As in `compare`.
        seed: As in `compare`.
        settings: As in `compare`.
        repeats: As in `compare`.
    """
    if split != "auto":
        check_rule(split)
    names = [methods] if isinstance(methods, str) else methods
    if names is None:
        of_nodes = any(graphs.has_node_labels for graphs in datasets.values())
        chosen = node_methods() if of_nodes else default_methods()
    else:
        chosen = unique([find_method(name) for name in names])
    if not chosen:
        raise HaarPoolError("at least one method", "none", "leave {methods} out", methods=...)
    _check_settings(settings or {})
    common = {**(settings or {}), "seed": check_seed(seed)}
    cells = []
    for name, graphs in datasets.items():
        rule = default_rule(graphs) if split == "auto" else split
        if "features" in common:
            Encoding.fit(graphs, common["features"])
        own = [method.cell(graphs, name, rule, common) for method in chosen]
        splits_of(Trial(own[0], repeats * own[0].folds - 1), graphs)
        cells += own
    title = f"{count(len(chosen), 'method')} on {', '.join(datasets)}"
    return Table(
        name=LINES, title=title, text=TEXT, rows=[method.row for method in chosen], cells=cells,
        reference=chosen[0].row.name,
    )  # fmt: skip


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise an error for a name that is no setting of all methods."""
    known = [one.name for one in fields(RunConfig) if one.name not in ARGUMENTS]
    for name, value in settings.items():
        if argument := ARGUMENTS.get(name):
            shown: dict[str, Any] = {argument: [value] if name == "arch" else value}
            remedy = f"pass {{{argument}}}"
            expected = f"settings without {', '.join(ARGUMENTS)}"
            raise HaarPoolError(expected, f"{name!r}", remedy, **shown)
        if name not in known:
            expected = "names of settings of RunConfig"
            remedy = f"choose among {', '.join(known)}"
            raise HaarPoolError(expected, f"{name!r}", remedy, parameter="settings")


def _datasets(graphs: Any, y: Any) -> dict[str, Graphs]:
    """Return datasets with labels by name."""
    if isinstance(graphs, Mapping):
        if y is not None:
            expected, remedy = "no y for several datasets", "set the labels of the graphs"
            raise HaarPoolError(expected, "y", remedy)
        if not graphs:
            raise HaarPoolError(
                "at least one dataset", "none", "pass a mapping from names to graphs"
            )
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


def _check_datasets(lines: ResultLines, datasets: Mapping[str, Graphs]) -> None:
    """Raise an error if a folder has results of other datasets."""
    known = {name: data_hash(graphs) for name, graphs in datasets.items()}
    for line in lines.read():
        name, digest = line["dataset"], line.get("data_hash")
        if name not in known or digest not in (None, known[name]):
            other = "another dataset of this name" if name in known else "another dataset"
            expected = f"results of {', '.join(known)} in {lines.folder.parent}"
            raise HaarPoolError(expected, f"those of {name}, {other}", "choose another folder")
