"""How `haarpool train` prints numbers."""

import pytest

from haarpool.cli.train import _show_score
from haarpool.tasks import SCORES


@pytest.mark.parametrize(
    ("metric", "mean", "std", "shown"),
    [
        ("accuracy", 0.84213, 0.0312, "84.2 ± 3.1 %"),
        ("roc_auc", 0.9, None, "0.900"),
        ("mae", 0.908, None, "0.9080"),
        ("mae", 42.914, 1.2345, "42.91 ± 1.23"),
        ("rmse", 1538.04, 22.5, "1,538 ± 22"),
        ("mae", 917_900.0, None, "917,900"),
        ("mae", 9.179e9, 1e7, "9.179e+09 ± 1.000e+07"),
        ("mae", 0.0, 0.0, "0 ± 0"),
        ("mae", 0.0, None, "0"),
        ("mae", 0.00002, None, "2.000e-05"),
        ("r2", 0.00002, 0.1, "0.000 ± 0.100"),
        ("r2", -0.03, 0.4, "-0.030 ± 0.400"),
        ("r2", 0.98765, None, "0.988"),
        ("r2", None, None, "not defined"),
    ],
)
def test_scores_have_few_digits(metric, mean, std, shown):
    assert _show_score(SCORES[metric], {"mean": mean, "std": std, "each": [mean, mean]}) == shown
