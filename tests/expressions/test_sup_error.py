"""The largest error of a network or a curve against an expression: never below brute force, and below the bound."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from plunit.expressions import parse, sup_error
from plunit.expressions.distance import begin_search
from plunit.expressions.forms import halves
from plunit.pieces import Curve, activation, network
from plunit.pieces.networks import exact_outputs
from plunit.pieces.proofs.linear_bounds import LinearBounds
from plunit.programs.libraries import choose_engine


def random_network(rng, widths, f=None, size=1.0):
    layers = []
    for before, width in itertools.pairwise(widths):
        weight, bias = rng.normal(0, size / np.sqrt(before), (width, before)), rng.normal(0, 0.5, width)
        layers += [(weight, bias), f or activation.plu()]
    return network(layers[:-1])


CASES = [
    ("sin(3 * x) + abs(x)", [(-2, 2)], (8, 8)),
    ("sqrt(x**2 + y**2) * sin(3 * x)", [(-2, 2), (-2, 2)], (16, 16)),
    ("x * y", [(-1, 1), (0, 5)], (6,)),
    ("exp(-x**2) * max(y, x)", [(-2, 1), (-1, 2)], (5, 4, 3)),
    ("where(x < y, x**2, x * y)", [(-1, 1), (-1, 1)], (8, 8)),
    ("log(2 + x) * y - z**2", [(-1, 1), (-1, 1), (0, 1)], (8, 8)),
    ("x * y + z * w", [(-1, 1), (-1, 1), (0, 1), (0, 1)], (6, 6)),
    ("arctan2(y, x + 3)", [(-2, 2), (-2, 2)], ()),
]


@pytest.mark.parametrize(
    "f_of_z", [activation.plu(), activation.relu(), activation.piecewise([-1, 0, 2], [0, 2, -1, 1])]
)
@pytest.mark.parametrize(("text", "box", "hidden"), CASES)
def test_the_bound_is_close_and_above_brute_force(text, box, hidden, f_of_z):
    rng, f = np.random.default_rng(len(text)), parse(text)
    net = random_network(rng, (len(box), *hidden, 1), f_of_z)
    found = sup_error(f, net, box)
    x = rng.uniform(*np.array(box, float).T, (100_000, len(box)))
    brute = np.abs(f(*x.T) - net(x)[:, 0]).max()
    assert brute <= found.value * (1 + 1e-9) <= found.bound * (1 + 1e-9)
    assert found.bound <= found.value * 1.0011
    at = np.array(found.x)
    assert abs(float(f(*at)) - net(at)[0]) == pytest.approx(found.value)
    assert ((at >= np.array(box)[:, 0]) & (at <= np.array(box)[:, 1])).all()
    assert found.note == ""


@pytest.fixture(params=["native", "numpy"])
def engine(request):
    if request.param == "native" and choose_engine(None, "prove") == "numpy":
        pytest.skip("no compiler")
    return request.param


@pytest.mark.parametrize("width", [2.0, 0.1, 1e-13, 0.0])
@pytest.mark.parametrize("hidden", [(), (4,), (6, 5), (4, 4, 3)])
def test_the_lines_of_a_network_hold_in_rational_arithmetic(hidden, width, engine):
    """In boxes as small as a rounding, the lines are as far apart as roundings are."""
    rng = np.random.default_rng(7)
    net = random_network(rng, (2, *hidden, 1), activation.piecewise([-1.1, 0.3], [0.1, 1.3, 0.7], 0.1), 2.0)
    low = rng.uniform(-3, 3, (40, 2))
    high = low + width * rng.uniform(0, 1, low.shape)
    y, a = LinearBounds(net, np.array([[-6.0, 6.0]] * 2), engine)(low, high)
    closer = LinearBounds(net, np.array([[-6.0, 6.0]] * 2), "numpy")(low, high)[0]
    assert np.abs(y - closer).max() < 1e-10  # the same lines, but for roundings
    middle = low / 2 + high / 2
    for n in range(len(low)):
        for x in (low[n], high[n], middle[n], [low[n, 0], high[n, 1]]):
            x = np.asarray(x)
            (exact,) = exact_outputs(net, x)
            above, below = (
                Fraction(y[n, side])
                + sum(
                    Fraction(s) * (Fraction(v) - Fraction(m)) for s, v, m in zip(a[n, side], x, middle[n], strict=True)
                )
                for side in (0, 1)
            )
            assert below <= exact <= above
    if width <= 1e-13:
        assert (y[:, 0] - y[:, 1]).max() < 1e-10


@pytest.mark.parametrize("width", [1.0, 0.1, 1e-14, 0.0])
@pytest.mark.parametrize("kind", ["network", "curve"])
def test_bounds_of_boxes_hold_in_rational_arithmetic(kind, width):
    """At the corner that the bound names, and at others: all of it is the error, and a rounding or two."""
    rng, written = np.random.default_rng(5), "x * x * x / 3 - x + 0.1"
    net = random_network(rng, (1, 6, 5, 1), size=3.0)
    knots = np.sort(rng.uniform(-3, 3, 20))
    values = rng.normal(0, 1, (20, 1))
    curve = Curve(knots, values, np.diff(values, axis=0) / np.diff(knots)[:, None])
    search = begin_search(parse(written), net if kind == "network" else curve, [(knots[0], knots[-1])])
    low = rng.uniform(knots[0], knots[-1], 60)
    high = np.minimum(low + width * rng.uniform(0, 1, 60), knots[np.searchsorted(knots, low)])
    top, corner = search.bounds(low[:, None], high[:, None])
    for n in range(60):
        for x in (low[n], high[n], corner[n, 0], (low[n] + high[n]) / 2):
            x, i = Fraction(x), int(np.searchsorted(knots[1:-1], low[n] / 2 + high[n] / 2, side="right"))
            (a, b), (y, z) = (map(Fraction, pair) for pair in (knots[i : i + 2], values[i : i + 2, 0]))
            g = exact_outputs(net, np.array([float(x)]))[0] if kind == "network" else y + (z - y) * (x - a) / (b - a)
            assert abs(x * x * x / 3 - x + Fraction(0.1) - g) <= Fraction(top[n])
    at_points = np.abs(search.errors(low[:, None]))
    assert width > 0 or (top - at_points).max() < 1e-12


def test_a_box_holds_its_ends():
    rng = np.random.default_rng(0)
    low, high = (sign * 10 ** rng.uniform(-3, 3, 500) for sign in (-1, 1))
    middle, half = halves(low, high)
    for a, b, m, h in zip(*(part.tolist() for part in (low, high, middle, half)), strict=True):
        assert Fraction(m) - Fraction(h) <= Fraction(a) < Fraction(b) <= Fraction(m) + Fraction(h)


def test_a_network_that_is_the_function_has_no_error():
    corner = network([([[1.0, 0], [-1, 0], [0, 1], [0, -1]], [0.0] * 4), activation.relu(), ([[1.0] * 4], [0.0])])
    found = sup_error(parse("abs(x) + abs(y)"), corner, [(-1, 1), (-1, 1)])
    assert found.value <= 1e-15
    assert found.bound < 1e-5


FLAT = {count: network([(np.zeros((1, count)), [0.0])]) for count in (1, 2, 5)}


@pytest.mark.parametrize(
    ("text", "words", "bounded"),
    [
        ("floor(x + 0.7) * 2 - 2 * x + y / 99", "the function jumps by 2 near x = 0.3", True),
        ("where(x + y < 0.1, 0, 3 - x - y)", "the function jumps by 2.9 near x =", True),
        ("1 / (x + y - 0.3)", "has no closer bound near x =", False),
        ("tan(2 * x) * y", "it has a pole, or intervals show no bound there", False),
    ],
)
def test_jumps_and_poles_are_named(text, words, bounded):
    found = sup_error(parse(text), FLAT[2], [(-1, 1), (-1, 1)], time_limit=20)
    assert words in found.note
    assert (found.bound is not None) == bounded


def test_rounding_is_not_a_jump():
    found = sup_error(parse("3 + 0 * x"), network([([[0.0]], [np.nextafter(3.0, 4.0)])]), [(-5, 5)])
    assert found.note == ""


def test_the_search_can_be_stopped_and_knows_a_bound():
    f, rng = parse("sin(5 * x * y) * cos(4 * z - w) + x * w"), np.random.default_rng(0)
    net, box, seen = random_network(rng, (4, 24, 24, 1), size=2.0), [(-1, 1)] * 4, []
    short = sup_error(f, net, box, time_limit=0.05)
    assert "ended after 0.05 s" in short.note
    stopped = sup_error(f, net, box, progress=lambda done, what: seen.append((done, what)) or len(seen) == 3)
    assert "stopped" in stopped.note
    assert all(0 <= done <= 1 and "boxes left" in what for done, what in seen)

    def press(done, what):
        if len(seen) > 6:
            raise KeyboardInterrupt
        seen.append((done, what))

    search = begin_search(f, net, box)
    with pytest.raises(KeyboardInterrupt):
        search.refine(None, press)
    x = rng.uniform(-1, 1, (100_000, 4))
    largest = np.abs(f(*x.T) - net(x)[:, 0]).max()
    assert all(largest <= found.bound < 100 for found in (short, stopped, search.outcome()))


@pytest.mark.parametrize(
    ("text", "net", "box", "message"),
    [
        ("a + b + c + d + e_", FLAT[5], [(0, 1)] * 5, "for at most 4"),
        ("x + y", FLAT[1], [(0, 1)], "the variables x, y"),
        ("x", FLAT[1], [(1, 1)], "low < high"),
        ("x + y", FLAT[2], [(0, 1)], "2 pair"),
        ("x", network([([[1.0], [2.0]], [0.0, 0.0])]), [(0, 1)], "one output, got 2"),
        ("1 / (x * y)", FLAT[2], [(-1, 1), (-1, 1)], "infinite at x = "),
    ],
)
def test_what_cannot_be_compared_is_refused(text, net, box, message):
    with pytest.raises(ValueError, match=message):
        sup_error(parse(text), net, box)


def test_only_networks_and_curves_are_compared():
    with pytest.raises(TypeError, match="Network"):
        sup_error(parse("x"), np.sin, [(0, 1)])


@pytest.mark.parametrize("closeness", [0.0, -1, float("nan"), float("inf"), "close"])
def test_a_closeness_that_no_search_reaches_is_refused(closeness):
    with pytest.raises(ValueError, match=f"^closeness must be a positive number, got {closeness!r}"):
        sup_error(parse("x"), FLAT[1], [(0, 1)], closeness=closeness)


@pytest.mark.parametrize("time_limit", [0.0, -5, float("nan"), "long"])
def test_a_time_limit_that_is_none_is_refused(time_limit):
    with pytest.raises(ValueError, match=f"^time_limit must be a positive number of seconds.*got {time_limit!r}"):
        sup_error(parse("x"), FLAT[1], [(0, 1)], time_limit=time_limit)


CURVES = [
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


@pytest.mark.parametrize(("text", "low", "high", "pieces"), CURVES)
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
        ("log(x - 0.5)", 0, 1, "not a real number at x = 0.0"),
    ],
)
def test_what_cannot_be_compared_with_a_curve_is_refused(text, low, high, message):
    with pytest.raises(ValueError, match=message):
        sup_error(parse(text), Curve([0, 1], [[0], [1]], [[1]]), [(low, high)])
