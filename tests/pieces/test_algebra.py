import numpy as np
import pytest

from plunit.pieces import Curve, activation, compose, curve, distance, inverse, network, solve

TENT = Curve([0, 1, 2], [[0], [1], [0]], [[1], [-1]])
PLU = curve(network([([[1.0]], [0.0]), activation.plu()]), -4.0, 4.0)


def random_curve(seed, low=-2.0, high=2.0):
    rng = np.random.default_rng(seed)
    knots = np.concatenate([[low], np.sort(rng.uniform(low, high, 7)), [high]])
    values = rng.uniform(-2, 2, (9, 1))
    return Curve(knots, values, np.diff(values, axis=0) / np.diff(knots)[:, None])


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (0.5, [[0.5, 0.5], [1.5, 1.5]]),
        (1.0, [[1.0, 1.0]]),
        (np.nextafter(1.0, 2.0), [[1.0, 1.0]]),
        (0.0, [[0.0, 0.0], [2.0, 2.0]]),
        (2.0, []),
        (-1e-3, []),
    ],
)
def test_solve_tent(y, expected):
    np.testing.assert_allclose(solve(TENT, y), np.array(expected).reshape(-1, 2), atol=1e-15)


def test_solve_plateaus():
    stairs = Curve([0, 1, 2, 3, 4], [[0], [0], [1], [1], [0]], [[0], [1], [0], [-1]])
    assert solve(stairs, 0.0).tolist() == [[0, 1], [4, 4]]
    assert solve(stairs, 1.0).tolist() == [[2, 3]]


@pytest.mark.parametrize("seed", range(10))
def test_solve_finds_every_sign_change(seed):
    f = random_curve(seed)
    x = np.linspace(-2, 2, 100_001)
    sampled = np.flatnonzero(np.diff(np.sign(f(x)[:, 0] - 0.3)))
    found = solve(f, 0.3)
    assert len(found) == len(sampled)
    np.testing.assert_allclose(f(found)[..., 0], 0.3, atol=1e-12)
    np.testing.assert_allclose(found[:, 0], x[sampled], atol=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_distance_is_the_largest_gap(seed):
    f, g = random_curve(seed), random_curve(seed + 100)
    x = np.linspace(-2, 2, 20_001)
    sampled = np.abs(f(x) - g(x)).max()
    assert sampled <= distance(f, g) <= sampled + 1e-2
    assert distance(f, f) == 0


@pytest.mark.parametrize("seed", range(10))
def test_compose_is_evaluation_one_after_the_other(seed):
    f, g = random_curve(seed), random_curve(seed + 50)
    both = compose(f, g)
    x = np.concatenate([np.linspace(-2, 2, 5001), both.knots])
    np.testing.assert_allclose(both(x), f(g(x)[:, 0]), atol=1e-9)
    assert both.merged().pieces == both.pieces


@pytest.mark.parametrize("seed", range(60))
def test_compose_where_knots_meet(seed):
    g = random_curve(seed)
    knots = np.concatenate([[-2.0], np.sort(g.values[1:-1, 0]), [2.0]])
    both = compose(Curve(knots, knots[:, None] ** 2, (knots[1:] + knots[:-1])[:, None]), g)
    assert np.diff(both.knots).min() > 1e-9


def test_compose_has_the_kinks_of_both():
    assert compose(TENT, TENT).knots.tolist() == [0, 1, 2]
    assert compose(TENT, Curve([0, 1], [[0], [2]], [[2]])).knots.tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_inverse_undoes(sign):
    f = Curve(PLU.knots, sign * PLU.values, sign * PLU.slopes)
    x = np.linspace(-4, 4, 1001)
    np.testing.assert_allclose(inverse(f)(f(x)[:, 0])[:, 0], x, atol=1e-12)
    np.testing.assert_allclose(np.sort(np.unique(inverse(f).slopes)), np.sort([sign, sign * 10]), rtol=1e-12)


def test_inverse_of_plu_is_plu_with_the_inverse_slope():
    expected = curve(network([([[1.0]], [0.0]), activation.plu(10.0)]), *PLU.values[[0, -1], 0])
    assert distance(inverse(PLU), expected) < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve(TENT, np.nan), "finite"),
        (lambda: distance(TENT, PLU), "same domain"),
        (lambda: compose(TENT, PLU), "outside"),
        (lambda: inverse(TENT), "turns or is flat at x = 1.0"),
        (lambda: inverse(Curve([0, 1, 2], [[0], [0], [1]], [[0], [1]])), "flat at x = 0.0"),
        (lambda: inverse(Curve([0, 1], [[0, 0], [1, 1]], [[1, 1]])), "one output"),
        (lambda: compose(TENT, Curve([0, 1], [[0, 0], [1, 1]], [[1, 1]])), "one output"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
