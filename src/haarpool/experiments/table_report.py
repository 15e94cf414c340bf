"""The part of the report on one table: means, differences, and what is missing."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from haarpool._numbers import DASH, fixed, mean_and_std
from haarpool.experiments.document import Grid, Part
from haarpool.experiments.figure import draw_history
from haarpool.experiments.lines import Line, current_lines, is_good
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
        self.titles = {row.name: row.title for row in table.rows}
        current = current_lines(table, lines)
        self.outdated = len(lines) - len(current)
        self.lines: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
        for key in sorted(current):
            self.lines[key[:3]].append(current[key])
        measured = {line["metric"] for line in current.values() if is_good(line)}
        self.is_accuracy = measured <= {"accuracy"}

    def parts(self, folder: Path) -> Iterator[Part]:
        """Yield the heading, the text, the tables and what is missing.

        Args:
            folder: Folder of the report, to which a figure is written.
        """
        yield f"## {self.table.title}"
        yield self.table.text
        yield self.overview()
        if (gains := self.pooling_gains()).rows:
            yield gains
        if histories := self.histories():
            name = f"{self.table.name}.png"
            draw_history(histories, folder / name)
            yield f"![Mean and standard deviation over the splits, epoch by epoch]({name})"
        for dataset in self.table.datasets:
            if (grid := self.details(dataset)).rows:
                yield from (f"### {dataset}", grid)
        notes = [f"{x.title} (`{x.name}`). {x.note}".strip() for x in self.table.rows]
        lists = {
            "Methods": notes,
            "Networks that predict one class for all test graphs": list(self.constant()),
            "Trials on different machines": list(self.mixed()),
            "Missing and failed": list(self.gaps()) or ["Nothing."],
        }
        for heading, items in lists.items():
            if items:
                yield from (f"### {heading}", items)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Datasets with their parts, or "" for a table without parts."""
        return [(d, part) for d in self.table.datasets for part in self.table.parts or [""]]

    def ok(self, dataset: str, method: str, protocol: str) -> list[Line]:
        """Return the lines of a cell that ended well."""
        return list(filter(is_good, self.lines[dataset, method, protocol]))

    def overview(self) -> Grid:
        """Return the table in the form of the paper: a row per method."""
        protocol = self.table.cells[0].protocol
        keys = {cell.key for cell in self.table.cells}
        rows = []
        for row in self.table.rows:
            texts = []
            for dataset, part in self.columns:
                key = (dataset, row.name, protocol)
                if key not in keys:
                    texts.append("")
                    continue
                text = "failed" if self.lines[key] else DASH
                if lines := self.ok(*key):
                    text = self.spread(estimate(lines, part))
                published = self.published(row.published, part or dataset)
                texts.append(text + (f" [{published}]" if published else ""))
            rows.append([row.title, *texts])
        unit = "trials" if protocol == "given" else "splits"
        caption = (
            f"Mean ± standard deviation over the {unit} (protocol {protocol}, {self.repeats} "
            f"{unit}, or the number in parentheses); in brackets the published number. –: not run "
            f"yet; failed: no {unit[:-1]} ended well; empty: not part of the table."
        )
        return Grid(caption, ["Method", *(part or dataset for dataset, part in self.columns)], rows)

    def pooling_gains(self) -> Grid:
        """Return the differences to the same networks without pooling."""
        rows = []
        for row in self.table.rows:
            for protocol in dict.fromkeys(cell.protocol for cell in self.table.cells):
                texts = []
                for dataset, part in self.columns:
                    lines = self.ok(dataset, row.name, protocol)
                    others = self.ok(dataset, row.name + NO_POOLING, protocol)
                    gain = paired_difference(lines, others, part)
                    gain = gain and gain.scaled(1 if self.is_accuracy else -1)
                    texts.append(self.difference(gain))
                if set(texts) != {DASH}:
                    rows.append([row.title, protocol, *texts])
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
        for row in self.table.rows:
            for cell in self.table.cells:
                lines = self.ok(*cell.key)
                if (cell.dataset, cell.method) != (dataset, row.name) or not lines:
                    continue
                value, difference = estimate(lines), None
                if row.name != reference:
                    others = self.ok(dataset, reference, cell.protocol)
                    difference = paired_difference(lines, others)
                published = self.published(row.published, dataset)
                rows.append([
                    row.title, cell.protocol, f"{value.splits}", self.mean_and_std(value),
                    self.interval(value), self.difference(difference),
                    _compare(self.scaled(value), published),
                ])  # fmt: skip
        header = ["Method", "Protocol", "n", "Mean ± std", "95 % interval"]
        header += [f"Difference to {self.titles.get(reference, reference)}", "Published"]
        return Grid(f"{dataset}: all methods and protocols.", header, rows)

    def constant(self) -> Iterator[str]:
        """Yield the splits on which a network learnt nothing."""
        for cell in self.table.cells:
            if lines := list(filter(predicts_one_class, self.ok(*cell.key))):
                yield f"{self.name(cell)}: {_splits(lines)}."

    def mixed(self) -> Iterator[str]:
        """Yield the cells whose trials ran on different devices or with different chains."""
        for cell in self.table.cells:
            lines = self.ok(*cell.key)
            devices = Counter(str(line.get("device")) for line in lines)
            num_chains = _num_sets_of_chains(lines)
            if len(devices) > 1 or num_chains > 1:
                texts = [f"{name} {count}" for name, count in sorted(devices.items())]
                texts += [f"{num_chains} sets of chains"] * (num_chains > 1)
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

    def failures(self, cell: Cell, lines: Iterable[Line]) -> Iterator[str]:
        """Yield the splits that failed; those whose reasons differ by numbers alone together."""
        failed: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            if not is_good(line):
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

    def decimals(self, value: Estimate) -> int:
        """Return the number of decimals of a result or difference: two for errors below 10."""
        return 1 if self.is_accuracy or abs(value.mean) >= 10 else 2

    def mean_and_std(self, value: Estimate) -> str:
        """Format a mean and its standard deviation."""
        scaled = self.scaled(value)
        return mean_and_std(scaled.mean, scaled.std, self.decimals(value))

    def interval(self, value: Estimate) -> str:
        """Format an interval."""
        if math.isnan(value.half):
            return DASH
        return " to ".join(fixed(x, self.decimals(value)) for x in self.scaled(value).interval)

    def spread(self, value: Estimate) -> str:
        """Format a result for the overview, with its number of splits if trials are missing."""
        count = "" if value.trials == self.repeats else f" ({value.splits})"
        return self.mean_and_std(value) + count

    def difference(self, value: Estimate | None) -> str:
        """Format a paired difference, with its number of splits if trials are missing."""
        if value is None:
            return DASH
        mean = fixed(self.scaled(value).mean, self.decimals(value), sign="+")
        count = "" if value.trials == self.repeats else f", n = {value.splits}"
        return f"{mean} ({self.interval(value)}{count})"


def _num_sets_of_chains(lines: Iterable[Line]) -> int:
    """Return how many different chains the same networks have; of several kinds, the most."""
    hashes = defaultdict(set)
    for line in lines:
        for kind, digest in line.get("chain_hashes", {"": line.get("chain_hash")}).items():
            hashes[kind].add(digest)
    return max(map(len, hashes.values()), default=0)


def _splits(lines: Sequence[Line]) -> str:
    return f"split{'s' * (len(lines) > 1)} {', '.join(str(line['seed']) for line in lines)}"


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


def _compare(ours: Estimate, published: Published | None) -> str:
    """Format a published number, and say where it is outside of our interval."""
    if published is None:
        return DASH
    if math.isnan(ours.half) or ours.contains(published.value):
        return str(published)
    side = "above" if published.value > ours.mean else "below"
    return f"{published}, {side} our interval"
