"""Fitted models of scikit-learn and models of Keras as networks: objects in memory, not files.

Neither package is imported: layers are recognised by the names of their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plunit import learned
from plunit.numpy import NAMESPACE
from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import build
from plunit.pieces.networks import LayerLike, Network

_HIDDEN = {"relu": activation.relu, "identity": activation.identity}

_LINEAR = """
    ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV LassoLars LassoLarsCV
    LassoLarsIC LinearRegression LinearSVC LinearSVR LogisticRegression LogisticRegressionCV MultiTaskElasticNet
    MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV
    Perceptron QuantileRegressor Ridge RidgeCV RidgeClassifier RidgeClassifierCV SGDClassifier SGDRegressor
    TheilSenRegressor
"""
"""Models whose prediction or decision function is coef_ x + intercept_, without a function of that."""


def from_sklearn(model: Any) -> Network:
    """Return a fitted model of scikit-learn as a network: an MLP, a linear model, or a Pipeline that ends in one.

    The activation of an MLP must be relu or identity. Steps before the model may be StandardScaler, MinMaxScaler,
    MaxAbsScaler, RobustScaler and PCA, and pipelines of these. Each becomes affine layers in float64, where quotients
    such as 1 / scale_ are rounded. A regressor must end in an affine layer; with loss="poisson" it ends in exp, which
    is not piecewise linear. The network of a classifier returns scores: the logits of an MLP (before the logistic
    function or softmax), or the decision function of a linear model. The class is given by the largest output, or by
    the sign of a single output.
    """
    *steps, last = _steps(model)
    layers: list[LayerLike] = []
    for step in steps:
        kind = _kind(step, "sklearn")
        if kind not in _SCALERS:
            raise ValueError(
                f"the step {kind} before the model is not affine or not supported; supported: {', '.join(_SCALERS)}"
            )
        layers += _SCALERS[kind](step)
    if _kind(last, "sklearn") in _LINEAR.split() and hasattr(last, "coef_"):
        return build([*layers, _linear_model(last)])
    return build([*layers, *_perceptron(last)])


def _steps(model: Any) -> list[Any]:
    """Return the steps of a Pipeline, including those of Pipelines inside it; or the model itself."""
    if _kind(model, "sklearn") != "Pipeline":
        return [model]
    parts = [part for _, part in model.steps if part is not None and not isinstance(part, str)]
    if not parts:
        raise ValueError("this Pipeline has no step that computes anything; the last step must be a fitted model")
    return [step for part in parts for step in _steps(part)]


def _perceptron(model: Any) -> list[LayerLike]:
    kind = type(model).__name__
    if not hasattr(model, "coefs_") or not hasattr(model, "intercepts_"):
        raise ValueError(
            "this needs a fitted MLPRegressor, MLPClassifier or linear model, or a Pipeline that ends in one, got "
            f"{kind} without coefs_ or coef_"
        )
    if model.activation not in _HIDDEN:
        raise ValueError(f"{kind} has activation={model.activation!r}; only relu and identity are piecewise-linear")
    # the network of a classifier returns logits, so the function of them is left out
    last = getattr(model, "out_activation_", "identity")
    if last != "identity" and not hasattr(model, "classes_"):
        raise ValueError(f"{kind} ends in {last}, which is not piecewise-linear; train with loss='squared_error'")
    layers: list[LayerLike] = []
    for weight, bias in zip(model.coefs_, model.intercepts_, strict=True):
        layers += [(np.asarray(weight).T, np.asarray(bias)), _HIDDEN[model.activation]()]
    return layers[:-1]


def _linear_model(model: Any) -> LayerLike:
    sparse = hasattr(model.coef_, "toarray")
    weight = np.atleast_2d(np.asarray(model.coef_.toarray() if sparse else model.coef_, dtype=np.float64))
    return weight, np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).reshape(-1), (len(weight),))


def _attribute(step: Any, name: str) -> Floats:
    """Return an attribute of a fitted step; ValueError if the step is not fitted."""
    if not hasattr(step, name):
        raise ValueError(f"the step {type(step).__name__} has no {name}; fit the Pipeline first")
    return np.asarray(getattr(step, name), dtype=np.float64)


def _center_and_scale(center: str, centered: str, scaled: str) -> Callable[[Any], list[LayerLike]]:
    """Return a function that reads (x - center) / scale, given the names of the center and of the two options."""

    def center_and_scale(step: Any) -> list[LayerLike]:
        units = int(_attribute(step, "n_features_in_"))
        shift = _attribute(step, center) if getattr(step, centered) else np.zeros(units)
        factor = 1 / _attribute(step, "scale_") if getattr(step, scaled) else np.ones(units)
        return _scale(factor, -factor * shift)

    return center_and_scale


def _clip(step: Any, low: float, high: float) -> list[LayerLike]:
    # MaxAbsScaler of older versions of scikit-learn has no such option
    return [activation.hardtanh(low, high)] if getattr(step, "clip", False) else []


def _min_max(step: Any) -> list[LayerLike]:
    return [
        *_scale(_attribute(step, "scale_"), _attribute(step, "min_")),
        *_clip(step, *map(float, step.feature_range)),
    ]


def _max_abs(step: Any) -> list[LayerLike]:
    factor = 1 / _attribute(step, "scale_")
    return [*_scale(factor, np.zeros(len(factor))), *_clip(step, -1.0, 1.0)]


def _pca(step: Any) -> list[LayerLike]:
    """components_ (x - mean_), divided by the standard deviations if whitened."""
    weight, mean = _attribute(step, "components_"), _attribute(step, "mean_")
    centered: LayerLike = (np.eye(len(mean)), -mean)
    if not step.whiten:
        return [centered, (weight, np.zeros(len(weight)))]
    # scikit-learn keeps the variances of rank-deficient data away from 0 in this way
    spread = np.maximum(np.sqrt(_attribute(step, "explained_variance_")), np.finfo(np.float64).eps)
    return [centered, (weight, np.zeros(len(weight))), *_scale(1 / spread, np.zeros(len(weight)))]


_SCALERS: dict[str, Callable[[Any], list[LayerLike]]] = {
    "StandardScaler": _center_and_scale("mean_", "with_mean", "with_std"),
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _center_and_scale("center_", "with_centering", "with_scaling"),
    "PCA": _pca,
}


def from_keras(model: Any) -> Network:
    """Return a model of Keras 3 as a network: a Sequential, or a functional model that is a chain.

    Inputs are [batch, features]. Supported layers: Dense, PLU, ReLU, LeakyReLU, PReLU, Activation, BatchNormalization
    (with its moving averages), Normalization, Rescaling, Flatten, Dropout, Identity, and models of these; ValueError
    names any other layer. Weights keep their values; the factors of the two normalisations are rounded to float64.
    Consecutive affine layers stay separate unless float64 holds their product exactly. Keras evaluates in float32.
    """
    shape = getattr(model, "input_shape", None)
    if _kind(model) not in ("Sequential", "Functional") or not isinstance(shape, tuple):
        raise ValueError(f"this needs a built Sequential or functional model of Keras, got {_kind(model)}")
    if len(shape) != 2 or not isinstance(shape[1], int):
        raise ValueError(f"the input of a network must be [batch, features], but this model's has shape {shape}")
    return build(list(_chain(model, shape[1])))


def _chain(model: Any, units: int) -> Iterator[LayerLike]:
    """Yield the layers of a model with this number of input features."""
    if _kind(model) == "Functional":
        _check_chain(model)
    for layer in model.layers:
        kind = _kind(layer)
        try:
            if kind in ("Sequential", "Functional"):
                found = list(_chain(layer, units))
            elif kind in _LAYERS:
                found = _LAYERS[kind](layer, units)
            else:
                raise ValueError(f"not piecewise-linear or not supported; supported: {', '.join(_LAYERS)}")
        except ValueError as error:
            raise ValueError(f"layer {layer.name!r}, {kind}: {error}") from None
        yield from found
        units = next((len(part[1]) for part in reversed(found) if not isinstance(part, Activation)), units)


def _check_chain(model: Any) -> None:
    """Raise ValueError unless each layer is called exactly once, on the output of the layer before it."""
    config, before = model.get_config(), ""
    if other := {part["name"] for part in config["layers"]} - {layer.name for layer in model.layers}:
        raise ValueError(
            f"functions between layers are not supported, got {', '.join(sorted(other))}; make them layers"
        )
    for part in config["layers"]:
        calls = part["inbound_nodes"]
        if before or calls:
            args: list[Any] = calls[0]["args"] if len(calls) == 1 else []
            source = args[0]["config"]["keras_history"] if len(args) == 1 and isinstance(args[0], dict) else ()
            if list(source) != [before, 0, 0] or any(calls[0]["kwargs"].values()):
                raise ValueError(
                    f"layer {part['name']!r} must be called exactly once, on the output of the layer before it"
                )
        before = part["name"]
    if config["output_layers"] not in ([before, 0, 0], [[before, 0, 0]]):
        raise ValueError(f"the output of the model must be that of its last layer, {before!r}")


def _kind(thing: Any, package: str = "keras") -> str:
    """Return the name of a function or of an object's class, with its module unless that belongs to the package."""
    owner = thing if hasattr(thing, "__name__") else type(thing)
    is_own = str(owner.__module__).partition(".")[0] == package
    return owner.__name__ if is_own else f"{owner.__module__}.{owner.__name__}"


