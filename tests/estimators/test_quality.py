"""Functions that small networks can learn: how well they are learned, on rows that were not seen."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from plunit.sklearn import PLUClassifier, PLURegressor

RNG = np.random.default_rng(0)
SEEN, NEW = RNG.uniform(-1, 1, (400, 2)), RNG.uniform(-1, 1, (1000, 2))
FUNCTIONS = {
    "absolute value": (PLURegressor, lambda x: np.abs(x[:, 0]), 0.9999),
    "plane": (PLURegressor, lambda x: 3 * x[:, 0] - x[:, 1] + 7, 0.9999),
    "product": (PLURegressor, lambda x: x[:, 0] * x[:, 1], 0.995),
    "two outputs": (PLURegressor, lambda x: np.stack([np.sin(3 * x[:, 0]), x[:, 1] ** 2], axis=1), 0.995),
    "exclusive or": (PLUClassifier, lambda x: (x > 0).sum(1) == 1, 0.97),
    "labels": (PLUClassifier, lambda x: x > 0.3, 0.96),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    kind, function, least = FUNCTIONS[name]
    model = kind(n_init=32, random_state=0).fit(SEEN, function(SEEN))
    assert model.score(NEW, function(NEW)) > least
    if name == "labels":
        np.testing.assert_array_equal(model.predict(NEW), model.predict_proba(NEW) > 0.5)
        np.testing.assert_allclose(model.network_(NEW), model.decision_function(NEW), rtol=1e-9, atol=1e-9)


def test_moons():
    (x, y), (new, truth) = (make_moons(400, noise=0.1, random_state=i) for i in (0, 10))
    model = PLUClassifier(n_init=32, random_state=0).fit(x, y)
    assert model.score(new, truth) > 0.99
    chances = model.predict_proba(new)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert -np.log(chances[np.arange(400), truth]).mean() < 0.05


def test_three_classes():
    x, y = load_iris(return_X_y=True)
    assert PLUClassifier((8,), n_init=32, random_state=0).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) > 0.92
