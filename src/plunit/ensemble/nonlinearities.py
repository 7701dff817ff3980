"""The activations an ensemble can have, by name. `Nonlinearity` has the check-list for a new one.

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
    """a(z, alpha, c) for arrays; alpha and c broadcast with z and matter to PLU only.

    Check-list for a new one; an activation has no parameters of its own:

    - An entry in `ACTIVATIONS`. `value` and `slope` return arrays of the dtype of z.
    - A struct and a line in the table of programs/csrc/activations.h, in the same order; kinks belong to the same side.
      If it is piecewise linear, also in programs/csrc/outputs.h.
    - Its module of PyTorch in tests/support/lone_members.py, and its kinks in tests/ensemble/test_nonlinearities.py.
      The tests compare values, slopes, exact form, gradients of training and the modules of `to_torch` with it.
    - Its name in docs/ensembles.md. For a colour of its own: a line in `COLOURS` of plunit/lab/style.py, and two in
      plunit/play/page/style.css, for light and dark.

    Attributes:
        title: its name as printed.
        value: a.
        slope: da/dz, at kinks as PyTorch has it; PLU's kinks belong to the inner piece.
        exact: the same function for `plunit.pieces`, of alpha and c; None if it is not piecewise linear.
        module: the name of its class in `torch.nn`, of PLU in `plunit.torch`; None if there is no such class.
        learned: whether alpha and c are trained.
    """

    title: str
    value: Function
    slope: Function
    exact: Callable[[Any, Any], Exact] | None = None
    module: str | None = None
    learned: bool = False


def _plain(
    title: str,
    value: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    pieces: Exact | None = None,
    *,
    module: str | None = None,
) -> Nonlinearity:
    return Nonlinearity(
        title,
        lambda z, alpha, c: value(z),
        lambda z, alpha, c: slope(z),
        None if pieces is None else lambda alpha, c: pieces,
        module,
    )


def _plu(title: str, *, learned: bool) -> Nonlinearity:
    return Nonlinearity(
        title,
        lambda z, alpha, c: np.asarray(formula(np, z, alpha, c)),
        lambda z, alpha, c: np.asarray(slope_formula(np, z, alpha, c)),
        exact.plu,
        "PLU",
        learned,
    )


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


def _gelu_slope(z: Array) -> Array:
    return np.asarray(_phi(z) + z * np.exp(-z * z / 2) * z.dtype.type(1 / math.sqrt(2 * math.pi)))


def _silu_slope(z: Array) -> Array:
    s = sigmoid(z)
    return np.asarray(s * (1 + z * (1 - s)))


def _step(z: Array, below: float) -> Array:
    return np.asarray(np.where(z > 0, z.dtype.type(1), z.dtype.type(below)))


ACTIVATIONS: dict[str, Nonlinearity] = {
    "tanh": _plain("tanh", np.tanh, lambda z: 1 - np.tanh(z) ** 2, module="Tanh"),
    "relu": _plain("ReLU", lambda z: np.maximum(z, 0), lambda z: _step(z, 0), exact.relu(), module="ReLU"),
    "plu": _plu("PLU", learned=False),
    "plu_learned": _plu("learned PLU", learned=True),
    "leaky_relu": _plain(
        "leaky ReLU",
        lambda z: z * _step(z, 0.01),
        lambda z: _step(z, 0.01),
        exact.leaky_relu(),
        module="LeakyReLU",
    ),
    "gelu": _plain("GELU", lambda z: z * _phi(z), _gelu_slope, module="GELU"),
    "silu": _plain("SiLU", lambda z: z * sigmoid(z), _silu_slope, module="SiLU"),
    "elu": _plain(
        "ELU",
        lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
        lambda z: np.exp(np.minimum(z, 0)),
        module="ELU",
    ),
    "identity": _plain("identity", lambda z: z, np.ones_like, exact.identity(), module="Identity"),
    "hardtanh": _plain(
        "hardtanh",
        lambda z: np.clip(z, -1, 1),
        lambda z: (np.abs(z) < 1).astype(z.dtype),
        exact.hardtanh(),
        module="Hardtanh",
    ),
}
"""Name to function."""


def title_of(name: str) -> str:
    """Return an activation's name as printed; another name is returned as it is.

    >>> title_of("leaky_relu"), title_of("annealed")
    ('leaky ReLU', 'annealed')
    """
    return ACTIVATIONS[name].title if name in ACTIVATIONS else name


def module_of(name: str) -> str:
    """Return the name of an activation's class in PyTorch; ValueError if there is no such class."""
    if (module := ACTIVATIONS[name].module) is None:
        has = ", ".join(other for other, one in ACTIVATIONS.items() if one.module)
        raise ValueError(f"{name} has no module in PyTorch; activations that have one are {has}")
    return module
