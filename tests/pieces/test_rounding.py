"""Relative errors and neighbours of exact numbers, against fractions."""

from fractions import Fraction

import numpy as np
import pytest

from plunit.pieces.rounding import UNIT, gamma, outward, roundings


@pytest.mark.parametrize(
    "number", [Fraction(1, 3), Fraction(-1, 3), Fraction(0), Fraction(3, 4), Fraction(1, 10**400), Fraction(10**308)]
)
def test_the_numbers_around_an_exact_one_are_neighbours(number):
    low, high = outward(number)
    assert Fraction(low) <= number <= Fraction(high)
    assert high in (low, np.nextafter(low, np.inf))


def test_a_number_beyond_all_floats_has_no_neighbours():
    with pytest.raises(ValueError, match="beyond"):
        outward(Fraction(10**309))


@pytest.mark.parametrize("count", [1, 8, 1000, 10**9])
def test_the_simple_bound_is_above_gamma(count):
    exact = count * Fraction(UNIT) / (1 - count * Fraction(UNIT))
    assert gamma(count) == pytest.approx(float(exact), rel=1e-15)
    assert exact < Fraction(roundings(count)) < exact * Fraction(102, 100)
