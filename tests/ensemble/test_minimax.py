import numpy as np
import pytest
from scipy.optimize import linprog

from plunit.ensemble import MLP, finish_members, forward, initial, train
from plunit.ensemble import minimax as module
from plunit.ensemble.linear_programs import chebyshev_step
from plunit.ensemble.minimax import Target, lower_largest_errors


@pytest.mark.parametrize("seed", range(10))
def test_a_step_is_that_of_another_solver(seed):
    rng = np.random.default_rng(seed)
    count, n = rng.integers(2, 20), rng.integers(30, 200)
    slopes, errors = rng.standard_normal((count, n)), rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6)
    reach = np.abs(errors).max() * rng.uniform(0.001, 0.2, count) * (10 if seed % 2 else 1)
    d, most = chebyshev_step(errors, slopes, reach)
    edges = np.block([[slopes.T, -np.ones((n, 1))], [-slopes.T, -np.ones((n, 1))]])
    unit = np.abs(errors).max()
    bounds = [*zip(-reach / unit, reach / unit, strict=True), (0, None)]
    best = linprog(np.append(np.zeros(count), 1), edges, np.concatenate([-errors, errors]) / unit, bounds=bounds)
    assert most == pytest.approx(np.abs(errors + d @ slopes).max())
    assert (np.abs(d) <= reach).all()
    assert unit * best.fun * (1 - 1e-6) <= most <= unit * (best.fun + 0.03 * (1 - best.fun))


def starts(network, members, x, y):
    theta = initial(network, [np.random.default_rng(seed) for seed in range(members)])
    return train(network, theta, (x.T, y.T), steps=300).theta


def largest(network, theta, x, y):
    return np.abs(forward(network, theta, x.T) - y.T[..., None]).max((0, 1))


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_largest_error_falls_and_never_rises(engine, outputs):
    x = np.random.default_rng(0).uniform(-2, 2, (150, 2))
    y = np.stack([np.sin(x[:, 0]) * x[:, 1], np.abs(x).sum(1)], axis=1)[:, :outputs]
    network = MLP((2, 5, outputs))
    theta = starts(network, 6, x, y)
    seen = []
    found = lower_largest_errors(
        network, theta, x, y, operations=1e8, best=6, engine=engine, progress=lambda done, least: seen.append(least)
    )
    before, after = largest(network, theta, x, y), largest(network, found.theta, x, y)
    np.testing.assert_allclose(found.largest, after, rtol=1e-12)
    assert (after <= before[found.number] * (1 + 1e-12)).all()
    assert after.min() < 0.8 * before.min()
    assert (np.diff(found.largest) >= 0).all()
    assert (np.diff(seen) <= 0).all()


def test_the_best_polygon_for_a_parabola():
    """K equal pieces on [0, 1] are at best 1 / (8 k^2) away from x^2: 4 units of relu make them."""
    x = np.linspace(0, 1, 50)[:, None]
    network = MLP((1, 4, 1), "relu")
    formula = Target(lambda x: x**2, np.array([[0.0, 1.0]]))
    theta = np.array([1.0, 1, 1, 1, 0.5, -0.2, -0.4, -0.8, 0.1, 0.4, 0.4, 0.4, 0])[:, None]  # kinks -0.5, 0.2, 0.4, 0.8
    found = lower_largest_errors(network, theta, x, x**2, operations=1e9, formula=formula)
    fine = np.linspace(0, 1, 100_001)[:, None]
    error = largest(network, found.theta, fine, fine**2)[0]
    assert 1 / 128 * (1 - 1e-6) <= error <= 1.2 / 128
    assert found.largest[0] == pytest.approx(error, rel=0.01)


def test_points_follow_the_errors_between_the_rows():
    x = np.linspace(-3, 3, 12)[:, None]
    network, formula = MLP((1, 6, 1)), Target(np.sin, np.array([[-3.0, 3.0]]))
    theta = starts(network, 8, x, np.sin(x))
    fine = np.linspace(-3, 3, 10_001)[:, None]
    blind, found = (
        largest(
            network,
            lower_largest_errors(network, theta, x, np.sin(x), operations=1e9, **more).theta,
            fine,
            np.sin(fine),
        )
        for more in ({}, {"formula": formula})
    )
    assert found[0] < 0.5 * blind[0]


def test_a_search_that_finds_a_larger_error_is_believed():
    x = np.linspace(-1, 1, 30)[:, None]
    spike = lambda x: np.maximum(0.0, 0.5 - 1e9 * np.abs(x - 0.123456))  # noqa: E731
    asked = []

    def worst(theta):
        asked.append(theta)
        return np.array([[0.123456]])

    formula = Target(spike, np.array([[-1.0, 1.0]]), worst)
    network = MLP((1, 2, 1))
    found = lower_largest_errors(network, starts(network, 2, x, spike(x)), x, spike(x), operations=1e6, formula=formula)
    assert len(asked) >= 2
    assert found.largest[0] >= abs(forward(network, found.theta, [[0.123456]])[0, 0, 0] - 0.5) * (1 - 1e-9)


def test_the_same_start_gives_the_same_bits():
    x = np.random.default_rng(1).uniform(-1, 1, (100, 2))
    y = x[:, :1] * x[:, 1:]
    network = MLP((2, 4, 1))
    theta, formula = starts(network, 3, x, y), Target(lambda x: x[:, :1] * x[:, 1:], np.array([[-1.0, 1.0]] * 2))
    first, second = (lower_largest_errors(network, theta, x, y, operations=1e7, formula=formula) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)


@pytest.mark.parametrize("during", ["finish_members", "chebyshev_step"])
def test_ctrl_c_keeps_the_best(monkeypatch, during):
    x = np.linspace(-3, 3, 60)[:, None]
    network = MLP((1, 4, 1))
    theta = starts(network, 4, x, np.sin(x))
    calls, whole = [], getattr(module, during)

    def press(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, during, press)
    with pytest.warns(UserWarning, match="interrupted"):
        found = lower_largest_errors(network, theta, x, np.sin(x), operations=1e8)
    assert found.largest[0] < largest(network, theta, x, np.sin(x)).min()


@pytest.mark.parametrize("power", [3, 4, 7, 48])
def test_steps_for_a_power_are_those_of_numpy_and_lower_it(power):
    x = np.linspace(-3, 3, 90)[:, None]
    network = MLP((1, 5, 1), "tanh")
    theta = starts(network, 3, x, np.sin(x))
    both = [
        finish_members(network, theta, (x.T, np.sin(x).T), steps=5, power=power, engine=engine)
        for engine in ("native", "numpy")
    ]
    np.testing.assert_allclose(both[0].theta, both[1].theta, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(both[0].unit, largest(network, theta.astype(float), x, np.sin(x)), rtol=1e-9)
    for one in both:
        away = np.abs(forward(network, one.theta, x.T) - np.sin(x).T[..., None])[0] / one.unit
        np.testing.assert_allclose(one.loss, (away**power).mean(0), rtol=1e-6)
        before = np.abs(forward(network, theta.astype(float), x.T) - np.sin(x).T[..., None])[0] / one.unit
        assert (one.loss < (before**power).mean(0)).all()
