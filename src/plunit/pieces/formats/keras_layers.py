"""The layers of Keras that are affine or piecewise-linear: one entry of a table for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit import learned
from plunit.numpy import NAMESPACE
from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Layer

_EPSILON = 1e-7  # keras.backend.epsilon(), the least divisor of Normalization


@dataclass(frozen=True)
class Saved:
    """One layer in a file: its configuration, its variables in order, and the number of features that come in."""

    config: dict[str, Any]
    variables: list[Floats]
    units: int

    def take(self, count: int) -> list[Floats]:
        """Return the variables; ValueError if they are not this many."""
        if len(self.variables) != count:
            raise ValueError(f"it needs {count} variables, but the file has {len(self.variables)}")
        return self.variables

    def per_unit(self, value: Any) -> Floats:
        """Return a number or list of numbers as one number for each feature."""
        array = np.asarray(value, dtype=np.float64)
        if array.size == 1:
            return np.full(self.units, float(array.reshape(())))
        if array.size != self.units:
            raise ValueError(f"it has {array.size} numbers for {self.units} features")
        return array.reshape(self.units)


def _dense(layer: Saved) -> list[Layer]:
    with_bias = bool(layer.config.get("use_bias", True))
    weight, *rest = layer.take(1 + with_bias)
    bias = rest[0] if with_bias else np.zeros(weight.shape[-1])
    if weight.shape != (layer.units, layer.config.get("units")):
        raise ValueError(f"its weight has shape {weight.shape}, but {layer.units} features come in")
    return [(weight.T, bias), *_activation(layer.config.get("activation"))]


def _activation(given: Any) -> list[Layer]:
    """Return an activation by its name, a function of plunit, or a layer without variables."""
    if given in (None, "linear"):
        return []
    if isinstance(given, str) and given in _FUNCTIONS:
        return [_FUNCTIONS[given]()]
    if isinstance(given, dict):
        if given.get("config") == "plunit>plu":
            return [activation.plu()]
        if kind_of(given) in _POINTWISE:
            return _POINTWISE[kind_of(given)](Saved(dict(given["config"]), [], 1))
    raise ValueError(
        f"its activation {_name(given)!r} is not known; known are linear, {', '.join(_FUNCTIONS)} and plunit's PLU"
    )


def _name(given: Any) -> Any:
    return given.get("registered_name") or given.get("class_name") if isinstance(given, dict) else given


def _relu(layer: Saved) -> list[Layer]:
    """max_value where x >= max_value, x where x >= threshold, else negative_slope (x - threshold)."""
    top, slope = layer.config.get("max_value"), float(layer.config.get("negative_slope") or 0.0)
    if layer.config.get("threshold"):
        raise ValueError(
            f"its threshold {layer.config['threshold']} makes it jump; only continuous functions have pieces"
        )
    return [
        activation.piecewise(
            [0.0, np.inf if top is None else float(top)], [slope, 1.0, 0.0 if top is not None else 1.0]
        )
    ]


def _plu(layer: Saved) -> list[Layer]:
    names = [name for name in ("alpha", "c") if layer.config.get("learnable") in (True, name)]
    values: dict[str, Any] = {name: float(layer.config[name]) for name in ("alpha", "c")}
    for name, raw in zip(names, layer.take(len(names)), strict=True):
        value = learned.value_of(NAMESPACE, name, raw)
        values[name] = value if value.size == 1 else layer.per_unit(value)
    return [
        activation.plu(**{name: np.squeeze(value) if np.size(value) == 1 else value for name, value in values.items()})
    ]


def _batch_norm(layer: Saved) -> list[Layer]:
    """(x - mean) / sqrt(var + epsilon) * gamma + beta."""
    _check_axis(layer)
    scale, center = bool(layer.config.get("scale", True)), bool(layer.config.get("center", True))
    *learned_part, mean, var = layer.take(2 + scale + center)
    gamma = learned_part.pop(0) if scale else np.ones(layer.units)
    beta = learned_part.pop(0) if center else np.zeros(layer.units)
    factor = layer.per_unit(gamma / np.sqrt(var + layer.config["epsilon"]))
    return [(np.diag(factor), beta - factor * mean)]


def _normalization(layer: Saved) -> list[Layer]:
    """(x - mean) / max(sqrt(var), 1e-7), or the inverse."""
    mean, var = layer.config.get("mean"), layer.config.get("variance")
    if mean is None:
        mean, var, _ = layer.take(3)
        _check_axis(layer)
    mean, spread = layer.per_unit(mean), np.maximum(np.sqrt(layer.per_unit(var)), _EPSILON)
    if layer.config.get("invert"):
        return [(np.diag(spread), mean)]
    return [(np.diag(1 / spread), -mean / spread)]


def _check_axis(layer: Saved) -> None:
    axis = layer.config.get("axis", -1)
    if axis not in (-1, 1, [-1], [1]):
        raise ValueError(f"its axis is {axis}, but features are on axis 1")


def _rescaling(layer: Saved) -> list[Layer]:
    scale, offset = (layer.per_unit(layer.config[name]) for name in ("scale", "offset"))
    return [(np.diag(scale), offset)]


def _prelu(layer: Saved) -> list[Layer]:
    return [activation.leaky_relu(layer.per_unit(layer.take(1)[0]))]


def _leaky(layer: Saved) -> list[Layer]:
    return [activation.leaky_relu(float(layer.config["negative_slope"]))]


def kind_of(layer: dict[str, Any]) -> str:
    """Return the class of a layer; for one that is not Keras' own, the name it is registered by."""
    name, registered = str(layer.get("class_name")), layer.get("registered_name")
    if registered is None and str(layer.get("module")).split(".")[0] == "keras":
        return name
    return str(registered or f"{layer.get('module')}.{name}")


_FUNCTIONS: dict[str, Callable[[], Activation]] = {
    "relu": activation.relu,
    "relu6": activation.relu6,
    "leaky_relu": lambda: activation.leaky_relu(0.2),
    "hard_sigmoid": activation.hardsigmoid,
    "hard_tanh": activation.hardtanh,
}
_POINTWISE: dict[str, Callable[[Saved], list[Layer]]] = {"ReLU": _relu, "LeakyReLU": _leaky, "plunit>PLU": _plu}
LAYERS: dict[str, Callable[[Saved], list[Layer]]] = {
    "Dense": _dense,
    "Activation": lambda layer: _activation(layer.config.get("activation")),
    **_POINTWISE,
    "PReLU": _prelu,
    "BatchNormalization": _batch_norm,
    "Normalization": _normalization,
    "Rescaling": _rescaling,
    "Flatten": lambda layer: [],
    "Dropout": lambda layer: [],
}
"""What a Sequential can be made of, besides InputLayer and Sequential."""