def _weights(layer: Any, count: int) -> list[Floats]:
    """Return the weights of a layer in float64; ValueError if there are not `count` arrays."""
    if getattr(layer, "quantization_mode", None):
        raise ValueError(f"the layer is quantised ({layer.quantization_mode}); use the model before quantisation")
    found = [np.asarray(weight, dtype=np.float64) for weight in layer.get_weights()]
    if len(found) != count:
        raise ValueError(f"the layer must have {count} arrays of weights, got {len(found)}")
    return found


def _per_unit(value: Any, units: int) -> Floats:
    """Return one number for each feature."""
    array = np.asarray(value, dtype=np.float64)
    if array.size not in (1, units):
        raise ValueError(f"the layer has {array.size} numbers for {units} features")
    return np.broadcast_to(array.reshape(-1), (units,))


def _scale(factor: Floats, shift: Floats) -> list[LayerLike]:
    return [(np.diag(factor), shift)]


def _dense(layer: Any, units: int) -> list[LayerLike]:
    weight, *bias = _weights(layer, 1 + bool(layer.use_bias))
    return [(weight.T, bias[0] if bias else np.zeros(weight.shape[1])), *_activation(layer, weight.shape[1])]


def _activation(layer: Any, units: int) -> list[LayerLike]:
    """Return the activation of a layer: a named function, or a layer that acts on each feature separately."""
    kind = _kind(layer.activation)
    if kind in _FUNCTIONS:
        return _FUNCTIONS[kind]()
    if kind in _POINTWISE:
        return _POINTWISE[kind](layer.activation, units)
    raise ValueError(f"activation {kind!r} is not supported; supported: {', '.join((*_FUNCTIONS, *_POINTWISE))}")


