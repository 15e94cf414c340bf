"""Write what of the paper reproduces: tables of README.md and of two pages in docs/, and a figure.

    python -m paper.page

Everything is made from the lines of `python -m paper` in results/. Where a method has fewer than
ten splits, their number is in parentheses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from statistics import mean

from benchmarks import RESULTS
from benchmarks.common import write_tables
from haarpool._numbers import DASH, fixed
from haarpool.comparison.document import markdown_table
from haarpool.comparison.report import predicts_one_class
from haarpool.comparison.statistics import Estimate, estimate, paired_difference
from haarpool.comparison.table import REPEATS
from haarpool.tasks import SCORES
from paper.picture import FigureRow, Point, draw_scores
from paper.recipes import (
    OWN_RECIPE,
    best_recipes,
    count_recipes,
    find_recipes,
    own_recipes,
    recipe_line,
)
from paper.results import (
    DEFAULT,
    MIXTURE,
    NESTED,
    Experiment,
    is_ours,
    read_experiments,
    read_report,
    spread,
    verdict,
)
from paper.tables import NO_POOLING

PAGES = (Path("README.md"), Path("docs/paper.md"), Path("docs/paper_details.md"))
FIGURE = "table1.png"
TEST_PARTS = ("original sizes", "large")  # of Triangles
# Verdicts on our best network, which repeats nothing.
PHRASES = {
    "better": "better on",
    "reproduced": "not told apart on",
    "unclear": "not told apart on",
    "not reached": "worse on",
}
# Set before the runs, in the units of the paper; of Triangles for parts of the test part.
GOALS: Mapping[str, Mapping[str, float]] = {
    "MUTAG": {"": 90}, "PROTEINS": {"": 78}, "NCI1": {"": 84.5}, "NCI109": {"": 86},
    "Mutagenicity": {"": 85.5}, "Triangles": {"original sizes": 66, "large": 35}, "QM7": {"": 2.5},
}  # fmt: skip
DEFAULT_ROW = "default"  # of the ablation
# Claims of the paper and two settings of ours, and the rows of the ablation that tell about them;
# the others are compared with the last one.
CLAIMS = {
    'Depth of the chain, 1 to 4 levels ("substantial impact")': ("levels-[1-9]*", DEFAULT_ROW),
    'Randomness of the clustering, five seeds ("little effect")': ("seed-[1-9]", "seed-0"),
    'Clustering methods ("any of these will work")': ("by-*", "seed-0", DEFAULT_ROW),
    "Haar instead of vertex domain (no claim of the paper)": ("haar", DEFAULT_ROW),
    "Measure by mass instead of children (no claim of the paper)": ("mass", DEFAULT_ROW),
}


def with_interval(value: Estimate) -> str:
    """Format a difference and its 95 % interval."""
    numbers = (value.mean, *value.interval)
    # Two digits for small errors, and where an end would be shown as zero.
    digits = 1 if max(map(abs, numbers)) >= 0.5 and min(map(abs, numbers[1:])) >= 0.05 else 2
    middle, low, high = (fixed(number, digits, sign="+") for number in numbers)
    return f"{middle} [{low}, {high}]"


def reproduction_table(experiments: Sequence[Experiment]) -> str:
    """Return the table of what reproduces, a row per dataset."""
    rows = [
        ["", "published", "measured", "95 % interval", "verdict", "best peer", "our best network"]
    ]
    for one in experiments:
        value = one.measured(one.reference)
        interval = result = DASH
        if value:
            interval = " to ".join(map(fixed, value.interval))
            result = verdict(value, one.target, one.sign)
        texts = []
        for method in (one.best_peer(), one.best_of_ours()):
            title = one.methods[method].title.removeprefix("haarpool, ") if method else ""
            texts.append(f"{spread(one.measured(method))}, {title}" if method else DASH)
        unit = "%" if SCORES[one.metric].is_share else SCORES[one.metric].short
        rows.append(
            [f"{one.name}, {unit}", str(one.target), spread(value), interval, result, *texts]
        )
    return markdown_table(rows)


def ours_against_published(experiments: Sequence[Experiment]) -> str:
    """Say where our best network is better than the published number."""
    found = defaultdict(list)
    for one in experiments:
        if method := one.best_of_ours():
            result = verdict(one.result(method), one.target, one.sign)
            found[PHRASES[result]].append(one.name)
    parts = [f"{x} {', '.join(found[x])}" for x in dict.fromkeys(PHRASES.values()) if found[x]]
    return f"Our best network beside the published numbers: {'; '.join(parts) or 'not run yet'}."


def goal_lines(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yield which of our goals our best networks reach, and what choosing networks adds."""
    reached, missed, gains = list[str](), list[str](), list[str]()
    for one in experiments:
        method = one.best_of_ours() or ""
        for part, goal in GOALS[one.name].items() if method else ():
            value, without = one.result(method, part), one.measured(method + NO_POOLING, part)
            low, high = map(fixed, value.interval)
            text = f"{one.name} {part}".strip() + f" ({goal:g}): {value.mean:.1f} [{low}, {high}]"
            text += f", without pooling {without.mean:.1f}" if without else ""
            (reached if one.sign * (value.mean - goal) >= 0 else missed).append(text)
        if {NESTED, MIXTURE} <= one.cells.keys() and (gain := one.gain(NESTED, MIXTURE)):
            count = f", {gain.splits} splits" if gain.splits != REPEATS else ""
            gains.append(f"{one.name} {with_interval(gain)}{count}")
    yield f"- Reached: {'; '.join(reached) or 'none'}."
    yield f"- Missed: {'; '.join(missed) or 'none'}."
    yield f"- Nested selection beside the mixture, points: {'; '.join(gains) or 'not run yet'}."


