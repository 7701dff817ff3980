"""phi'(x) and phi''(x) on intervals, for every smooth function that an expression may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plunit.expressions.intervals import Interval, constant, loosely
from plunit.expressions.rules import IMAGES

Derivative = Callable[[Interval, Interval], Interval]
"""A function of x and y = phi(x)."""

_root, _sine, _cosine, _sinh, _cosh = (IMAGES[name] for name in ("sqrt", "sin", "cos", "sinh", "cosh"))


def _number(value: float, like: Interval) -> Interval:
    """Return a rounded number with its rounding."""
    ends = constant(value, like).low
    return loosely(ends, ends)


def _one(like: Interval) -> Interval:
    return constant(1.0, like)


def _times(factor: float, x: Interval) -> Interval:
    return constant(factor, x) * x


def _cube(x: Interval) -> Interval:
    return x * x.square()


def _logarithm(base: float) -> tuple[Derivative, Derivative]:
    factor = float(np.log(base))
    return (
        lambda x, y: x.reciprocal() / _number(factor, x),
        lambda x, y: -(x.square().reciprocal() / _number(factor, x)),
    )


def _inverse_root(inner: Callable[[Interval], Interval], sign: float = 1.0, bend: float = 1.0) -> Any:
    """Sign / sqrt(r(x)) and sign * bend * x / r(x)^(3/2)."""
    return (
        lambda x, y: constant(sign, x) / _root(inner(x)),
        lambda x, y: _times(sign * bend, x) / (inner(x) * _root(inner(x))),
    )


def _below(x: Interval) -> Interval:
    return _one(x) - x.square()


def _beyond(x: Interval) -> Interval:
    return _one(x) + x.square()


DERIVATIVES: dict[str, tuple[Derivative, Derivative]] = {
    "arccos": _inverse_root(_below, -1.0),
    "arccosh": _inverse_root(lambda x: x.square() - _one(x), bend=-1.0),
    "arcsin": _inverse_root(_below),
    "arcsinh": _inverse_root(_beyond, bend=-1.0),
    "arctan": (lambda x, y: _beyond(x).reciprocal(), lambda x, y: _times(-2.0, x) / _beyond(x).square()),
    "arctanh": (lambda x, y: _below(x).reciprocal(), lambda x, y: _times(2.0, x) / _below(x).square()),
    "cbrt": (
        lambda x, y: _one(x) / _times(3.0, y.square()),
        lambda x, y: constant(-2.0, x) / (_times(9.0, _cube(y)) * y.square()),
    ),
    "cos": (lambda x, y: -_sine(x), lambda x, y: -y),
    "cosh": (lambda x, y: _sinh(x), lambda x, y: y),
    "exp": (lambda x, y: y, lambda x, y: y),
    "exp2": (
        lambda x, y: y * _number(float(np.log(2.0)), x),
        lambda x, y: y * _number(float(np.log(2.0)), x).square(),
    ),
    "expm1": (lambda x, y: y + _one(x), lambda x, y: y + _one(x)),
    "log": (lambda x, y: x.reciprocal(), lambda x, y: -x.square().reciprocal()),
    "log10": _logarithm(10.0),
    "log1p": (lambda x, y: (_one(x) + x).reciprocal(), lambda x, y: -(_one(x) + x).square().reciprocal()),
    "log2": _logarithm(2.0),
    "sin": (lambda x, y: _cosine(x), lambda x, y: -y),
    "sinh": (lambda x, y: _cosh(x), lambda x, y: y),
    "sqrt": (lambda x, y: _one(x) / (y + y), lambda x, y: constant(-0.25, x) / _cube(y)),
    "square": (lambda x, y: x + x, lambda x, y: constant(2.0, x)),
    "tan": (lambda x, y: _beyond(y), lambda x, y: _times(2.0, y) * _beyond(y)),
    "tanh": (lambda x, y: _below(y).cut(0.0, 1.0), lambda x, y: _times(-2.0, y) * _below(y).cut(0.0, 1.0)),
}
