"""The report: made from the lines on disk alone, so that it can be made again."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from haarpool._files import write_text
from haarpool.errors import HaarPoolError
from haarpool.experiments.document import (
    Grid,
    Heading,
    Items,
    Paragraph,
    Part,
    Picture,
    to_html,
    to_latex,
    to_markdown,
)
from haarpool.experiments.figure import draw_history
from haarpool.experiments.lines import Line, ResultLines, has_settings, only
from haarpool.experiments.speed import read_benchmarks, speed_parts
from haarpool.experiments.statistics import Estimate, estimate, paired_difference
from haarpool.experiments.table import (
    NO_POOLING,
    QUICK_REPEATS,
    REPEATS,
    TABLES,
    Cell,
    Published,
    Table,
    find_table,
)

FILES = {"README.md": to_markdown, "report.html": to_html, "tables.tex": to_latex}
DASH = "–"
INTRODUCTION = (
    "Made by `haarpool reproduce --report` from the lines in this folder: each is one training on "
    "one split, with its settings, versions, hashes of split and chains, and in newer lines a hash "
    "of the source code (older ones may differ in the last digits; convolutions behind DiffPool "
    "and StructPool multiply matrices since then). `haarpool train` with the settings of a line "
    "trains the same networks on the same device and with the same versions; `seed` is the number "
    "of the repeat. For a mixture and for nested selection it is the seed of all networks, and no "
    "single command trains them: they train on two parts together.",
    "± is the standard deviation between splits. The 95 % interval is mean ± t · s · sqrt(1/n + "
    "n_test/n_train) with the quantile t of Student's distribution with n − 1 degrees of freedom, "
    "after Nadeau and Bengio (2003): the training parts of random splits overlap, so the usual "
    "interval is too narrow. (n_train is the training part alone, also for mixtures, which train "
    "on both parts: their intervals are about 3 % too wide.) Differences are paired: the same "
    "formula on the differences over the splits that both methods have.",
    "Results of the same split (published folds of QM7) are averaged first, so n is the number of "
    "different splits. On Triangles all trials have the same split: there ± is the standard "
    "deviation between weights, n the number of trials, and the interval that of Student, without "
    "the term n_test/n_train.",
    "Published numbers are those of the paper; most are quoted there from other papers with other "
    "splits. `*`: taken by the paper from that of EigenPool. – under Published: no public record.",
)


def write_report(folder: Path, *, quick: bool = False) -> list[Path]:
    """Write the report of all tables that have lines.

    Args:
        folder: Folder of results.
        quick: Whether the lines are those of the small versions.

    Returns:
        Its files: Markdown, HTML and LaTeX.
    """
    parts: list[Part] = [Heading(1, "Results")]
    parts += [Paragraph(text) for text in INTRODUCTION]
    if quick:
        parts.append(Paragraph("Quick versions, with few epochs: only to see that they run."))
    start = len(parts)
    for name in TABLES:
        lines = list(ResultLines(folder, name).read().values())
        if lines:
            report = (_quick_report if quick else TableReport)(find_table(name), lines)
            parts += report.parts(folder)
    if benchmarks := read_benchmarks(folder, quick=quick):
        parts += speed_parts(benchmarks)
    if len(parts) == start:
        raise HaarPoolError(
            f"lines of results in {folder}", "none", "run a table first: haarpool reproduce table1"
        )
    paths = []
    for name, render in FILES.items():
        write_text(folder / name, render(parts))
        paths.append(folder / name)
    return paths


def _quick_report(table: Table, lines: Sequence[Line]) -> TableReport:
    """Report on the cells of a small version that were run."""
    run = {line["dataset"] for line in lines}, {line["method"] for line in lines}
    small = table.shortened().select(*run, {line["protocol"] for line in lines})
    return TableReport(small, lines, QUICK_REPEATS)


class TableReport:
    """The part of the report on one table.

    Args:
        table: The table.
        lines: Its lines.
        repeats: Number of splits that each cell should have.
    """

    def __init__(self, table: Table, lines: Sequence[Line], repeats: int = REPEATS) -> None:
        self.table, self.repeats = table, repeats
        cells = {cell.key: cell for cell in table.cells}
        self.lines: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
        self.outdated = 0
        for line in sorted(lines, key=lambda line: int(line["seed"])):
            key = (line["dataset"], line["method"], line["protocol"])
            if key in cells and has_settings(line, cells[key]):
                self.lines[key].append(line)
            else:
                self.outdated += 1
        measured = {line["metric"] for line in lines if line["status"] == "ok"}
        self.is_accuracy = measured <= {"accuracy"}

    def parts(self, folder: Path) -> Iterator[Part]:
        """Yield the heading, the text, the tables and what is missing.

        Args:
            folder: Folder of the report, to which a figure is written.
        """
        yield Heading(2, self.table.title)
        yield Paragraph(self.table.text)
        yield self.overview()
        if (gains := self.pooling_gains()).rows:
            yield gains
        if histories := self.histories():
            name = f"{self.table.name}.png"
            draw_history(histories, folder / name)
            yield Picture(name, "Mean and standard deviation over the splits, epoch by epoch")
        for dataset in self.table.datasets:
            grid = self.details(dataset)
            if grid.rows:
                yield Heading(3, dataset)
                yield grid
        notes = [f"{m.title}: {m.note.strip()}" for m in self.table.methods if m.note]
        if notes:
            yield Heading(3, "Methods")
            yield Items(notes)
        if constant := list(self.constant()):
            yield Heading(3, "Networks that predict one class for all test graphs")
            yield Items(constant)
        yield Heading(3, "Missing and failed")
        yield Items(list(self.gaps()) or ["Nothing."])

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Datasets with their parts, or "" for a table without parts."""
        return [(d, part) for d in self.table.datasets for part in self.table.parts or [""]]

    def ok(self, dataset: str, method: str, protocol: str) -> list[Line]:
        """Return the lines of a cell that ended well."""
        return only(self.lines[dataset, method, protocol], "ok")

    def overview(self) -> Grid:
        """Return the table in the form of the paper: a row per method."""
        protocol = self.table.cells[0].protocol
        keys = {cell.key for cell in self.table.cells}
        rows = []
        for method in self.table.methods:
            texts = []
            for dataset, part in self.columns:
                if (dataset, method.name, protocol) not in keys:
                    texts.append("")
                    continue
                text = "failed" if self.lines[dataset, method.name, protocol] else DASH
                if lines := self.ok(dataset, method.name, protocol):
                    text = self.spread(estimate(lines, part))
                published = self.published(method.published, part or dataset)
                texts.append(text + (f" [{published}]" if published else ""))
            rows.append([method.title, *texts])
        unit = "trials" if protocol == "given" else "splits"
        caption = (
            f"Mean ± standard deviation over the {unit} (protocol {protocol}, {self.repeats} "
            f"{unit}, or the number in parentheses); in brackets the published number. –: not run "
            f"yet; failed: no {unit[:-1]} ended well, see below; empty: not part of the table."
        )
        return Grid(caption, ["Method", *(part or dataset for dataset, part in self.columns)], rows)

    def pooling_gains(self) -> Grid:
        """Return the differences to the same networks without pooling."""
        protocols = dict.fromkeys(cell.protocol for cell in self.table.cells)
        rows = []
        for method in self.table.methods:
            for protocol in protocols:
                texts = []
                for dataset, part in self.columns:
                    lines = self.ok(dataset, method.name, protocol)
                    others = self.ok(dataset, method.name + NO_POOLING, protocol)
                    texts.append(self.difference(paired_difference(lines, others, part)))
                if set(texts) != {DASH}:
                    rows.append([method.title, protocol, *texts])
        caption = (
            "What pooling adds: mean difference to the same network without pooling over the same "
            f"splits, and its 95 % interval; {'above' if self.is_accuracy else 'below'} zero, "
            "pooling is better."
        )
        header = ["Method", "Splits", *(part or dataset for dataset, part in self.columns)]
        return Grid(caption, header, rows)

    def histories(self) -> dict[str, list[Line]]:
        """Return the trials to draw by the title of their method."""
        dataset, _, protocol = self.table.cells[0].key
        titles = {method.name: method.title for method in self.table.methods}
        drawn = {
            titles[name]: [line for line in self.ok(dataset, name, protocol) if "history" in line]
            for name in self.table.history
            if name in titles
        }
        return {title: lines for title, lines in drawn.items() if lines}

    def details(self, dataset: str) -> Grid:
        """Return everything about one dataset."""
        reference = self.table.reference
        titles = {method.name: method.title for method in self.table.methods}
        rows = []
        for method in self.table.methods:
            for cell in self.table.cells:
                lines = self.ok(*cell.key)
                if (cell.dataset, cell.method) != (dataset, method.name) or not lines:
                    continue
                value = estimate(lines)
                difference = None
                if method.name != reference:
                    others = self.ok(dataset, reference, cell.protocol)
                    difference = paired_difference(lines, others)
                published = self.published(method.published, dataset)
                rows.append(
                    [
                        method.title,
                        cell.protocol,
                        f"{value.splits}",
                        self.mean_and_std(value),
                        self.interval(value),
                        self.difference(difference),
                        _compare(self.scaled(value), published),
                    ]
                )
        header = ["Method", "Splits", "n", "Mean ± std", "95 % interval"]
        header += [f"Difference to {titles.get(reference, reference)}", "Published"]
        return Grid(f"{dataset}: all methods and protocols.", header, rows)

    def constant(self) -> Iterator[str]:
        """Yield the splits on which a network learnt nothing."""
        for cell in self.table.cells:
            if lines := [line for line in self.ok(*cell.key) if predicts_one_class(line)]:
                yield f"{_name(cell)}: {_splits(lines)}."

    def gaps(self) -> Iterator[str]:
        """Yield what failed, what is not there, and how many lines are out of date."""
        empty: dict[tuple[str, str], list[str]] = defaultdict(list)
        for cell in self.table.cells:
            lines = self.lines[cell.key]
            yield from _failures(cell, lines)
            missing = self.repeats - len(lines)
            if missing == self.repeats:
                empty[cell.dataset, cell.protocol].append(cell.method)
            elif missing > 0:
                yield f"{_name(cell)}: {missing} of {self.repeats} trials not run yet."
        for (dataset, protocol), methods in empty.items():
            yield f"{dataset}, {protocol}: not run yet: {', '.join(methods)}."
        if self.outdated:
            yield f"{self.outdated} lines were made with other settings and are left out."

    def published(self, row: str, column: str) -> Published | None:
        """Return a published number."""
        return self.table.published.get(row, {}).get(column)

    def scaled(self, value: Estimate) -> Estimate:
        """Return a result in the units of the paper: accuracies in per cent."""
        return value.scaled(100.0) if self.is_accuracy else value

    def digits(self, value: Estimate) -> int:
        """Return the number of decimals of a result or difference: two for errors below 10."""
        return 1 if self.is_accuracy or abs(value.mean) >= 10 else 2

    def mean_and_std(self, value: Estimate) -> str:
        """Format a mean and its standard deviation."""
        digits, value = self.digits(value), self.scaled(value)
        return f"{format_number(value.mean, digits)} ± {format_number(value.std, digits)}"

    def interval(self, value: Estimate) -> str:
        """Format an interval."""
        if math.isnan(value.half):
            return DASH
        digits, value = self.digits(value), self.scaled(value)
        ends = (value.mean - value.half, value.mean + value.half)
        return " to ".join(format_number(end, digits) for end in ends)

    def spread(self, value: Estimate) -> str:
        """Format a result for the overview, with its number of splits if trials are missing."""
        count = "" if value.trials == self.repeats else f" ({value.splits})"
        return self.mean_and_std(value) + count

    def difference(self, value: Estimate | None) -> str:
        """Format a paired difference, with its number of splits if trials are missing."""
        if value is None:
            return DASH
        mean = format_number(self.scaled(value).mean, self.digits(value), sign="+")
        count = "" if value.trials == self.repeats else f", n = {value.splits}"
        return f"{mean} ({self.interval(value)}{count})"


