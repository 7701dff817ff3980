"""The largest error of a curve against an expression: what is found against brute force, and the bound above both."""

import numpy as np
import pytest

from plunit.expressions import parse, sup_error
from plunit.pieces import Curve

CASES = [
    ("sin(x)", -3, 3, 9),
    ("exp(x)", 0, 1, 3),
    ("x**2", -1, 1, 4),
    ("x**3 - x", -2, 2, 7),
    ("sqrt(x)", 0, 1, 4),
    ("log(x)", 0.01, 1, 5),
    ("abs(x)", -1, 1.5, 3),
    ("1 / (1 + 25 * x**2)", -1, 1, 10),
    ("where(x < 0, 0, sqrt(x))", -1, 1, 5),
    ("where(x < 0, x, 2 * x)", -1, 1, 3),
    ("exp(-1 / x)", 0, 1, 4),
    ("x * sin(10 * x)**3 + tanh(x)", -3, 3, 40),
    ("max(sin(x), cos(x)) + abs(x - 1)", -3, 3, 11),
    ("mod(x, 1)", 0.1, 2.95, 7),
    ("floor(x) + sign(x - 0.5)", 0, 3, 4),
    ("3", 0, 1, 2),
]


def through(f, low, high, pieces):
    """Return the curve through f at even knots."""
    knots = np.linspace(low, high, pieces + 1)
    values = f(knots)[:, None]
    return Curve(knots, values, np.diff(values, axis=0) / np.diff(knots)[:, None])


@pytest.mark.parametrize(("text", "low", "high", "pieces"), CASES)
def test_the_error_is_that_of_brute_force_and_the_bound_is_above(text, low, high, pieces):
    f = parse(text)
    g = through(f, low, high, pieces)
    found = sup_error(f, g, [(low, high)])
    x = np.linspace(low, high, 200_001)
    brute = np.abs(f(x) - np.interp(x, g.knots, g.values[:, 0])).max()
    steep = 40 * (high - low) / 200_000
    assert brute * (1 - 1e-12) <= found.bound
    assert brute * (1 - 1e-9) - 1e-12 <= found.value <= found.bound <= 1.002 * found.value + 1e-12
    assert "sign" in text or "mod" in text or found.value <= brute + steep
    assert abs(float(f(*found.x) - g(*found.x)[0])) == pytest.approx(found.value, abs=1e-12)


def test_the_error_of_a_chord_is_known():
    """|x^2 - x| on [0, 1] is largest at 1/2; e^x against its chord at log(e - 1)."""
    assert sup_error(parse("x**2"), through(parse("x**2"), 0, 1, 1), [(0, 1)]).value == pytest.approx(0.25)
    found = sup_error(parse("exp(x)"), through(parse("exp(x)"), 0, 1, 1), [(0, 1)], closeness=1e-6)
    slope = np.e - 1
    assert found.value == pytest.approx(1 + slope * np.log(slope) - slope, rel=1e-9)
    assert found.value <= found.bound <= found.value * (1 + 2e-6)


def test_a_narrow_peak_between_the_samples_is_below_the_bound():
    f, place = parse("exp(-((x - 0.123456) * 1000000)**2)"), 0.123456
    line = Curve([0, 1], [[0], [0]], [[0]])
    found = sup_error(f, line, [(0, 1)])
    assert float(f(place)) == 1.0
    assert 0.999 < found.value <= 1 <= found.bound < 1.002
    assert found.x[0] == pytest.approx(place, abs=1e-7)


UNBOUNDED = [
    *("tan(100 * x)", "where(x != 0.3, sin(x - 0.3) / (x - 0.3), 1)"),
    *("mod(7, x**2 - 2) + x", "square(mod(x, x**2 - 2))"),  # undefined at a point that is no double: no sample finds it
]


@pytest.mark.parametrize("text", UNBOUNDED)
def test_there_may_be_no_bound(text):
    found = sup_error(parse(text), Curve([-1, 11], [[0], [0]], [[0]]), [(-1, 11)])
    assert found.bound is None
    assert found.value > 0


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("floor(x)", 0, 0.1), ("x - x", 0, 1), ("0 * x", -1, 1), ("x**2 - x * x", 0, 1), ("sin(x) - sin(x)", 0, 3)],
)
def test_no_error_at_all_is_shown_soon(text, low, high):
    found = sup_error(parse(text), Curve([low, high], [[0], [0]], [[0]]), [(low, high)])
    assert found.value == 0
    assert 0 <= found.bound <= 1e-6
    assert found.parts < 50_000


def test_an_error_below_rounding_of_the_curve_is_bounded_closely():
    found = sup_error(parse("x"), Curve([0, 1], [[1e-9], [1 + 1e-9]], [[1]]), [(0, 1)])
    assert 1e-9 * (1 - 1e-6) < found.value <= found.bound < 1.002e-9


def test_part_of_the_curve_may_be_asked_about():
    f = parse("x**2")
    g = through(f, -1, 1, 2)
    assert sup_error(f, g, [(-0.2, 0.1)]).value == pytest.approx(0.16)


@pytest.mark.parametrize(
    ("text", "low", "high", "message"),
    [
        ("x + y", 0, 1, "variables x, y"),
        ("x", -1, 1, "domain"),
        ("x", 1, 0, "low < high"),
        ("1 / x", 0, 1, "infinite at x = 0.0"),
        ("1 / (x - 0.3000001)", 0, 1, "infinite at x = 0.3000001"),
        ("log(x - 0.5)", 0, 1, "no real number at x = 0.0"),
    ],
)
def test_what_cannot_be_compared_is_refused(text, low, high, message):
    with pytest.raises(ValueError, match=message):
        sup_error(parse(text), Curve([0, 1], [[0], [1]], [[1]]), [(low, high)])
