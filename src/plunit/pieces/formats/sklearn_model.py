"""scikit-learn's multilayer perceptrons, in and out: h = relu(h W + b) for each of coefs_ and intercepts_."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces import activation
from plunit.pieces.formats.importer import Layer, build
from plunit.pieces.networks import Network
from plunit.pieces.rewriting import to_relu

_HIDDEN = {"relu": activation.relu, "identity": activation.identity}


def from_sklearn(model: Any) -> Network:
    """Return a fitted MLPRegressor or MLPClassifier as a network; its activation must be relu or identity.

    A regressor must end in an affine layer; with loss="poisson" it ends in exp, which has no pieces.
    The network of a classifier gives logits, the numbers before the logistic function or softmax. The class is that of
    the largest output, or the sign of a single output.
    """
    kind = type(model).__name__
    if not hasattr(model, "coefs_") or not hasattr(model, "intercepts_"):
        raise ValueError(
            f"this needs a fitted MLPRegressor or MLPClassifier, got {kind} without coefs_; call fit first"
        )
    if model.activation not in _HIDDEN:
        raise ValueError(
            f"{kind} has activation={model.activation!r}, which is not piecewise-linear; train with relu or identity"
        )
    # a classifier's network gives logits, so what follows them is left out
    last = getattr(model, "out_activation_", "identity")
    if last != "identity" and not hasattr(model, "classes_"):
        raise ValueError(
            f"{kind} ends in out_activation_={last!r}, which is not piecewise-linear; train with loss='squared_error'"
        )
    layers: list[Layer] = []
    for weight, bias in zip(model.coefs_, model.intercepts_, strict=True):
        layers += [(np.asarray(weight).T, np.asarray(bias)), _HIDDEN[model.activation]()]
    return build(layers[:-1])


def to_sklearn(net: Network) -> Any:
    """Return a network as a fitted MLPRegressor of plain ReLU (`to_relu`); needs scikit-learn.

    Tools that convert such models, such as emlearn, take it.
    """
    from sklearn.neural_network import MLPRegressor

    plain = to_relu(net, only_relu=True)
    model = MLPRegressor(hidden_layer_sizes=plain.widths[1:-1], activation="relu")
    model.coefs_ = [np.ascontiguousarray(layer.weight.T) for layer in plain.layers]
    model.intercepts_ = [layer.bias.copy() for layer in plain.layers]
    model.n_layers_, model.n_outputs_, model.n_features_in_ = len(plain.widths), plain.outputs, plain.inputs
    model.out_activation_ = "identity"
    # `fit` sets these, too; nothing was iterated here
    model.n_iter_, model.t_, model.loss_, model.loss_curve_ = 0, 0, np.nan, []
    return model
