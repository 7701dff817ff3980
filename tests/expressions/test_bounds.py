"""Intervals hold what they should: values and difference quotients at random points."""

import random

import numpy as np
import pytest

from plunit.expressions import parse
from plunit.expressions.expression import enclosure, slope_enclosure
from plunit.expressions.intervals import LARGEST, Interval
from plunit.expressions.vocabulary import FUNCTIONS

EACH = [
    *(f"{name}(x)" for name, item in FUNCTIONS.items() if len(item.arguments) == 1),
    *(f"{name}(1.5 * x)" for name in ("sin", "cos", "tan", "tanh", "sinh", "cosh")),
    *(f"x**{n}" for n in (0, 1, 2, 3, 4, 7, "(-1)", "(-2)", "(-3)", 0.5, 1.5, 2.5, "(-0.5)", "(1 / 3)")),
    *("2**x", "0.5**x", "0**x", "1**x", "(-2)**x", "x**x", "(x + 3)**x", "x**(x - 1)", "floor(x)**floor(2 * x)"),
    *("x + x", "x - 2 * x", "x * x", "x * (1 - x)", "1 / x", "x / (x**2 + 1)", "1 / (x - 0.5)", "-x", "+x"),
    *("where(x < 0, x, 2 * x)", "where(x >= 1, sqrt(x - 1), 0)", "where(x == 0, 1, sin(x) / x)", "where(x != 1, 1, x)"),
    *("where(log(x) < 0, 1, 2)", "where(log(x) != 0, 1, 2)", "where(1 / x > 0, 1, -1)", "where(0 * x <= x, x, 3)"),
    *("minimum(x, 1 - x)", "maximum(x, x**2)", "clip(x, -0.5, x**2)", "clip(x, 1, -1)", "hypot(x, 1)", "hypot(x, x)"),
    *("arctan2(x, 1)", "arctan2(x, -1)", "arctan2(1, x)", "arctan2(x, x - 1)", "mod(x, 0.7)", "mod(x, -2)"),
    *("mod(x, x + 1)", "heaviside(x, 0.25)", "heaviside(x - x, x)", "exp(-1 / abs(x))", "log(x)**0"),
    *("exp(exp(5 * x))", "exp(1000 * x) * exp(-1000 * x)", "sin(1e18 * x)", "sin(1e6 * x)", "1e308 * x * 10 - x"),
    *("sqrt(x)**sqrt(x)", "mod(2, x)", "0 * (1 / x)"),
]  # fmt: skip


def boxes(rng, count):
    """Return ends of random intervals, wide and narrow; some are points, some begin or end at a whole number."""
    middle, half = rng.uniform(-4, 4, count), 10 ** rng.uniform(-6, 0.5, count)
    low, high = middle - half, middle + half
    low[::5] = np.round(low[::5])
    high[1::5] = np.maximum(low[1::5], np.round(high[1::5]))
    high[2::10] = low[2::10]
    # + 0.0: -0.0 becomes 0.0, because 1 / -0.0 is -inf
    return np.minimum(low, high) + 0.0, np.maximum(low, high) + 0.0


def samples(rng, low, high, count):
    """Return random points of intervals [n], their ends among them, [count, n]."""
    x = low + (high - low) * rng.uniform(0, 1, (count, len(low)))
    return np.clip(np.concatenate([x, low[None], high[None], np.clip(0.0, low, high)[None]]), low, high)


def outside(f, rng, per_box, count=300):
    """Return a value outside its interval, or None."""
    low, high = boxes(rng, count)
    found = enclosure(f.steps, low[None], high[None])
    x = samples(rng, low, high, per_box)
    y = f(x)
    wrong = np.isfinite(y) & ~((y >= found.low) & (y <= found.high))
    return (x[wrong][0], y[wrong][0]) if wrong.any() else None


@pytest.mark.parametrize("text", EACH)
def test_values_lie_in_their_intervals(text):
    assert outside(parse(text), np.random.default_rng(0), 34) is None


@pytest.mark.parametrize("text", EACH)
def test_difference_quotients_lie_in_the_slopes(text):
    rng, f = np.random.default_rng(1), parse(text)
    low, high = boxes(rng, 300)
    _, slope = slope_enclosure(f.steps, low[None], high[None])
    a, b = np.sort([samples(rng, low, high, 12), rng.permutation(samples(rng, low, high, 12))], axis=0)
    y = f(np.stack([a, b]))
    with np.errstate(all="ignore"):
        quotient = (y[1] - y[0]) / (b - a)
        rounding = 1e-13 * (np.abs(y).max(axis=0) + 1e-3) / (b - a)
        # the slope of a text that cancels is known to the rounding of its value only
        rounding = rounding + 2 * (b - a > 0) * _rounding(f, a, b) / (b - a)
        known = np.isfinite(quotient) & np.isfinite(slope.low) & np.isfinite(slope.high)
        wrong = known & ~((quotient >= slope.low - rounding) & (quotient <= slope.high + rounding))
    assert not wrong.any(), (a[wrong][0], b[wrong][0], quotient[wrong][0])


def _rounding(f, *places):
    """Return the widths of the intervals at points."""
    found = [enclosure(f.steps, x.reshape(1, -1), x.reshape(1, -1)) for x in places]
    return sum((item.high - item.low).reshape(places[0].shape) for item in found)


