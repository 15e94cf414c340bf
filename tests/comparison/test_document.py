"""Tables as text."""

import pytest

from haarpool.comparison.document import Grid, to_markdown

HEADER = ["Method", "Mean", "Difference to a network with a long name", "Weights"]
GRID = Grid(
    "",
    HEADER,
    [
        ["plain network, no pooling", "96.9", "-16.7 (-29.9 to -3.4)", "237,579"],
        ["3GIN64-TP-GIN64-SUM-FC64", "fails: " + "a long reason " * 8],
    ],
)


@pytest.mark.parametrize("width", [30, 45, 60, 80, 200])
def test_no_column_vanishes_without_a_word(width):
    text = GRID.as_text(width)
    assert max(map(len, text.splitlines())) <= max(width, len(text.splitlines()[-1]))
    shown, _, left_out = text.partition("(left out at")
    for name, value in zip(HEADER[1:], GRID.rows[0][1:], strict=True):
        assert (value in shown) != (name in left_out)
    assert ("left out" in text) == (width < 50)


def test_names_are_broken_before_columns_are_left_out():
    lines = GRID.as_text(60).splitlines()
    assert any(line.startswith("plain network,") and line.endswith("237,579") for line in lines)
    assert " ".join(GRID.as_text(80).split()).count("a long reason") == 8


def test_rows_of_a_name_and_a_text():
    assert "| 3GIN64-TP-GIN64-SUM-FC64 | fails: a long" in to_markdown([GRID])
