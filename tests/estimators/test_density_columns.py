"""PLUDensity's columns: bounds, integers, rounded and constant ones."""

import warnings

import numpy as np
import pytest
from scipy import stats

from plunit.sklearn import PLUDensity
from plunit.sklearn.density.columns import ColumnLabels, Columns, find_integers, limits

INF = np.inf
RNG = np.random.default_rng(0)
FEW = {"n_init": 2, "n_best": 2, "max_iter": 400, "random_state": 3}
KINDS = Columns(
    low=np.array([-INF, 2.0, -INF, -1.0]),
    high=np.array([INF, INF, 5.0, 3.0]),
    step=np.zeros(4),
    integer=np.zeros(4, bool),
    margin=np.full(4, 1e-3),
)


def test_columns_return_have_the_slope_of_finite_differences_and_stay_within_bounds():
    x = np.column_stack([RNG.normal(size=50), RNG.uniform(2, 9, 50), RNG.uniform(-9, 5, 50), RNG.uniform(-1, 3, 50)])
    u, log_slopes = KINDS.to_line(x)
    np.testing.assert_allclose(KINDS.from_line(u), x, rtol=1e-12)
    h = 1e-6
    difference = (KINDS.to_line(x + h)[0] - KINDS.to_line(x - h)[0]) / (2 * h)
    np.testing.assert_allclose(log_slopes, np.log(difference).sum(1), rtol=1e-5)
    assert KINDS.admits(KINDS.from_line(np.array([[-1e3] * 4, [1e3] * 4, [-40.0] * 4, [40.0] * 4]))).all()


def test_rounded_values_next_to_a_bound_are_spread_out_on_its_inner_side():
    """Evenly: the part of the interval beyond the bound is reflected, not piled up on the bound."""
    part = Columns(*(np.array([one]) for one in (0.0, 1.0, 0.5, False, 1e-3)))
    for bound in (0.0, 1.0):
        spread = np.abs(part.scatter(np.full((4000, 1), bound), np.random.RandomState(0)) - bound)
        assert spread.max() <= 0.25
        assert len(np.unique(spread)) == 4000
        assert spread.mean() == pytest.approx(0.125, abs=0.005)


@pytest.mark.parametrize(
    ("bounds", "density", "mirror", "ends"),
    [
        ((0, 1), stats.beta(2, 1), False, (0.0, 1.0)),
        ((-3, 7), stats.uniform(-3, 10), False, (-3.0, 7.0)),
        ((0, None), stats.gamma(2), False, (0.0, 40.0)),
        ((None, 5), stats.expon(0), True, (-30.0, 5.0)),
    ],
)
def test_bounded_densities_integrate_to_1_and_are_close(bounds, density, mirror, ends):
    x = density.rvs((800, 1), random_state=0)
    truth = density.logpdf(x).mean()
    x = 5 - x if mirror else x
    model = PLUDensity((0, 4), bounds=bounds, **FEW).fit(x)
    middles = ends[0] + (ends[1] - ends[0]) * (np.arange(40_000) + 0.5)[:, None] / 40_000
    assert np.exp(model.score_samples(middles)).mean() * (ends[1] - ends[0]) == pytest.approx(1, abs=2e-3)
    assert truth - 0.1 < model.score(x) < truth + 0.06
    samples = model.sample(1000, random_state=0)
    assert samples.min() >= ends[0] or bounds[0] is None
    assert samples.max() <= ends[1] or bounds[1] is None


def test_points_outside_and_on_bounds():
    x = np.append(RNG.uniform(0, 1, 300), [0.0, 1.0])[:, None]
    model = PLUDensity((0, 2), bounds=[(0, 1)], **FEW).fit(x)
    found = model.score_samples([[0.0], [1.0], [-1e-9], [1.1], [0.5]])
    assert np.isfinite(found).tolist() == [True, True, False, False, True]
    assert found[2:4].tolist() == [-INF, -INF]
    with pytest.raises(ValueError, match=r"column 0 holds -0\.1, outside its bounds \[0, 1\]; correct"):
        model.fit(x - 0.1)


