"""How `haarpool train` prints numbers: as the report shows them."""

import pytest

from haarpool.cli.train import _show_score
from haarpool.report.tables import spread
from haarpool.tasks import SCORES


@pytest.mark.parametrize(
    ("metric", "mean", "std", "shown"),
    [
        ("accuracy", 0.84213, 0.0312, "84.2 ± 3.1 %"),
        ("roc_auc", 0.9, None, "0.9"),
        ("mae", 0.908, None, "0.908"),
        ("mae", 42.914, 1.2345, "42.9 ± 1.2"),
        ("rmse", 1538.04, 22.5, "1,538 ± 22"),
        ("mae", 917_900.0, None, "917,900"),
        ("mae", 9.179e9, 1e7, "9,179,000,000 ± 10,000,000"),
        ("mae", 0.0, 0.0, "0.0 ± 0.0"),
        ("mae", 0.0, None, "0"),
        ("mae", 0.00002, None, "2e-05"),
        ("r2", 0.00002, 0.1, "0.00 ± 0.10"),
        ("r2", -0.03, 0.4, "-0.03 ± 0.40"),
        ("r2", 0.98765, None, "0.9877"),
        ("accuracy", 0.84213, None, "84.21 %"),
        ("r2", None, None, "not defined"),
    ],
)
def test_scores_have_few_digits(metric, mean, std, shown):
    assert _show_score(SCORES[metric], {"mean": mean, "std": std, "each": [mean, mean]}) == shown


@pytest.mark.parametrize("mean", [0.84213, 42.914, 1538.04, 0.00002])
@pytest.mark.parametrize("std", [None, 0.0, 0.031, 22.5])
@pytest.mark.parametrize("metric", SCORES)
def test_the_report_has_the_same_digits(metric, mean, std):
    statistics = {"mean": mean, "std": std, "each": [mean, mean]}
    assert _show_score(SCORES[metric], statistics) == spread(SCORES[metric], statistics)