def _failures(cell: Cell, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the splits that failed; those whose reasons differ by numbers alone together."""
    failed: dict[str, list[Line]] = defaultdict(list)
    for line in only(lines, "failed"):
        failed[re.sub(r"\d+", "", str(line.get("reason")))].append(line)
    for same in failed.values():
        first = ", the first one" if len(same) > 1 else ""
        yield f"{_name(cell)}, {_splits(same)} failed{first}: {same[0].get('reason')}"


def _name(cell: Cell) -> str:
    return f"{cell.dataset}, {cell.method}, {cell.protocol}"


def _splits(lines: Sequence[Line]) -> str:
    numbers = [str(line["seed"]) for line in lines]
    return f"split{'s' * (len(numbers) > 1)} {', '.join(numbers)}"


def predicts_one_class(line: Line) -> bool:
    """Return whether a classifier predicts one class.

    Then only this class has a recall, 1, and an F1, 2a / (1 + a) with its share a of the graphs,
    which is the accuracy; both are divided by the number of classes.
    """
    scores = line.get("scores", {}).get("test", {})
    if not {"accuracy", "balanced_accuracy", "f1"} <= set(scores):
        return False
    share, recall = scores["accuracy"], scores["balanced_accuracy"]
    if not 0 < recall <= 1 / 2:
        return False
    num_classes = round(1 / recall)
    f1 = 2 * share / (1 + share) / num_classes
    return math.isclose(recall * num_classes, 1) and math.isclose(scores["f1"], f1)


def format_number(value: float, digits: int = 1, sign: str = "") -> str:
    """Format a number; zero has no sign, and NaN is a dash.

    Args:
        value: The number.
        digits: Number of decimals.
        sign: "+" to show the sign of positive numbers.

    Example:
        >>> [format_number(value, sign="+") for value in (1.26, -0.04, -0.06)]
        ['+1.3', '0.0', '-0.1']
    """
    if math.isnan(value):
        return DASH
    text = f"{value:{sign}.{digits}f}"
    return text if float(text) else f"{0:.{digits}f}"


def _compare(ours: Estimate, published: Published | None) -> str:
    """Format a published number, and say where it is outside of our interval."""
    if published is None:
        return DASH
    if math.isnan(ours.half) or ours.contains(published.value):
        return str(published)
    side = "above" if published.value > ours.mean else "below"
    return f"{published}, {side} our interval"