@pytest.mark.parametrize("bounds", [(-1e14, None), (-1e15, 1e15), (-1e308, 1e308), (None, 1e8)])
def test_bounds_far_away_are_left_out(bounds):
    x = RNG.normal(size=(200, 1))
    model, plain = PLUDensity((0, 2), bounds=bounds, **FEW).fit(x), PLUDensity((0, 2), **FEW).fit(x)
    assert np.array_equal(model.score_samples(x), plain.score_samples(x))
    assert np.isinf(model.bounds_).all()


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (None, [(-INF, INF)] * 3),
        ((0, None), [(0, INF)] * 3),
        ([None, (0, 1), (None, 2)], [(-INF, INF), (0, 1), (-INF, 2)]),
        ({1: (0, 1), -1: (3, 4.5)}, [(-INF, INF), (0, 1), (3, 4.5)]),
        ({1: None, 2: (0, 1)}, [(-INF, INF), (-INF, INF), (0, 1)]),
        ({"b": [0, INF]}, [(-INF, INF), (0, INF), (-INF, INF)]),
        (np.array([[0, 1], [1, 2], [2, 3]]), [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_forms_of_bounds(bounds, expected):
    low, high = limits(bounds, ColumnLabels(3, ["a", "b", "c"]))
    assert list(zip(low, high, strict=True)) == expected


@pytest.mark.parametrize("bounds", [None, (0, None)])
def test_probabilities_of_integers_sum_to_1(bounds):
    k = RNG.poisson(3, (600, 1))
    model = PLUDensity((0, 4), bounds=bounds, **{**FEW, "max_iter": 2000}).fit(k)
    every = np.arange(-20, 60)[:, None]
    chances = np.exp(model.score_samples(every))
    assert chances.sum() == pytest.approx(1, abs=1e-3)
    assert bounds is None or chances[:20].max() == 0
    truth, first = stats.poisson(3), np.arange(20)
    assert -0.05 < truth.pmf(first) @ model.score_samples(first[:, None]) + truth.entropy() < 0
    samples = model.sample(2000, random_state=0)
    assert (samples == np.rint(samples)).all()
    assert bounds is None or samples.min() >= 0
    assert samples.mean() == pytest.approx(chances @ every[:, 0], abs=4 * samples.std() / np.sqrt(2000))


def test_integers_beside_numbers():
    """p(k, x) with x normal around k in {0, 1, 2}: sums over k, integrals over x."""
    k = RNG.integers(0, 3, 600)
    x = np.column_stack([k, RNG.normal(k, 0.5)])
    model = PLUDensity((4,), bounds={0: (0, 2)}, **FEW).fit(x)
    side = np.linspace(-4, 6, 501)
    grid = np.array([(i, s) for i in range(3) for s in side])
    mass = np.exp(model.score_samples(grid)).reshape(3, 501).sum(1) * (side[1] - side[0])
    np.testing.assert_allclose(mass.sum(), 1, atol=0.02)  # in two columns the mean over a cell is a random one
    np.testing.assert_allclose(mass, np.bincount(k) / 600, atol=0.08)
    assert set(model.sample(500, random_state=0)[:, 0]) == {0.0, 1.0, 2.0}


def test_fractions_have_no_probability_among_integers():
    model = PLUDensity((0,), **FEW).fit(RNG.poisson(3, (200, 1)))
    with pytest.warns(UserWarning, match=r"columns \[0\] held only integers in fit, so other values"):
        assert model.score_samples([[2.5], [2.0]])[0] == -INF
    with pytest.warns(UserWarning, match="rows are distinct"):
        other = PLUDensity((0,), integers=None, **FEW).fit(RNG.poisson(3, (200, 1)))
    assert np.isfinite(other.score_samples([[2.5]])).all()


WHOLE = np.array([[1.0, 0.5, 1e300], [2.0, 1.0, 1e300]])


@pytest.mark.parametrize("integers", ["auto", ["a"], {0}, [True, False, False], np.array([True, False, False]), None])
def test_which_columns_are_integers(integers):
    found = find_integers(WHOLE, integers, ColumnLabels(3, ["a", "b", "c"]))
    assert found.tolist() == [integers is not None, False, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bounds": "01"}, "bounds must be"),
        ({"bounds": [(0, 1)] * 4}, r"a pair or None for each of 3 columns, got \[\(0, 1\)"),
        ({"bounds": (1, 1)}, r"bounds of column 0 \(a\) must have low < high"),
        ({"bounds": (np.nan, 1)}, r"bounds of column 0 \(a\) must have low < high"),
        ({"bounds": {3: (0, 1)}}, r"a column in bounds must be one of 0, \.\.\., 2 or one of a, b, c, got 3"),
        (
            {"bounds": [(0, 1), 5, None]},
            r"bounds of column 1 \(b\) must be two numbers \(low, high\), None for no bound",
        ),
        ({"integers": [1]}, r"column 1 \(b\) is in integers but holds 0\.5; round it, or remove"),
        ({"integers": "all"}, "integers must be"),
        ({"integers": ["d"]}, "a column in integers must be one of 0, .* got 'd'"),
    ],
)
def test_wrong_bounds_and_integers_are_named(given, message):
    labels = ColumnLabels(3, ["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        limits(given["bounds"], labels) if "bounds" in given else find_integers(WHOLE, given["integers"], labels)


def test_rounded_values_do_not_attract_the_density():
    """Rows rounded to halves have the density of those that are not, without a peak at each value."""
    x = np.round(2 * RNG.normal(size=(600, 1))) / 2 + 0.03
    model = PLUDensity((16,), **{**FEW, "max_iter": 3000}).fit(x)
    assert model.steps_ == pytest.approx([0.5])
    test = RNG.normal(size=(4000, 1)) + 0.03
    assert model.score(test) == pytest.approx(stats.norm.logpdf(test - 0.03).mean(), abs=0.06)


def test_integers_far_from_0_are_not_constant():
    x = np.arange(30.0)[:, None]
    near, far = (PLUDensity((0,), **FEW).fit(x + centre).score(x + centre) for centre in (0, 1e15))
    assert far == pytest.approx(near, abs=0.02)


A, B = RNG.normal(size=(2, 200))
ATOM = np.append(A, np.zeros(200))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.c_[A, RNG.choice([0.25, 0.5, 1.75], 200)], r"column 1 has only 3 values in 200 rows; .* by 0\.25"),
        (np.repeat(np.c_[A, B][:50], 4, axis=0), "only 50 of 200 rows are distinct; the others count as weights"),
        (np.c_[A, RNG.choice([0.3, 0.1 + 0.2], 200)], "column 1 is constant"),
        (np.c_[A, A], r"columns 0, 1 are linearly dependent \(to .* drop columns"),
        (np.c_[A, B, A**2, A + A**2], "columns 0, 2, 3 are linearly"),
        (np.c_[A, 1e9 - 3e5 * A, B], "columns 0, 1 are linearly"),
        (np.c_[A, A + np.where(np.arange(200) < 2, 500, 0)], "columns 0, 1 are linearly"),
        (ATOM[:, None], "column 0 is discrete, at least in part: 0 makes up 50% of column 0"),
        (np.c_[ATOM, RNG.normal(size=400)], "column 0 is discrete"),
    ],
)
def test_what_has_no_density_is_warned_of(x, text):
    with pytest.warns(UserWarning, match=f"^{text}") as found:
        model = PLUDensity((0,), **FEW).fit(x)
    assert {one.filename for one in found} == {__file__}
    assert np.isfinite(model.score(x))


def test_constant_columns_have_no_density():
    x = RNG.normal(size=(100, 2))
    wide = np.column_stack([np.full(100, 7.5), x])
    with pytest.warns(UserWarning, match=r"column 0 is constant \(7\.5\) and has no density: other values get"):
        model = PLUDensity((0, 2), **FEW).fit(wide)
    plain = PLUDensity((0, 2), **FEW).fit(x)
    np.testing.assert_allclose(model.score_samples(wide), plain.score_samples(x))
    assert model.score_samples(wide + np.array([1, 0, 0])).max() == -INF
    assert set(model.sample(5)[:, 0]) == {7.5}


@pytest.mark.parametrize(
    "x",
    [
        np.c_[np.round(2 * A) / 2, B][:60],
        np.c_[np.round(A, 1), B],
        np.r_[A, np.zeros(15)][:, None],
        np.c_[A, A + 1e-3 * B],
        np.c_[A, B],
        RNG.poisson(3, (100, 2)),
    ],
    ids=["halves", "tenths", "a value of few rows", "near each other", "plain numbers", "integers"],
)
def test_what_has_a_density_is_not_warned_of(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PLUDensity((0,), **FEW).fit(x)
