"""f(x)' on intervals, for every function that an expression may call: automatic differentiation.

A slope encloses (f(b) - f(a)) / (b - a) for all a < b in the box. So it exists at kinks (`abs`, `maximum`), where it
holds the slopes of both sides. At a jump there is no bound, and the slope is [-inf, inf].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plunit.expressions.intervals import Interval, choose, constant, hull, loosely, whole
from plunit.expressions.rules import IMAGES, Truth, apart, power, turns, whole_number
from plunit.pieces.arrays import Bools

_root = IMAGES["sqrt"]


def _chain(derivative: Callable[[Interval, Interval], Interval]) -> Callable[..., Interval]:
    """Return the rule f(x)' = f'(x) x' from f', which is given x and y = f(x)."""
    return lambda y, x, dx: derivative(x, y) * dx


def _number(value: float, like: Interval) -> Interval:
    """Return a rounded number with its rounding."""
    ends = constant(value, like).low
    return loosely(ends, ends)


def _one(like: Interval) -> Interval:
    return constant(1.0, like)


def _jump(flat: Bools, like: Interval) -> Interval:
    """Return 0 where a function is constant, and no bound elsewhere."""
    return choose(flat, constant(0.0, like), whole(like))


def _absolute(y: Interval, x: Interval, dx: Interval) -> Interval:
    return choose(x.low >= 0, dx, choose(x.high <= 0, -dx, hull(dx, -dx)))


def _maximum(y: Interval, a: Interval, da: Interval, b: Interval, db: Interval) -> Interval:
    return choose(a.low >= b.high, da, choose(b.low >= a.high, db, hull(da, db)))


def _minimum(y: Interval, a: Interval, da: Interval, b: Interval, db: Interval) -> Interval:
    return _maximum(y, b, da, a, db)


def _clip(
    y: Interval, x: Interval, dx: Interval, low: Interval, dlow: Interval, high: Interval, dhigh: Interval
) -> Interval:
    inner = IMAGES["maximum"](x, low)
    return _minimum(y, inner, _maximum(inner, x, dx, low, dlow), high, dhigh)


def _power(y: Interval, a: Interval, da: Interval, b: Interval, db: Interval) -> Interval:
    """(a**b)' = b a**(b - 1) a' + a**b log(a) b'; for a < 0 with another exponent than a whole number, y is partial."""
    fixed = whole_number(b) & (np.abs(b.low) < 2.0**52)
    less = choose(fixed, constant(b.low - 1.0, b), b - _one(b))
    return b * power(a, less) * da + y * IMAGES["log"](a) * db


def _mod(y: Interval, a: Interval, da: Interval, b: Interval, db: Interval) -> Interval:
    once, count = turns(a, b)
    return choose(once, da - count * db, whole(a))


def _where(y: Interval, truth: Truth, _: None, a: Interval, da: Interval, b: Interval, db: Interval) -> Interval:
    return choose(truth.true & ~truth.false, da, choose(truth.false & ~truth.true, db, whole(a)))


SLOPES: dict[str, Callable[..., Interval]] = {
    **dict.fromkeys(("ceil", "floor", "round", "sign", "trunc"), lambda y, x, dx: _jump(y.low == y.high, y)),
    "+": lambda y, a, da, b, db: da + db,
    "-": lambda y, a, da, b, db: da - db,
    "*": lambda y, a, da, b, db: da * b + a * db,
    "/": lambda y, a, da, b, db: (da - y * db) / b,
    "**": _power,
    "sign +": lambda y, x, dx: dx,
    "sign -": lambda y, x, dx: -dx,
    "abs": _absolute,
    "arccos": _chain(lambda x, y: -(_one(x) / _root(_one(x) - x.square()))),
    "arccosh": _chain(lambda x, y: _one(x) / _root(x.square() - _one(x))),
    "arcsin": _chain(lambda x, y: _one(x) / _root(_one(x) - x.square())),
    "arcsinh": _chain(lambda x, y: _one(x) / _root(_one(x) + x.square())),
    "arctan": _chain(lambda x, y: _one(x) / (_one(x) + x.square())),
    "arctan2": lambda z, y, dy, x, dx: choose(apart(y, x), (x * dy - y * dx) / (x.square() + y.square()), whole(z)),
    "arctanh": _chain(lambda x, y: _one(x) / (_one(x) - x.square())),
    "cbrt": _chain(lambda x, y: _one(x) / (constant(3.0, x) * y.square())),
    "clip": _clip,
    "cos": _chain(lambda x, y: -IMAGES["sin"](x)),
    "cosh": _chain(lambda x, y: IMAGES["sinh"](x)),
    "exp": _chain(lambda x, y: y),
    "exp2": _chain(lambda x, y: y * _number(float(np.log(2.0)), x)),
    "expm1": _chain(lambda x, y: y + _one(x)),
    "heaviside": lambda y, x, dx, middle, dmiddle: _jump((x.low > 0) | (x.high < 0), x),
    "hypot": lambda y, a, da, b, db: (a / y).cut(-1.0, 1.0) * da + (b / y).cut(-1.0, 1.0) * db,
    "log": _chain(lambda x, y: x.reciprocal()),
    "log10": _chain(lambda x, y: x.reciprocal() / _number(float(np.log(10.0)), x)),
    "log1p": _chain(lambda x, y: (_one(x) + x).reciprocal()),
    "log2": _chain(lambda x, y: x.reciprocal() / _number(float(np.log(2.0)), x)),
    "maximum": _maximum,
    "minimum": _minimum,
    "mod": _mod,
    "sin": _chain(lambda x, y: IMAGES["cos"](x)),
    "sinh": _chain(lambda x, y: IMAGES["cosh"](x)),
    "sqrt": _chain(lambda x, y: _one(x) / (y + y)),
    "square": _chain(lambda x, y: x + x),
    "tan": _chain(lambda x, y: _one(x) + y.square()),
    "tanh": _chain(lambda x, y: (_one(x) - y.square()).cut(0.0, 1.0)),
    "where": _where,
}
