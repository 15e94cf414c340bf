"""Checks of single values."""

from fractions import Fraction

import numpy as np
import pytest

from haarpool import HaarPoolError, _validate
from haarpool._validate import choice, real_number, whole_number


@pytest.mark.parametrize("value", [1, 7, np.int32(7), np.uint8(3)])
def test_whole_numbers_become_plain_ints(value):
    assert type(whole_number("epochs", value)) is int
    assert whole_number("epochs", value) == value


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, np.float64(2), [1]])
def test_other_values_are_rejected_by_the_name_of_the_parameter(value):
    with pytest.raises(HaarPoolError, match=r"expected epochs >= 1, got"):
        whole_number("epochs", value)


def test_whole_numbers_have_limits():
    assert whole_number("threads", 0, 0, 4) == 0
    for value in (-1, 5):
        with pytest.raises(HaarPoolError, match=r"threads in 0\.\.4, got"):
            whole_number("threads", value, 0, 4)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.25), Fraction(1, 3)])
def test_real_numbers_become_plain_floats(value):
    assert type(real_number("dropout", value, 0, 1)) is float


@pytest.mark.parametrize("value", [1, -0.1, float("nan"), float("inf"), "0.5", None, True, 1j])
def test_values_outside_of_an_interval_are_rejected(value):
    with pytest.raises(HaarPoolError, match=r"dropout in \[0, 1\), got"):
        real_number("dropout", value, 0, 1)


def test_the_ends_of_an_interval_belong_to_it_or_not():
    assert real_number("x", 1, 0, 1, includes_maximum=True) == 1
    with pytest.raises(HaarPoolError, match=r"x in \(0, 1\]"):
        real_number("x", 0, 0, 1, includes_minimum=False, includes_maximum=True)


def test_a_choice_is_of_the_same_type():
    assert choice("order", "index", ("index", "degree")) == "index"
    assert choice("top", None, (1, None)) is None
    for value in ("Index", None, 1, np.array(["index", "index"])):
        with pytest.raises(HaarPoolError, match='order "index" or "degree", got'):
            choice("order", value, ("index", "degree"))
    with pytest.raises(HaarPoolError, match="top 1 or None"):
        choice("top", True, (1, None))


@pytest.mark.parametrize("value", [-1, 2**31, 0.0, "0", None])
def test_seeds(value):
    assert _validate.seed(np.int64(2**31 - 1)) == 2**31 - 1
    with pytest.raises(HaarPoolError, match="seed in 0"):
        _validate.seed(value)
