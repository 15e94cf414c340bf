"""The part of the report on one table: means, differences, and what is missing."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from haarpool.experiments.document import DASH, Grid, Heading, Items, Paragraph, Part, Picture
from haarpool.experiments.figure import draw_history
from haarpool.experiments.lines import Line, current_lines, only
from haarpool.experiments.statistics import Estimate, estimate, paired_difference
from haarpool.experiments.table import NO_POOLING, REPEATS, Cell, Published, Table


class TableReport:
    """The part of the report on one table.

    Args:
        table: The table.
        lines: Its lines.
        repeats: Number of splits that each cell should have.
    """

    def __init__(self, table: Table, lines: Sequence[Line], repeats: int = REPEATS) -> None:
        self.table, self.repeats = table, repeats
        self.titles = {method.name: method.title for method in table.methods}
        current = current_lines(table, lines)
        self.outdated = len(lines) - len(current)
        self.lines: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
        for key in sorted(current):
            self.lines[key[:3]].append(current[key])
        measured = {line["metric"] for line in only(current.values(), "ok")}
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
        yield Heading(3, "Methods")
        yield Items([f"{m.title} (`{m.name}`). {m.note}".strip() for m in self.table.methods])
        if constant := list(self.constant()):
            yield Heading(3, "Networks that predict one class for all test graphs")
            yield Items(constant)
        if mixed := list(self.mixed()):
            yield Heading(3, "Trials on different machines")
            yield Items(mixed)
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
            f"yet; failed: no {unit[:-1]} ended well; empty: not part of the table."
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
                    gain = paired_difference(lines, others, part)
                    gain = gain and gain.scaled(1 if self.is_accuracy else -1)
                    texts.append(self.difference(gain))
                if set(texts) != {DASH}:
                    rows.append([method.title, protocol, *texts])
        caption = (
            "What pooling adds: mean difference to the same without pooling over the same splits, "
            "and its 95 % interval; above zero, pooling is better. Nested selection without "
            "pooling chooses among networks without pooling, and may choose more or fewer of them."
        )
        header = ["Method", "Protocol", *(part or dataset for dataset, part in self.columns)]
        return Grid(caption, header, rows)

    def histories(self) -> dict[str, list[Line]]:
        """Return the trials to draw by the title of their method."""
        dataset, _, protocol = self.table.cells[0].key
        drawn = {
            self.titles[name]: [x for x in self.ok(dataset, name, protocol) if "history" in x]
            for name in self.table.history
            if name in self.titles
        }
        return {title: lines for title, lines in drawn.items() if lines}

    def details(self, dataset: str) -> Grid:
        """Return everything about one dataset."""
        reference = self.table.reference
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
        header = ["Method", "Protocol", "n", "Mean ± std", "95 % interval"]
        header += [f"Difference to {self.titles.get(reference, reference)}", "Published"]
        return Grid(f"{dataset}: all methods and protocols.", header, rows)

    def constant(self) -> Iterator[str]:
        """Yield the splits on which a network learnt nothing."""
        for cell in self.table.cells:
            if lines := [line for line in self.ok(*cell.key) if predicts_one_class(line)]:
                yield f"{self.name(cell)}: {_splits(lines)}."

    def mixed(self) -> Iterator[str]:
        """Yield the cells whose trials ran on different devices or with different chains."""
        for cell in self.table.cells:
            lines = self.ok(*cell.key)
            devices = Counter(str(line.get("device")) for line in lines)
            num_chains = _num_sets_of_chains(lines)
            if len(devices) > 1 or num_chains > 1:
                texts = [f"{name} {count}" for name, count in sorted(devices.items())]
                if num_chains > 1:
                    texts.append(f"{num_chains} sets of chains")
                yield f"{self.name(cell)}: {', '.join(texts)}."

    def gaps(self) -> Iterator[str]:
        """Yield what failed, what is not there, and how many lines are out of date."""
        empty: dict[tuple[str, str], list[str]] = defaultdict(list)
        for cell in self.table.cells:
            lines = self.lines[cell.key]
            yield from self.failures(cell, lines)
            missing = self.repeats - len(lines)
            if missing == self.repeats:
                empty[cell.dataset, cell.protocol].append(self.titles[cell.method])
            elif missing > 0:
                yield f"{self.name(cell)}: {missing} of {self.repeats} trials not run yet."
        for (dataset, protocol), methods in empty.items():
            yield f"{dataset}, {protocol}: not run yet: {'; '.join(methods)}."
        if self.outdated:
            yield f"Lines of other settings, or replaced by later ones, left out: {self.outdated}."

    def failures(self, cell: Cell, lines: Sequence[Line]) -> Iterator[str]:
        """Yield the splits that failed; those whose reasons differ by numbers alone together."""
        failed: dict[str, list[Line]] = defaultdict(list)
        for line in only(lines, "failed"):
            failed[re.sub(r"\d[\d.,]*", "", str(line.get("reason")))].append(line)
        for same in failed.values():
            first = ", the first one" if len(same) > 1 else ""
            yield f"{self.name(cell)}, {_splits(same)} failed{first}: {same[0].get('reason')}"

    def name(self, cell: Cell) -> str:
        """Return the name of a cell for readers."""
        return f"{cell.dataset}, {self.titles[cell.method]}, {cell.protocol}"

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


def _num_sets_of_chains(lines: Sequence[Line]) -> int:
    """Return how many different chains the same networks have; of several kinds, the most."""
    hashes = defaultdict(set)
    for line in lines:
        for kind, digest in line.get("chain_hashes", {"": line.get("chain_hash")}).items():
            hashes[kind].add(digest)
    return max(map(len, hashes.values()), default=0)


def _splits(lines: Sequence[Line]) -> str:
    numbers = [str(line["seed"]) for line in lines]
    return f"split{'s' * (len(numbers) > 1)} {', '.join(numbers)}"


def predicts_one_class(line: Line) -> bool:
    """Return whether a classifier predicts one class.

    Then only this class has a recall, 1, and an F1, 2a / (1 + a) with its share a of the graphs,
    which is the accuracy; both are divided by the number of classes.
    """
    scores = line.get("scores", {}).get("test", {})
    if None in map(scores.get, ("accuracy", "balanced_accuracy", "f1")):
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
