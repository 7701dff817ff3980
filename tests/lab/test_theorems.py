"""The theorems of the paper come out, and each fails for a function that does not have the property."""

from fractions import Fraction

import numpy as np
import pytest

from plunit.lab import theorems
from plunit.lab.theorems import SHAPES, THEOREMS, points, slopes


@pytest.mark.parametrize("key", THEOREMS)
def test_every_check_comes_out(key):
    found = list(THEOREMS[key]())
    assert len(found) >= 12
    assert all(found)


def shifted(xp, x, alpha, c):
    m = xp.clip(x, -c, c)
    return m + alpha * (x - m) + Fraction(1, 7)


def bounded(xp, x, alpha, c):
    return xp.clip(x, -c, c)


WRONG = {
    "formula": shifted,
    "segments": bounded,
    "unbounded": bounded,
    "inverse-plu": shifted,
    "odd": shifted,
    "derivative": bounded,
}


@pytest.mark.parametrize("key", WRONG)
def test_a_function_without_the_property_is_seen(key, monkeypatch):
    monkeypatch.setattr(theorems, "formula", WRONG[key])
    assert not all(THEOREMS[key]())


def test_a_relu_with_an_inverse_is_seen(monkeypatch):
    monkeypatch.setattr(theorems, "relu", lambda x: x)
    assert not all(THEOREMS["inverse-others"]())


def test_erratum_a_network_of_relus_can_be_one_to_one():
    at = [Fraction(-3), Fraction(-1, 2), Fraction(0), Fraction(2)]  # two points on each piece, with the kink
    assert [theorems.relu(x) - theorems.relu(-x) for x in at] == at


def test_every_piece_has_two_points_inside():
    kinks = Fraction(-1), Fraction(5, 2)
    inside = [x for x in points(*kinks) if x not in kinks]
    assert [sum(low < x < high for x in inside) for low, high in ((-9, -1), (-1, 2.5), (2.5, 9))] == [2, 2, 2]
    assert slopes(lambda x: max(x, Fraction(0)) * 3, Fraction(0)) == [0, 3]
    assert all(isinstance(number, Fraction) for shape in SHAPES for number in shape)
    assert isinstance(theorems.plu(*SHAPES[1])(Fraction(5)), Fraction)
    assert theorems.plu(*SHAPES[1])(Fraction(5)) == Fraction(14, 10)
    np.testing.assert_equal(SHAPES[1], (Fraction(1, 10), 1))
