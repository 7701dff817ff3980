"""scikit-learn's perceptrons, in and out, against their own predictions."""

import warnings

import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import from_sklearn, to_sklearn

pytest.importorskip("sklearn")
from sklearn.neural_network import MLPClassifier, MLPRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
TARGETS = {
    "one output": X @ [1.0, -2.0, 0.5],
    "two outputs": np.abs(X[:, :2]),
    "two classes": X[:, 0] > 0.1,
    "three classes": np.digitize(X[:, 1], [-0.5, 0.5]),
}


def fitted(kind, name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps do not converge
        return kind(hidden_layer_sizes=(7, 5), max_iter=20, random_state=0, **options).fit(X, TARGETS[name])


@pytest.mark.parametrize("activation", ["relu", "identity"])
@pytest.mark.parametrize("name", ["one output", "two outputs"])
def test_a_regressor(name, activation):
    model = fitted(MLPRegressor, name, activation=activation)
    np.testing.assert_allclose(from_sklearn(model)(X), model.predict(X).reshape(80, -1), rtol=1e-12, atol=1e-12)


def test_the_logits_of_two_classes():
    model = fitted(MLPClassifier, "two classes")
    logits = from_sklearn(model)(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits[:, 0])), model.predict_proba(X)[:, 1], rtol=1e-10)


def test_the_logits_of_three_classes():
    model = fitted(MLPClassifier, "three classes")
    powers = np.exp(from_sklearn(model)(X))
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), model.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_curved_activations_are_refused(activation):
    with pytest.raises(ValueError, match=f"activation='{activation}', which is not piecewise-linear; train with relu"):
        from_sklearn(fitted(MLPRegressor, "one output", activation=activation))


def test_a_curved_output_is_refused():
    model = fitted(MLPRegressor, "one output")
    model.out_activation_ = "exp"
    with pytest.raises(ValueError, match="out_activation_='exp'"):
        from_sklearn(model)


def test_a_poisson_regressor_is_refused():
    if "loss" not in MLPRegressor().get_params():
        pytest.skip("this scikit-learn has one loss for regressors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPRegressor(hidden_layer_sizes=(4,), loss="poisson", max_iter=5, random_state=0).fit(
            X, np.abs(X[:, 0])
        )
    assert (model.predict(X) > 0).all()
    with pytest.raises(ValueError, match="not piecewise-linear"):
        from_sklearn(model)


@pytest.mark.parametrize("model", [MLPRegressor(), "text", None])
def test_what_is_not_fitted_is_refused(model):
    with pytest.raises(ValueError, match="needs a fitted MLPRegressor or MLPClassifier, got"):
        from_sklearn(model)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_a_network_becomes_a_regressor(seed, outputs):
    net = random_network(seed, 3, 6, 3, outputs)
    model = to_sklearn(net)
    assert model.activation == "relu"
    assert model.hidden_layer_sizes == tuple(weight.shape[1] for weight in model.coefs_[:-1])
    np.testing.assert_allclose(model.predict(X).reshape(80, -1), net(X), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(from_sklearn(model)(X), net(X), rtol=1e-11, atol=1e-11)
