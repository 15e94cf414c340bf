"""What of the paper reproduces: verdicts, peers and numbers of `paper.page`."""

import numpy as np
import pytest
from PIL import Image

from haarpool.comparison.lines import ResultLines
from haarpool.comparison.report import predicts_one_class
from haarpool.comparison.statistics import Estimate
from haarpool.tasks import find_task
from paper.page import (
    best_recipes,
    chance_deviation,
    claim_lines,
    figure_rows,
    goal_lines,
    pooling_lines,
    read_experiments,
    recipe_line,
    reproduction_table,
    short_lines,
    verdict,
    with_interval,
)
from paper.picture import digest, draw_scores
from paper.tables import Published, find_table


def write_lines(folder, table, dataset, values, **others):
    """Write a line per value of each method."""
    cells = {cell.key: cell for cell in find_table(table).cells}
    protocol = find_table(table).cells[0].protocol
    for method, numbers in values.items():
        cell = cells[dataset, method, protocol]
        config = cell.learner.config(cell)
        for seed, value in enumerate(numbers):
            scores = {"accuracy": value, "balanced_accuracy": value, "f1": value}
            ResultLines(folder, table).append(
                {
                    "dataset": dataset, "method": method, "protocol": protocol, "seed": seed,
                    "status": "ok", "metric": "accuracy", "value": value, "config": config,
                    "split_hash": f"{seed}", "sizes": [80, 10, 10], "scores": {"test": scores},
                    **others,
                }
            )  # fmt: skip


def around(value, n=10):
    return [value + 0.01 * (-1) ** seed for seed in range(n)]


def experiment(folder, dataset):
    return next(one for one in read_experiments(folder) if one.dataset == dataset)


@pytest.mark.parametrize(
    ("mean", "half", "published", "sign", "expected"),
    [
        (75.0, 2.0, Published(80.0, 1.0), 1, "not reached"),
        (85.0, 2.0, Published(80.0, 1.0), 1, "better"),
        (78.5, 2.0, Published(80.0, 1.0), 1, "reproduced"),
        (70.0, 12.0, Published(80.0, 1.0), 1, "unclear"),  # an interval that contains everything
        (45.0, 2.0, Published(46.0), 1, "reproduced"),
        (50.0, 2.0, Published(42.9, 1.2), -1, "not reached"),  # an error
        (30.0, 2.0, Published(42.9, 1.2), -1, "better"),
    ],
)
def test_verdicts(mean, half, published, sign, expected):
    assert verdict(Estimate(mean, 1.0, half, 10), published, sign) == expected


def test_peers_have_the_network_and_training_of_haarpool(tmp_path):
    peers = experiment(tmp_path, "MUTAG").peers
    assert {"gin", "sortpool", "diffpool", "gpool", "sagpool", "eigenpool", "sum"} <= set(peers)
    others = ("haarpool", "best", "csm")
    assert not [name for name in peers if name.startswith(others) or name.endswith("-own")]
    assert "sagpool" in experiment(tmp_path, "QM7").peers
    assert experiment(tmp_path, "TRIANGLES").peers == ["sagpool"]


def test_the_best_peer_has_the_most_splits_and_no_result_chooses_our_network(tmp_path):
    values = {
        "haarpool": around(0.7), "gin": around(0.8), "sortpool": around(0.75),
        "eigenpool": [0.99] * 3, "best": around(0.9), "best-mixture": around(0.85),
    }  # fmt: skip
    write_lines(tmp_path, "table1", "MUTAG", values)
    one = experiment(tmp_path, "MUTAG")
    assert one.best_peer() == "gin"
    assert one.best_of_ours() == "best-mixture"
    assert experiment(tmp_path, "NCI1").best_peer() is None
    values = {"best": around(1.5), "best-nested": around(1.6)}
    write_lines(tmp_path, "qm7", "QM7", values, metric="mae")
    assert experiment(tmp_path, "QM7").best_of_ours() == "best-nested"