def _relu(layer: Any, units: int) -> list[LayerLike]:
    """max_value where x >= max_value, x where x >= 0, else negative_slope x."""
    config = layer.get_config()
    top, slope = config["max_value"], float(config["negative_slope"] or 0.0)
    if config["threshold"]:
        raise ValueError(f"threshold {config['threshold']} makes the function jump; only continuous ones are supported")
    knots = [0.0, np.inf if top is None else float(top)]
    return [activation.piecewise(knots, [slope, 1.0, 1.0 if top is None else 0.0])]


def _plu(layer: Any, units: int) -> list[LayerLike]:
    config = layer.get_config()
    names = [name for name in ("alpha", "c") if config["learnable"] in (True, name)]
    values: dict[str, Any] = {name: config[name] for name in ("alpha", "c")}
    for name, raw in zip(names, _weights(layer, len(names)), strict=True):
        values[name] = _per_unit(learned.value_of(NAMESPACE, name, raw), units)
    return [activation.plu(**values)]


def _batch_norm(layer: Any, units: int) -> list[LayerLike]:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta."""
    _check_axis(layer.axis)
    *trained, mean, variance = _weights(layer, 2 + bool(layer.scale) + bool(layer.center))
    gamma = trained.pop(0) if layer.scale else np.ones(units)
    beta = trained.pop(0) if layer.center else np.zeros(units)
    factor = gamma / np.sqrt(variance + layer.epsilon)
    return _scale(factor, beta - factor * mean)


def _normalization(layer: Any, units: int) -> list[LayerLike]:
    """(x - mean) / max(sqrt(variance), 1e-7), or the inverse."""
    config = layer.get_config()
    mean, variance = config["mean"], config["variance"]
    if mean is None:
        _check_axis(config["axis"])
        mean, variance, _ = _weights(layer, 3)
    mean, spread = _per_unit(mean, units), np.maximum(np.sqrt(_per_unit(variance, units)), 1e-7)
    return _scale(spread, mean) if config["invert"] else _scale(1 / spread, -mean / spread)


def _check_axis(axis: Any) -> None:
    if axis not in (-1, 1, [-1], [1], (-1,), (1,)):
        raise ValueError(f"axis must be 1, where the features are, got {axis}")


_FUNCTIONS: dict[str, Callable[[], list[LayerLike]]] = {
    "linear": lambda: [],
    "relu": lambda: [activation.relu()],
    "relu6": lambda: [activation.relu6()],
    "leaky_relu": lambda: [activation.leaky_relu(0.2)],
    "hard_sigmoid": lambda: [activation.hardsigmoid()],
    "hard_tanh": lambda: [activation.hardtanh()],
    "plunit.keras.plu": lambda: [activation.plu()],
}
_POINTWISE: dict[str, Callable[[Any, int], list[LayerLike]]] = {
    "ReLU": _relu,
    "LeakyReLU": lambda layer, units: [activation.leaky_relu(float(layer.negative_slope))],
    "plunit.keras.PLU": _plu,
}
_LAYERS: dict[str, Callable[[Any, int], list[LayerLike]]] = {
    "Dense": _dense,
    "Activation": _activation,
    **_POINTWISE,
    "PReLU": lambda layer, units: [activation.leaky_relu(_per_unit(_weights(layer, 1)[0], units))],
    "BatchNormalization": _batch_norm,
    "Normalization": _normalization,
    "Rescaling": lambda layer, units: _scale(_per_unit(layer.scale, units), _per_unit(layer.offset, units)),
    **dict.fromkeys(("Dropout", "Flatten", "Identity", "InputLayer"), lambda layer, units: []),
}
