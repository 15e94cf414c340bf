"""The report on a table: means, intervals, paired differences, and what is missing."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from haarpool._numbers import DASH, fixed, mean_and_std
from haarpool.comparison.document import Grid, Part
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import current_lines, is_good
from haarpool.comparison.statistics import Estimate, estimate, paired_difference
from haarpool.comparison.table import REPEATS, Cell, Row, Table
from haarpool.tasks import Score, find_score, find_task, is_registered, task_names

MARKS = ("", "†", "‡")  # of differences to several methods


class Units(NamedTuple):
    """How the results of a dataset are shown: shares in per cent.

    Attributes:
        is_share: Whether they are shares.
        repeats: Number of splits that each cell should have.
    """

    is_share: bool
    repeats: int = REPEATS

    def scaled(self, value: Estimate) -> Estimate:
        """Return a result in the units of the report: shares in per cent."""
        return value.scaled(100.0) if self.is_share else value

    def decimals(self, value: Estimate) -> int:
        """Return the number of decimals of a result or difference: two for errors below 10."""
        return 1 if self.is_share or abs(value.mean) >= 10 else 2

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


class TableReport:
    """The report on a table.

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

    def parts(self) -> Iterator[Part]:
        """Yield the heading, the text, the tables and what is missing."""
        yield f"## {self.table.title}"
        yield self.table.text
        if self.shows_overview:
            yield self.overview()
        yield from self.more()
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
    def shows_overview(self) -> bool:
        """Whether a table of all datasets comes first."""
        return True

    def more(self) -> Iterator[Part]:
        """Yield what follows the overview."""
        yield from ()

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Datasets with their parts, or "" for a table without parts."""
        return [(d, part) for d in self.table.datasets for part in self.table.parts or [""]]

    def ok(self, dataset: str, method: str, protocol: str) -> list[Line]:
        """Return the lines of a cell that ended well."""
        return list(filter(is_good, self.lines[dataset, method, protocol]))

    def score(self, dataset: str) -> Score | None:
        """Return the score of the results of a dataset; None if there are none."""
        lines = [line for key in self.lines if key[0] == dataset for line in self.ok(*key)]
        return find_score(lines[0]["metric"]) if lines else None

    def cells(self, dataset: str) -> list[Cell]:
        """Return the cells of a dataset."""
        return [cell for cell in self.table.cells if cell.dataset == dataset]

    def units(self, dataset: str) -> Units:
        """Return how the results of a dataset are shown."""
        score, trials = self.score(dataset), self.repeats * self.cells(dataset)[0].folds
        return Units(score is None or score.is_share, trials)

    def reference(self, cell: Cell) -> str | None:
        """Return the method that a cell is compared with."""
        return None if cell.method == self.table.reference else self.table.reference

    def overview(self) -> Grid:
        """Return a row per method, a column per dataset."""
        protocol = self.table.cells[0].protocol
        protocols = {name: self.cells(name)[0].protocol for name in self.table.datasets}
        keys = {cell.key for cell in self.table.cells}
        rows = []
        for row in self.table.rows:
            texts = []
            for dataset, part in self.columns:
                key = (dataset, row.name, protocols[dataset])
                if key not in keys:
                    texts.append("")
                    continue
                text = "failed" if self.lines[key] else DASH
                if lines := self.ok(*key):
                    text = self.units(dataset).spread(estimate(lines, part))
                texts.append(text + self.beside(row, part or dataset))
            rows.append([row.title, *texts])
        unit = "trials" if protocol == "given" else "splits"
        caption = (
            f"Mean ± standard deviation over the {unit} (protocol {protocol}, {self.repeats} "
            f"{unit}, or the number in parentheses){self.beside_note}. –: not run "
            f"yet; failed: no {unit[:-1]} ended well; empty: not part of the table."
        )
        return Grid(caption, ["Method", *(part or dataset for dataset, part in self.columns)], rows)

    beside_note = ""  # what `beside` returns, for the caption

    def beside(self, row: Row, column: str) -> str:
        """Return what stands beside the mean of a row in a column."""
        return ""

    def details(self, dataset: str) -> Grid:
        """Return everything about one dataset."""
        units, rows, references = self.units(dataset), list[list[str]](), list[str]()
        order = {row.name: place for place, row in enumerate(self.table.rows)}
        for cell in sorted(self.cells(dataset), key=lambda cell: order[cell.method]):
            row, lines = self.table.rows[order[cell.method]], self.ok(*cell.key)
            if not lines:
                rows += self.without_result(cell)
                continue
            value, difference, mark = estimate(lines), DASH, ""
            if (reference := self.reference(cell)) is not None:
                references += [reference] * (reference not in references)
                theirs = self.ok(dataset, reference, cell.protocol)
                difference = units.difference(paired_difference(lines, theirs))
                mark = MARKS[references.index(reference)] if difference != DASH else ""
            protocol = [cell.protocol] if self.shows_protocol else []
            rows.append([
                row.title, *protocol, f"{value.splits}", units.mean_and_std(value),
                units.interval(value), difference + mark, *self.last_columns(row, dataset, lines),
            ])  # fmt: skip
        first, *others = [self.titles.get(x, x) for x in references or [self.table.reference]]
        header = ["Method", *["Protocol"] * self.shows_protocol, "n", "Mean ± std", "95 % interval"]
        header += [f"Difference to {first}", *self.last_header]
        notes = [
            f" {mark}: difference to {title}."
            for mark, title in zip(MARKS[1:], others, strict=False)
        ]
        return Grid(self.caption(dataset) + "".join(notes), header, rows)

    shows_protocol = True  # in `details`
    last_header: Sequence[str] = ()

    def caption(self, dataset: str) -> str:
        """Return what `details` shows."""
        return f"{dataset}: all methods and protocols."

    def without_result(self, cell: Cell) -> Iterator[list[str]]:
        """Yield a row of `details` for a cell of which no trial ended well."""
        yield from ()

    def last_columns(self, row: Row, dataset: str, lines: Sequence[Line]) -> Sequence[str]:
        """Return the last columns of `details`."""
        return []

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
            repeats = self.repeats * cell.folds
            missing = repeats - len(lines)
            if missing == repeats:
                empty[cell.dataset, cell.protocol].append(self.titles[cell.method])
            elif missing > 0:
                yield f"{self.name(cell)}: {missing} of {repeats} trials not run yet."
        for (dataset, protocol), methods in empty.items():
            yield f"{dataset}, {protocol}: not run yet: {'; '.join(methods)}."
        if self.outdated:
            yield f"Lines of other settings, or replaced by later ones, left out: {self.outdated}."

    def failures(self, cell: Cell, lines: Iterable[Line]) -> Iterator[str]:
        """Yield the splits that failed, those with the same problem together."""
        failed: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            if not is_good(line):
                # Lines of earlier versions have only the whole reason.
                same = line.get("problem") or str(line.get("reason")).partition(", got ")[0]
                failed[same].append(line)
        for those in failed.values():
            first = ", the first one" if len(those) > 1 else ""
            yield f"{self.name(cell)}, {_splits(those)} failed{first}: {those[0].get('reason')}"

    def name(self, cell: Cell) -> str:
        """Return the name of a cell for readers."""
        return f"{cell.dataset}, {self.titles[cell.method]}, {cell.protocol}"


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
    """Return whether a network predicts one class for all test graphs."""
    scores = line.get("scores", {}).get("test", {})
    # Lines of earlier versions do not name their task.
    names = filter(is_registered, [line["task"]] if line.get("task") else task_names())
    return any(find_task(name).predicts_one_class(scores) for name in names)