def test_goals_that_are_reached_and_missed(tmp_path):
    assert list(goal_lines(read_experiments(tmp_path))) == [
        "- Reached: none.",
        "- Missed: none.",
        "- Nested selection beside the mixture, points: not run yet.",
    ]
    values = {"best-mixture": around(0.85), "best-nested": around(0.86), "best": around(0.99)}
    write_lines(tmp_path, "table1", "MUTAG", values)
    values = {"best-mixture": around(0.85), "best-mixture-no-pooling": around(0.84)}
    write_lines(tmp_path, "table1", "NCI1", values)
    write_lines(tmp_path, "qm7", "QM7", {"best": around(2.4)}, metric="mae")
    assert list(goal_lines(read_experiments(tmp_path))) == [
        "- Reached: NCI1 (84.5): 85.0 [83.9, 86.1], without pooling 84.0; QM7 (2.5): 2.4 [2.4, "
        "2.4].",
        "- Missed: MUTAG (90): 85.0 [83.9, 86.1].",
        "- Nested selection beside the mixture, points: MUTAG +1.0 [+1.0, +1.0].",
    ]


def test_missing_cells_are_dashes_and_few_splits_are_counted(tmp_path):
    write_lines(tmp_path, "table1", "MUTAG", {"haarpool": around(0.7, n=4)})
    rows = reproduction_table(read_experiments(tmp_path)).splitlines()
    measured = "70.0 ± 1.2 (4) | 67.7 to 72.3 | not reached"  # 3.18 · 1.15 · sqrt(1/4 + 1/8)
    assert rows[2] == f"| MUTAG, % | 90.0 ± 3.6 | {measured} | – | – |"
    assert rows[3] == "| PROTEINS, % | 80.4 ± 1.8 | – | – | – | – | – |"
    assert rows[-1].startswith("| QM7, MAE | 42.9 ± 1.2 | – ")


def test_gains_are_positive_where_pooling_is_better(tmp_path):
    values = {"best": around(0.9), "best-no-pooling": around(0.88)}
    write_lines(tmp_path, "table1", "MUTAG", values)
    values = {"best": around(3.0), "best-no-pooling": around(3.5)}
    write_lines(tmp_path, "qm7", "QM7", values, metric="mae")
    experiments = read_experiments(tmp_path)
    text = "\n".join(pooling_lines(experiments))
    assert "beside the same without pooling, points: MUTAG +2.0 [+2.0, +2.0]." in text
    assert "beside the same without pooling, MAE: QM7 +0.5 [+0.5, +0.5]." in text
    assert "HaarPool beside a global sum, points: not run yet." in text
    assert list(short_lines(experiments))[-1] == (
        "- With Haar pooling, networks are better than without it in 2 of 2 comparisons, worse in "
        "0, not told apart in 0."
    )


def test_gains_of_triangles_apart_for_sizes(tmp_path):
    for method, large in {"best-nested": 0.4, "best-nested-no-pooling": 0.5}.items():
        parts = {"train": 1.0, "validation": 1.0, "original sizes": 0.9, "large": large}
        values = around((0.9 + large) / 2)
        for seed, value in enumerate(values):
            shifted = {name: score + 0.01 * (-1) ** seed for name, score in parts.items()}
            write_lines(
                tmp_path, "triangles", "TRIANGLES", {method: [value]},
                seed=seed, parts=shifted | {"test": value},
            )  # fmt: skip
    assert list(pooling_lines(read_experiments(tmp_path)))[-1] == (
        "- Triangles, haarpool, nested selection, apart for original sizes 0.00 [0.00, 0.00]; "
        "large -10.0 [-10.0, -10.0]."
    )


def test_peers_by_the_recipes_of_their_authors(tmp_path):
    values = {"gin-own": around(0.89), "sortpool-own": around(0.7), "gpool-own": around(0.5)}
    write_lines(tmp_path, "table1", "MUTAG", values)  # gPool has no published number there
    write_lines(tmp_path, "table1", "PROTEINS", {"gin-own": around(0.5, n=9)})  # not complete
    write_lines(tmp_path, "table1", "NCI109", {"diffpool-own": around(0.741)})  # a quoted number
    table1 = [one for one in read_experiments(tmp_path) if one.table.name == "table1"]
    assert recipe_line(table1) == (
        "Peers by the recipes of their authors, with at most 12,000 steps: our intervals contain "
        "1 of 2 published numbers of the authors, and 1 of 1 that the paper of EigenPool gives for "
        "them; outside: SortPool on MUTAG, 70.0 ± 1.1 instead of 85.8."
    )
    assert best_recipes(table1) == (
        "The best peers by these recipes, in percent: MUTAG 89.0 ± 1.1, GIN; "
        "NCI109 74.1 ± 1.1, DiffPool"
    )


