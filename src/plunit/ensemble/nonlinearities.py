"""The activations and the losses of ensembles, by name. `Nonlinearity` has the check-list for a new one.

>>> ACTIVATIONS["relu"].value(np.array([-1.0, 2.0]), 0.1, 1.0)
array([0., 2.])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.functional import formula, slope_formula
from plunit.numpy import sigmoid
from plunit.pieces import Activation as Exact
from plunit.pieces import activation as exact

__all__ = ["Nonlinearity"]

Function = Callable[[Array, Any, Any], Array]


@dataclass(frozen=True)
class Nonlinearity:
    """An activation a(z, alpha, c) of arrays; alpha and c broadcast with z, and only PLU uses them.

    Check-list for a new one; an activation has no parameters besides alpha and c:

    - An entry in `ACTIVATIONS`. `value` and `slope` return arrays of the dtype of z.
    - A struct and a line in the table of programs/csrc/activations.h, in the same order; kinks belong to the same side.
    - Its module of PyTorch in tests/support/lone_members.py, and its kinks in tests/ensemble/test_nonlinearities.py.
      The tests compare values, slopes, exact form, gradients of training and the modules of `to_torch` with it.
    - Its name in docs/ensembles.md. To give it a colour: a line in `COLOURS` of plunit/lab/pictures.py, and two in
      plunit/play/page/style.css, for light and dark.

    Attributes:
        title: the name as printed.
        value: the function a.
        slope: da/dz, at kinks as in PyTorch; PLU's kinks belong to the inner piece.
        exact: returns the same function of alpha and c for `plunit.pieces`; None if it is not piecewise linear.
        module: the name of its class in `torch.nn`, for PLU in `plunit.torch`; None if it has no class.
        learned: whether alpha and c are trained.
    """

    title: str
    value: Function
    slope: Function
    exact: Callable[[Any, Any], Exact] | None = None
    module: str | None = None
    learned: bool = False


def _plu(z: Array, alpha: Any, c: Any) -> Array:
    return np.asarray(formula(np, z, alpha, c))


def _plu_slope(z: Array, alpha: Any, c: Any) -> Array:
    return np.asarray(slope_formula(np, z, alpha, c))


_exact_erf = np.frompyfunc(math.erf, 1, 1)


def _phi(z: Array) -> Array:
    """Return the normal distribution function; float32 by Abramowitz and Stegun 7.1.26 (error 1.5e-7), as in C++."""
    if z.dtype != np.float32:
        return 0.5 + 0.5 * np.asarray(_exact_erf(z / math.sqrt(2)), dtype=z.dtype)
    t = 1 / (1 + np.float32(0.3275911 * math.sqrt(0.5)) * np.abs(z))
    p = np.zeros_like(z)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        p = p * t + np.float32(factor)
    tail = p * t * np.exp(-z * z / 2) / 2
    return np.asarray(np.where(z < 0, tail, 1 - tail))


def _gelu_slope(z: Array, *_: Any) -> Array:
    return np.asarray(_phi(z) + z * np.exp(-z * z / 2) * z.dtype.type(1 / math.sqrt(2 * math.pi)))


def _silu_slope(z: Array, *_: Any) -> Array:
    s = sigmoid(z)
    return np.asarray(s * (1 + z * (1 - s)))


def _step(z: Array, below: float) -> Array:
    return np.asarray(np.where(z > 0, z.dtype.type(1), z.dtype.type(below)))


ACTIVATIONS: dict[str, Nonlinearity] = {
    "tanh": Nonlinearity("tanh", lambda z, *_: np.tanh(z), lambda z, *_: 1 - np.tanh(z) ** 2, module="Tanh"),
    "relu": Nonlinearity(
        "ReLU", lambda z, *_: np.maximum(z, 0), lambda z, *_: _step(z, 0), lambda *_: exact.relu(), "ReLU"
    ),
    "plu": Nonlinearity("PLU", _plu, _plu_slope, exact.plu, "PLU"),
    "plu_learned": Nonlinearity("learned PLU", _plu, _plu_slope, exact.plu, "PLU", learned=True),
    "leaky_relu": Nonlinearity(
        "leaky ReLU",
        lambda z, *_: z * _step(z, 0.01),
        lambda z, *_: _step(z, 0.01),
        lambda *_: exact.leaky_relu(),
        "LeakyReLU",
    ),
    "gelu": Nonlinearity("GELU", lambda z, *_: z * _phi(z), _gelu_slope, module="GELU"),
    "silu": Nonlinearity("SiLU", lambda z, *_: z * sigmoid(z), _silu_slope, module="SiLU"),
    "elu": Nonlinearity(
        "ELU",
        lambda z, *_: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
        lambda z, *_: np.exp(np.minimum(z, 0)),
        module="ELU",
    ),
    "identity": Nonlinearity(
        "identity", lambda z, *_: z, lambda z, *_: np.ones_like(z), lambda *_: exact.identity(), "Identity"
    ),
    "hardtanh": Nonlinearity(
        "hardtanh",
        lambda z, *_: np.clip(z, -1, 1),
        lambda z, *_: (np.abs(z) < 1).astype(z.dtype),
        lambda *_: exact.hardtanh(),
        "Hardtanh",
    ),
}
"""The activations by name."""


def title_of(name: str) -> str:
    """Return an activation's name as printed; other names are returned unchanged.

    >>> title_of("leaky_relu"), title_of("annealed")
    ('leaky ReLU', 'annealed')
    """
    return ACTIVATIONS[name].title if name in ACTIVATIONS else name


def module_of(name: str) -> str:
    """Return the name of an activation's PyTorch class; raise ValueError if it has none."""
    if (module := ACTIVATIONS[name].module) is None:
        has = ", ".join(other for other, one in ACTIVATIONS.items() if one.module)
        raise ValueError(f"{name} has no PyTorch module; choose one of {has}")
    return module


Loss = Callable[[Array, Array], tuple[Array, Array]]
"""Returns the loss of each point [S, points] and its gradient in z, for outputs z [S, units, points] and targets y
[S or 1, units, points]. A new loss is an entry in `LOSSES` and one in programs/csrc/losses.h."""


def _square(z: Array, y: Array) -> tuple[Array, Array]:
    """Return the mean over units of (z - y)^2."""
    r = z - y
    return (r * r).mean(1), r * (2 / z.shape[1])


def _logistic(z: Array, y: Array) -> tuple[Array, Array]:
    """Return the mean over units of log(1 + exp(z)) - y z, for y in [0, 1]."""
    loss = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
    return loss.mean(1), (sigmoid(z) - y) / z.shape[1]


def _softmax(z: Array, y: Array) -> tuple[Array, Array]:
    """Return log(sum_u exp(z_u)) - sum_u y_u z_u, for y >= 0 with sum 1."""
    z = z - z.max(1, keepdims=True)
    e = np.exp(z)
    total = e.sum(1, keepdims=True)
    return np.log(total[:, 0]) - (y * z).sum(1), e / total - y


PROBABILITIES = {"logistic", "softmax"}
"""The losses with targets from 0 to 1."""

LOSSES: dict[str, Loss] = {"square": _square, "logistic": _logistic, "softmax": _softmax}
"""Name to function."""