def spread_table(experiments: Sequence[Experiment]) -> str:
    """Return the table of standard deviations of HaarPool between splits."""
    rows = [["", "± published", "± by chance", "± measured", "best of our splits", "one class"]]
    for one in experiments:
        lines = one.lines(one.reference)
        if one.table.name != "table1" or len(lines) < 2:
            continue
        value, best = one.result(one.reference), max(line["value"] for line in lines)
        chance = chance_deviation(one.target.value / 100, lines[0]["sizes"])
        constant = sum(predicts_one_class(line) for line in lines)
        numbers = (one.target.std, 100 * chance, value.std, 100 * best)
        rows.append([one.dataset, *(f"{x:.1f}" for x in numbers), f"{constant} of {len(lines)}"])
    return markdown_table(rows)


def chance_deviation(accuracy: float, sizes: Sequence[int]) -> float:
    """Return how much the accuracy of one classifier varies between random test parts.

    The test part of n of N graphs is drawn without replacement.

    Args:
        accuracy: Its accuracy on all graphs.
        sizes: Sizes of the training, validation and test part.
    """
    n, total = sizes[-1], sum(sizes)
    return math.sqrt(accuracy * (1 - accuracy) / n * (1 - n / total))


def reason_lines(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yield what is measured about the reasons."""
    by_table = {one.table.name: one for one in experiments}
    table1 = [one for one in experiments if one.table.name == "table1"]
    changes = {
        "-untied": "Untied instead of tied weights",
        "-vertex": "Clusters instead of coefficients as rows (vertex domain)",
        "-kmeans": "Clusters by k-means as by the authors",
    }
    for ending, change in changes.items():
        gains = [
            (one.name, one.gain(method, one.reference))
            for one in experiments
            if (method := one.reference + ending) in one.cells
        ]
        texts = [
            f"{name} {with_interval(gain) if gain.std else 'the same network'}"
            for name, gain in gains
            if gain
        ]
        yield f"- {change}, points: {'; '.join(texts) or 'not run yet'}."
    texts = [text for one in table1 if (text := ended_with_one_class(one))]
    yield (
        "- Trainings of peers in HaarPool's networks that fail, or end with one class for all test "
        f"graphs: {'; '.join(texts) or 'none'}."
    )
    yield f"- {recipe_line(table1)}"
    triangles = by_table["triangles"]
    domains = {"": triangles.reference, ", vertex domain": f"{triangles.reference}-vertex"}
    for domain, method in domains.items():
        halves = [spread(triangles.measured(method, part)) for part in TEST_PARTS]
        parts = " / ".join(TEST_PARTS)
        yield f"- Triangles, HaarPool{domain}, accuracy on {parts}: {' / '.join(halves)}."
    linear = by_table["qm7"].measured("linear")
    yield f"- QM7, linear fit on the number of atoms of each element, MAE: {spread(linear)}."


def ended_with_one_class(one: Experiment) -> str:
    """Return the peers with trainings that end with one class for all graphs, or fail."""
    counts = []
    for peer in one.peers:
        lines = one.report.lines[one.dataset, peer, one.protocol]
        failed = [line for line in lines if line["status"] != "ok" or predicts_one_class(line)]
        if failed:
            counts.append(f"{one.methods[peer].title} {len(failed)} of {len(lines)}")
    return f"{one.name}: {', '.join(counts)}" if counts else ""


def pooling_lines(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yield what pooling adds, a line per method."""
    for title, gains in pooling_gains(experiments).items():
        texts = [f"{name} {with_interval(gain)}" for name, gain in gains.items()]
        yield f"- {title}: {'; '.join(texts) or 'not run yet'}."
    for one in experiments:
        if not (best := one.best_of_ours()):
            continue
        parts = filter(None, GOALS[one.name])
        pairs = ((part, one.gain(best, best + NO_POOLING, part)) for part in parts)
        if texts := [f"{part} {with_interval(gain)}" for part, gain in pairs if gain]:
            yield f"- {one.name}, {one.methods[best].title}, apart for {'; '.join(texts)}."


def pooling_gains(experiments: Sequence[Experiment]) -> dict[str, dict[str, Estimate]]:
    """Return what pooling adds, by method and dataset."""
    gains: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for one in experiments:
        pairs = {name: name + NO_POOLING for name in one.cells} | {one.reference: "sum"}
        for method, other in pairs.items():
            if {method, other} <= one.cells.keys():
                unit = "points" if SCORES[one.metric].is_share else SCORES[one.metric].short
                without = "a global sum" if other == "sum" else "the same without pooling"
                row = gains[f"{one.methods[method].title} beside {without}, {unit}"]
                if gain := one.gain(method, other):
                    row[one.name] = gain
    return gains


def count_gains(gains: Iterable[Estimate]) -> str:
    """Say in how many comparisons pooling is better."""
    signs = [(gain.mean > gain.half) - (gain.mean < -gain.half) for gain in gains]
    return (
        f"With Haar pooling, networks are better than without it in {signs.count(1)} of "
        f"{len(signs)} comparisons, worse in {signs.count(-1)}, not told apart in {signs.count(0)}"
    )


def short_lines(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yield the results in short: peers, our best network, what pooling adds."""
    table1 = [one for one in experiments if one.table.name == "table1"]
    gains = [gain for row in pooling_gains(experiments).values() for gain in row.values()]
    yield f"- {count_recipes(list(find_recipes(table1)))}."
    yield f"- {best_recipes(table1)}."
    yield f"- {ours_against_published(experiments)}"
    yield f"- {count_gains(gains)}."


def claim_lines(results: Path) -> Iterator[str]:
    """Yield the lowest and the highest mean of the rows of a claim, a line per claim.

    Rows whose paired difference to the last one excludes zero are named.
    """
    report = read_report(results, "ablation")
    protocol = report.table.cells[0].protocol
    for claim, patterns in CLAIMS.items():
        reference = patterns[-1]
        texts, differences = [], dict[str, Estimate]()
        for dataset in report.table.datasets:
            lines = {
                method: one
                for method in report.table.rows
                if any(fnmatch(method.name, pattern) for pattern in patterns)
                and len(one := report.ok(dataset, method.name, protocol)) == REPEATS
            }
            if len(lines) < 2:
                continue
            means = [100 * estimate(one).mean for one in lines.values()]
            texts.append(f"{dataset} {min(means):.1f} to {max(means):.1f}")
            others = report.ok(dataset, reference, protocol)
            for method, one in lines.items():
                difference = paired_difference(one, others)
                if method.name != reference and difference and difference.splits > 1:
                    differences[f"{dataset}, {method.title}"] = report.units(dataset).scaled(
                        difference
                    )
        name = "the default" if reference == DEFAULT_ROW else reference.replace("-", " ")
        sentence = clear_differences(differences, name)
        yield f"- {claim}: {'; '.join(texts) or 'not run yet'}.{sentence}"


def clear_differences(differences: Mapping[str, Estimate], reference: str) -> str:
    """Return a sentence on the differences that exclude zero; "" if none is there.

    Args:
        differences: Paired differences by dataset and row.
        reference: What rows are compared with.
    """
    if not differences:
        return ""
    clear = [f"{x} {with_interval(one)}" for x, one in differences.items() if not one.contains(0)]
    count = f"of {len(differences)} difference{'s' * (len(differences) > 1)} to {reference}"
    if not clear:
        return f" None {count} excludes zero."
    return f" {len(clear)} {count} exclude{'s' * (len(clear) == 1)} zero: {'; '.join(clear)}."


def methods_table(experiments: Sequence[Experiment]) -> str:
    """Return Table 1 for README: HaarPool, the best peers and our networks, a row per method."""
    table1 = [one for one in experiments if one.table.name == "table1"]
    reference = table1[0].reference
    rows = [
        ["", *(one.dataset for one in table1)],
        ["HaarPool, published", *(str(one.published(reference)) for one in table1)],
        ["HaarPool, measured", *(spread(one.measured(reference)) for one in table1)],
    ]
    peers, own = table1[0].peers, list(own_recipes(table1[0]))
    ours = [DEFAULT + NO_POOLING, DEFAULT]
    if all(one.complete(MIXTURE) for one in table1):
        ours += [MIXTURE + NO_POOLING, MIXTURE]
    for name in (*best_peers(table1, peers)[:1], *best_peers(table1, own)[:1], *ours):
        title = table1[0].methods[name].title
        rows.append([title, *(spread(one.measured(name)) for one in table1)])
    return markdown_table(rows)


def best_peers(table1: Sequence[Experiment], peers: Sequence[str]) -> list[str]:
    """Return peers by their mean over the datasets, those with the most datasets first."""

    def rank(peer: str) -> tuple[int, float]:
        found = [
            value.mean for one in table1 if peer in one.cells and (value := one.measured(peer))
        ]
        return len(found), mean(found) if found else 0.0

    return sorted(peers, key=rank, reverse=True)


def figure_rows(experiments: Sequence[Experiment]) -> list[FigureRow]:
    """Return the rows of the figure: a method of the paper, another pooling, or one of ours.

    Of several rows of a published method the first one is drawn, and its own recipe beside it.
    """
    table1 = [one for one in experiments if one.table.name == "table1"]
    first = table1[0]
    own = {m.published: name for name, m in first.methods.items() if name.endswith(OWN_RECIPE)}
    drawn, rows = set(), []
    for name, method in first.methods.items():
        kind = "haarpool" if name == first.reference else "peer"
        kind = "ours" if is_ours(name) else kind
        if name in own.values() or (method.published and method.published in drawn):
            continue
        drawn.add(method.published)
        points = {}
        for one in table1:
            published = one.published(name)
            points[one.dataset] = Point(
                one.complete(name),
                one.complete(own.get(method.published, "")),
                published.value if published else None,
            )
        if any(point.value for point in points.values()):
            rows.append(FigureRow(method.title, kind, points))
    order = ("haarpool", "ours", "peer")
    return sorted(rows, key=lambda row: order.index(row.kind))


def make_tables(results: Path) -> dict[str, str]:
    """Return the tables and sentences of the pages by their marks."""
    experiments = read_experiments(results)
    return {
        "methods of the paper": methods_table(experiments),
        "reproduction": reproduction_table(experiments),
        "in short": "\n".join(short_lines(experiments)),
        "goals": "\n".join(goal_lines(experiments)),
        "spread": spread_table(experiments),
        "reasons": "\n".join(reason_lines(experiments)),
        "what pooling adds": "\n".join(pooling_lines(experiments)),
        "claims": "\n".join(claim_lines(results)),
    }


def main() -> None:
    """Write tables and figure."""
    write_tables(make_tables(RESULTS), PAGES)
    draw_scores(figure_rows(read_experiments(RESULTS)), RESULTS / FIGURE)


if __name__ == "__main__":
    main()