def test_deviation_by_chance_is_that_of_random_test_parts():
    right = np.arange(1000) < 800
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(right)[:100].mean() for _ in range(4000)]
    assert chance_deviation(0.8, [800, 100, 100]) == pytest.approx(np.std(drawn), rel=0.05)


def test_networks_that_give_all_graphs_one_class():
    target = np.array([0, 0, 0, 1, 1])
    for output, expected in (([1, 1, 1, 1, 1], True), ([0, 0, 1, 1, 0], False)):
        scores = find_task("classification").score(np.eye(2)[output], target)
        for task in ({}, {"task": "classification"}):  # earlier versions did not name it
            assert predicts_one_class(task | {"scores": {"test": scores}}) is expected
        for task in ("regression", "not registered"):
            assert not predicts_one_class({"task": task, "scores": {"test": scores}})


def test_small_differences_have_two_digits_and_zero_has_no_sign():
    assert with_interval(Estimate(-0.14, 0.1, 0.08, 10)) == "-0.14 [-0.22, -0.06]"
    assert with_interval(Estimate(-0.01, 0.1, 1.2, 10)) == "0.0 [-1.2, +1.2]"
    assert with_interval(Estimate(-2.02, 0.1, 2.0, 10)) == "-2.02 [-4.02, -0.02]"


def test_claims_show_the_range_of_means(tmp_path):
    seeds = {f"seed-{seed}": around(0.8 + 0.01 * seed) for seed in range(5)}
    write_lines(tmp_path, "ablation", "MUTAG", seeds)
    lines = list(claim_lines(tmp_path))
    assert lines[0].endswith('("substantial impact"): not run yet.')
    assert '("little effect"): MUTAG 80.0 to 84.0. 4 of 4 differences to seed 0 exclude' in lines[1]


def test_claims_name_the_rows_that_differ_from_the_default(tmp_path):
    noise = [0.02 * (-1) ** (seed // 2) for seed in range(10)]  # not that of `around`
    noisy = [value + one for value, one in zip(around(0.81), noise, strict=True)]
    depths = {"levels-0": around(0.5), "levels-1": around(0.78), "levels-3": noisy}
    few = {"levels-4": around(0.2, n=9)}  # incomplete: left out
    others = {"haar": noisy, "mass": around(0.83)}
    write_lines(tmp_path, "ablation", "MUTAG", {"default": around(0.81)} | depths | few | others)
    write_lines(tmp_path, "ablation", "NCI1", {"default": around(0.6), "mass": around(0.59)})
    lines = list(claim_lines(tmp_path))
    assert lines[0] == (
        '- Depth of the chain, 1 to 4 levels ("substantial impact"): MUTAG 78.0 to 81.4. '
        "1 of 2 differences to the default excludes zero: MUTAG, 1 level -3.0 [-3.0, -3.0]."
    )
    assert lines[3] == (
        "- Haar instead of vertex domain (no claim of the paper): MUTAG 81.0 to 81.4. "
        "None of 1 difference to the default excludes zero."
    )
    assert lines[4] == (
        "- Measure by mass instead of children (no claim of the paper): MUTAG 81.0 to 83.0; "
        "NCI1 59.0 to 60.0. 2 of 2 differences to the default exclude zero: "
        "MUTAG, measure by mass +2.0 [+2.0, +2.0]; NCI1, measure by mass -1.0 [-1.0, -1.0]."
    )


def test_figure(tmp_path):
    values = {
        "haarpool": around(0.7), "gin": around(0.8), "gin-own": around(0.85),
        "gpool": around(0.7), "gpool-mean": around(0.6), "best": around(0.9),
        "eigenpool": [0.8] * 3,
    }  # fmt: skip
    write_lines(tmp_path, "table1", "MUTAG", values)
    rows = figure_rows(read_experiments(tmp_path))
    assert [row.title for row in rows] == ["HaarPool", "haarpool, default", "GIN", "gPool"]
    gin = rows[2].points["MUTAG"]
    assert (gin.value.mean, gin.recipe.mean, gin.published) == pytest.approx((80, 85, 89.4))
    draw_scores(rows, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as figure:
        assert figure.text["Description"] == digest(rows)
    write_lines(tmp_path, "table1", "MUTAG", {"gin": around(0.81)})
    assert digest(figure_rows(read_experiments(tmp_path))) != digest(rows)
