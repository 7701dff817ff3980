"""Intervals and forms hold what they should: values at random points, in double precision and in exact arithmetic."""

import random
import re
from fractions import Fraction

import numpy as np
import pytest

from plunit.expressions import parse
from plunit.expressions.expression import FUNCTIONS
from plunit.expressions.forms import halves, linear_enclosure
from plunit.expressions.intervals import _LARGEST, Interval, enclosure

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


PLANE = [
    *("x * y", "x**2 * y - y**3", "sin(x * y) / (2 + cos(x))", "exp(-x**2 - y**2)", "sqrt(x**2 + y**2)", "hypot(x, y)"),
    *("arctan2(y, x)", "abs(x - y) * x", "max(x, y**2) - min(x, y)", "clip(x, y, 1)", "where(x < y, x, y**2)", "x**y"),
    *("mod(x, y)", "log(4.5 + x) * y", "(x + 5)**y", "x / y", "floor(x) * y", "(x + y)**3 / (1 + x**2 + y**2)"),
]


def outside_form(f, low, high, rng, per_box=20):
    """Return by how much more than its error a value is away from the form, at most; roundings of the test left out."""
    form = linear_enclosure(f.steps, low, high)
    x = low[:, None] + (high - low)[:, None] * rng.choice([0, 0.5, 1, *rng.uniform(0, 1, 5)], (len(low), per_box, 1))
    x = np.clip(x, low[:, None], high[:, None])
    middle = (low / 2 + high / 2)[:, None]
    half = np.maximum((high - low) / 2, 1e-300)[:, None]
    with np.errstate(all="ignore"):
        y = f(*x)
        away = np.abs(y - form.centre - (form.slopes[:, None] * np.clip((x - middle) / half, -1, 1)).sum(axis=0))
        away -= form.error * (1 + 1e-12) + 1e-13 * (np.abs(y) + np.abs(form.centre) + np.abs(form.slopes).sum(axis=0))
        # a text that cancels is computed to the rounding of its value only
        away -= 2 * _rounding(f, x)
    return np.max(away, where=np.isfinite(away), initial=-np.inf)


def _rounding(f, x):
    """Return the widths of the intervals at points."""
    found = enclosure(f.steps, *[x.reshape(len(x), -1)] * 2)
    return (found.high - found.low).reshape(x.shape[1:])


@pytest.mark.parametrize("text", EACH + PLANE)
def test_values_lie_in_their_forms(text):
    rng, f = np.random.default_rng(1), parse(text)
    sides = [boxes(rng, 400) for _ in f.names]
    low, high = (np.stack(ends) for ends in zip(*sides, strict=True))
    assert outside_form(f, low, high, rng) <= 1e-300


@pytest.mark.parametrize("seed", range(40))
def test_random_formulas_lie_in_their_forms(seed):
    f, rng = parse(formula(random.Random(seed), 4)), np.random.default_rng(seed)
    if f.names:
        low, high = boxes(rng, 300)
        assert outside_form(f, low[None], high[None], rng) <= 1e-300, f.text


EXACT = ["x - y + 0.1", "x * y", "x * x - y / 3", "(x + 0.1) / (y + 7)", "abs(x - y) * 0.7", "max(x, y) - min(x, 0.3)",
         "x**3 - 3 * x**2", "where(x < y, x, 0.3 * y)", "clip(x, -0.1, 0.1 * y)", "1 / (x * x + 1) - y**2"]  # fmt: skip
NAMES = {"max": max, "min": min, "abs": abs, "where": lambda c, a, b: a if c else b}
NAMES["clip"] = lambda x, low, high: min(max(x, low), high)


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-14, 0.0])
@pytest.mark.parametrize("text", EXACT)
def test_forms_hold_in_rational_arithmetic(text, width):
    """In boxes as small as a rounding, nothing but the roundings is in the error."""
    rng, f = np.random.default_rng(2), parse(text)
    low = rng.uniform(-2, 2, (len(f.names), 60))
    high = low + width * rng.uniform(0, 1, low.shape)
    form = linear_enclosure(f.steps, low, high)
    written = re.sub(r"(?<![\w.*])\d+(\.\d+)?", lambda number: f"Fraction({float(number[0])!r})", text)
    for n in range(60):
        ends = [[Fraction(end[n]) for end in pair] for pair in zip(low, high, strict=True)]
        for corner in range(2 ** len(ends)):
            x = [pair[corner >> i & 1] for i, pair in enumerate(ends)]
            value = eval(written, {"Fraction": Fraction, **NAMES}, dict(zip(f.names, x, strict=True)))
            middle, half = (map(Fraction, part[:, n].tolist()) for part in halves(low, high))
            t = [(v - m) / h if h else 0 for v, m, h in zip(x, middle, half, strict=True)]
            assert all(abs(v) <= 1 for v in t)
            line = Fraction(form.centre[n]) + sum(Fraction(s) * v for s, v in zip(form.slopes[:, n], t, strict=True))
            assert abs(value - line) <= Fraction(form.error[n])


@pytest.mark.parametrize("text", ["sin(x) * exp(y)", "x * y", "1 / (1 + x**2 + y**2)", "hypot(x, y)", "arctan2(y, x)",
                                  "log(x) * sqrt(y)", "tanh(x - y)", "x**2.5 * y**(-2)", "(x + y)**y"])  # fmt: skip
def test_the_error_of_a_form_is_of_second_order(text):
    f, middle = parse(text), np.random.default_rng(3).uniform(0.5, 2, (2, 200))
    errors = [linear_enclosure(f.steps, middle - h, middle + h).error for h in (2e-3, 1e-3)]
    assert np.median(errors[0] / errors[1]) == pytest.approx(4, abs=0.1)
    x = middle[:, None] + 2e-3 * np.random.default_rng(4).uniform(-1, 1, (2, 500, 200))
    seen = linear_enclosure(f.steps, middle - 2e-3, middle + 2e-3)
    line = seen.centre + (seen.slopes[:, None] * (x - middle[:, None]) / 2e-3).sum(axis=0)
    assert np.median(errors[0] / np.abs(f(*x) - line).max(axis=0)) < 3.5


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


def test_sums_are_rounded_outward():
    third = Interval(*(np.array([0.1]),) * 2, np.array([False]))
    total = third + third + third
    assert total.low[0] < 0.3 < total.high[0]
    with np.errstate(over="ignore"):
        assert (Interval(*(np.array([_LARGEST]),) * 2, np.array([False])) + third).high[0] > _LARGEST