def formula(rng, depth):
    """Return a random formula in x."""
    if depth == 0:
        return rng.choice(["x", "x", "2", "0.5", "pi", "(x + 1)"])
    sub = [formula(rng, depth - rng.randrange(1, 3) if depth > 1 else 0) for _ in range(3)]
    one = rng.choice([name for name, item in FUNCTIONS.items() if len(item.arguments) == 1])
    two = rng.choice(["hypot", "minimum", "maximum", "mod", "arctan2", "heaviside"])
    return rng.choice([
        f"({sub[0]} {rng.choice(['+', '-', '*', '/'])} {sub[1]})",
        f"({sub[0]})**{rng.choice(['2', '3', '(-1)', '0.5', '(x)'])}",
        f"-({sub[0]})",
        f"{one}({sub[0]})",
        f"{two}({sub[0]}, {sub[1]})",
        f"clip({sub[0]}, {sub[1]}, {sub[2]})",
        f"where({sub[0]} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {sub[1]}, {sub[2]}, {sub[0]})",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_random_formulas_keep_their_bounds(seed):
    f = parse(formula(random.Random(seed), 4))
    assert outside(f, np.random.default_rng(seed), 31) is None, f.text


CLOSE = {
    "sin(x)": (0, 2, 0, 1),
    "cos(x)": (-1, 4, -1, 1),
    "x**2": (-1, 2, 0, 4),
    "x**3": (-1, 2, -1, 8),
    "1 / x": (1, 4, 0.25, 1),
    "x**(-2)": (-1, 1, 1, np.inf),
    "abs(x)": (-3, 2, 0, 3),
    "sqrt(x)": (-1, 4, 0, 2),
    "exp(-1 / x)": (0, 1, 0, np.exp(-1)),
    "tan(x)": (1, 2, -np.inf, np.inf),
    "where(x < 0, -1, 1)": (1, 2, 1, 1),
    "sign(x)": (-1, 1, -1, 1),
    "mod(x, 1)": (0.25, 0.75, 0.25, 0.75),
    "log(x)": (0, 1, -np.inf, 0),
    "arctan2(1, x)": (-1, 1, np.pi / 4, 3 * np.pi / 4),
}


def bound(text, low, high):
    """Return the ends of the values in a box; low and high are numbers, or one for each variable."""
    found = enclosure(parse(text).steps, *(np.reshape(np.array(end, float), (-1, 1)) for end in (low, high)))
    return float(found.low[0]), float(found.high[0])


def slope_bound(text, low, high):
    """Return the ends of the slopes in an interval."""
    _, found = slope_enclosure(parse(text).steps, np.array([[low]], float), np.array([[high]], float))
    return float(found.low[0]), float(found.high[0])


@pytest.mark.parametrize("text", CLOSE)
def test_intervals_of_single_functions_are_close(text):
    low, high, bottom, top = CLOSE[text]
    np.testing.assert_allclose(bound(text, low, high), (bottom, top), rtol=1e-14, atol=1e-14)


def test_a_box_has_a_range_for_each_variable():
    assert bound("x * y - x", (1, 2), (2, 4)) == pytest.approx((0, 7))
    assert bound("2 * 3", 0, 1) == pytest.approx((6, 6))


@pytest.mark.parametrize(
    ("text", "low", "high"), [("mod(x, x)", -1, 11), ("mod(x, x - 10)", -1, 11), ("mod(2, x)", 0, 1)]
)
def test_a_remainder_by_zero_is_not_bounded(text, low, high):
    assert bound(text, low, high) == (-np.inf, np.inf)


NONE = -np.inf, np.inf
STEEP = [
    ("sin(x)", 0, 1, np.cos(1), 1),
    ("x**3", -1, 2, 0, 12),
    ("abs(x)", -1, 2, -1, 1),
    ("abs(x)", 1, 2, 1, 1),
    ("max(x, 2 * x)", -1, 1, 1, 2),
    ("where(x < 0, x, 2 * x)", 0.5, 1, 2, 2),
    ("where(x < 0, x, 2 * x)", -1, 1, *NONE),
    ("floor(x)", 0.25, 0.75, 0, 0),
    ("floor(x)", 0.25, 1, *NONE),
    ("sign(x)", -1, 1, *NONE),
    ("1 / x", -1, 1, *NONE),
    ("2**x", 0, 1, np.log(2), 2 * np.log(2)),
    ("log10(x)", 1, 2, 0.5 / np.log(10), 1 / np.log(10)),
    ("sqrt(x)", 0, 1, *NONE),
    ("0 * sqrt(x)", -1, 1, *NONE),
    ("0 * x**1.5", -1, 1, *NONE),
    ("0 * sqrt(x)", 1, 2, 0, 0),
]


@pytest.mark.parametrize(("text", "low", "high", "least", "most"), STEEP)
def test_slopes_of_single_functions_are_close(text, low, high, least, most):
    np.testing.assert_allclose(slope_bound(text, low, high), (least, most), rtol=1e-13, atol=1e-13)


def test_sums_are_rounded_outward():
    third = Interval(*(np.array([0.1]),) * 2, np.array([False]))
    total = third + third + third
    assert total.low[0] < 0.3 < total.high[0]
    with np.errstate(over="ignore"):
        assert (Interval(*(np.array([LARGEST]),) * 2, np.array([False])) + third).high[0] > LARGEST
