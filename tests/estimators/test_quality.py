"""Functions that small networks can learn: how well they are learned, on rows that were not seen."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from plunit.ensemble import forward
from plunit.sklearn import PLUClassifier, PLURegressor

RNG = np.random.default_rng(0)
SEEN, NEW = RNG.uniform(-1, 1, (400, 2)), RNG.uniform(-1, 1, (1000, 2))


@pytest.mark.parametrize(
    ("function", "least"),
    [
        (lambda x: np.abs(x[:, 0]), 0.9999),
        (lambda x: 3 * x[:, 0] - x[:, 1] + 7, 0.9999),
        (lambda x: x[:, 0] * x[:, 1], 0.995),
        (lambda x: np.stack([np.sin(3 * x[:, 0]), x[:, 1] ** 2], axis=1), 0.995),
    ],
    ids=["absolute value", "plane", "product", "two outputs"],
)
def test_functions(function, least):
    model = PLURegressor(n_init=32, random_state=0).fit(SEEN, function(SEEN))
    assert model.score(NEW, function(NEW)) > least


def test_exclusive_or():
    model = PLUClassifier(n_init=32, random_state=0).fit(SEEN, (SEEN > 0).sum(1) == 1)
    assert model.score(NEW, (NEW > 0).sum(1) == 1) > 0.97


def test_moons():
    (x, y), (new, truth) = (make_moons(400, noise=0.1, random_state=i) for i in (0, 10))
    model = PLUClassifier(n_init=32, random_state=0).fit(x, y)
    assert model.score(new, truth) > 0.99
    chances = model.predict_proba(new)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert -np.log(chances[np.arange(400), truth]).mean() < 0.05


def test_three_classes():
    x, y = load_iris(return_X_y=True)
    model = PLUClassifier((8,), n_init=32, random_state=0).fit(x[::2], y[::2])
    assert model.score(x[1::2], y[1::2]) > 0.92


def test_labels():
    model = PLUClassifier(n_init=32, random_state=0).fit(SEEN, SEEN > 0.3)
    assert (model.predict(NEW) == (NEW > 0.3)).mean() > 0.98
    np.testing.assert_array_equal(model.predict(NEW), model.predict_proba(NEW) > 0.5)
    np.testing.assert_allclose(model.network_(NEW), model.decision_function(NEW), rtol=1e-9, atol=1e-9)


def test_a_mean_is_better_than_its_worst_member():
    y = SEEN[:, 0] * SEEN[:, 1] + 0.2 * RNG.normal(size=400)
    truth = NEW[:, 0] * NEW[:, 1]
    mean = PLURegressor(n_init=32, random_state=0).fit(SEEN, y)
    values = forward(mean._form(), mean.theta_, NEW.T, *mean.alpha_and_c_)[0].T
    errors = ((values - truth) ** 2).mean(1)
    assert ((values.mean(0) - truth) ** 2).mean() < np.median(errors)
