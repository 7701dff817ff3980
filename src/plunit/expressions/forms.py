"""f(x) = c + g t +- e on many boxes at once; t in [-1, 1]^d runs from the low to the high end of each side.

This is affine arithmetic (de Figueiredo and Stolfi 2004; docs/glossary.md) with one error term. On a box of width h
the error e of a smooth f is of order h^2; that of an interval is of order h:

    u v     = c_u v + c_v u - c_u c_v + (u - c_u) (v - c_v)           the last term is bounded
    phi(u)  = phi(p) + phi'(p) (u - p) + phi''(U) (u - p)^2 / 2       U the values of u, p in U

A function with a kink is bounded by a chord, and one that jumps by an interval. The interval of the values is kept with
the form, and the narrower of the two counts. e includes all roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.expressions.expression import Function, Step, run_steps
from plunit.expressions.intervals import (
    IMAGES,
    Interval,
    Truth,
    avoids_jump,
    between,
    choose,
    interval_of,
    loosely,
    power,
    turns,
)
from plunit.pieces.arrays import Bools, Floats

_EPS = float(np.finfo(np.float64).eps)
_TINY = 64 * float(np.finfo(np.float64).smallest_subnormal)
_UP = 1 + 16 * _EPS


@dataclass(frozen=True, eq=False)
class Form:
    """centre [n] + slopes [d, n] t +- error [n], and the interval `values` [n] of the same numbers.

    The error is infinite or NaN where no bound is known.
    """

    centre: Floats
    slopes: Floats
    error: Floats
    values: Interval

    @property
    def reach(self) -> Floats:
        """An upper bound of the distance from the centre."""
        return np.asarray((np.abs(self.slopes).sum(axis=0) + self.error) * _UP + _TINY)


def halves(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the midpoint m and the half-width h of boxes, rounded so that each x in a box is m + h t, |t| <= 1."""
    middle = low / 2 + high / 2
    return middle, np.maximum(high - middle, middle - low) * _UP


def linear_enclosure(steps: Sequence[Step], low: Floats, high: Floats) -> Form:
    """Return forms that enclose the values of f in the boxes low <= inputs <= high, [names, n] each."""
    (axes, n), inputs = low.shape, []
    middle, half = halves(low, high)
    for axis in range(axes):
        interval, slopes = between(low[axis], high[axis]), np.zeros((axes, n))
        slopes[axis] = half[axis]
        inputs.append(Form(middle[axis], slopes, np.zeros(n), interval))

    def number(value: Any) -> Form:
        return Form(np.full(n, float(value)), np.zeros((axes, n)), np.zeros(n), interval_of(value, inputs[0].values))

    found: Form = run_steps(steps, inputs, number, _apply)
    return found


def _apply(name: str, function: Function, given: Sequence[Any]) -> Any:
    image = IMAGES[name](*(item if isinstance(item, Truth) else item.values for item in given))
    if isinstance(image, Truth):
        return image
    if name in DERIVATIVES:
        return _smooth(name, given[0], image)
    return _OTHERS[name](image, *given) if name in _OTHERS else _flat(image, given[0].slopes)


def _flat(image: Interval, slopes: Floats) -> Form:
    """Return the form with slopes 0 that encloses an interval."""
    centre = image.low / 2 + image.high / 2
    error = np.maximum(image.high - centre, centre - image.low) * _UP + _TINY
    return Form(centre, np.zeros_like(slopes), error, image)


def _closer(image: Interval, centre: Floats, slopes: Floats, error: Floats, size: Floats) -> Form:
    """Return the form, or the image's where that is narrower; `size` is the sum of the absolute rounded terms."""
    error = error * _UP + 8 * _EPS * (size + np.abs(centre) + np.abs(slopes).sum(axis=0)) + _TINY
    flat = _flat(image, slopes)
    known = np.isfinite(error) & np.isfinite(centre) & ~image.partial & ~(flat.error <= error)
    reach = (np.abs(slopes).sum(axis=0) + error) * _UP + _TINY
    # both enclose all values, so they intersect unless the image is empty
    low = np.where(known, np.fmax(image.low, centre - reach - _EPS * np.abs(centre)), image.low)
    high = np.where(known, np.fmin(image.high, centre + reach + _EPS * np.abs(centre)), image.high)
    return _pick(known, Form(centre, slopes, error, Interval(low, high, image.partial)), flat)


def _as_well(image: Interval, u: Form) -> Form:
    """Return u, narrowed by another interval that encloses its values."""
    return _closer(image, u.centre, u.slopes, u.error, np.zeros_like(u.error))


def _pick(first: Bools, a: Form, b: Form) -> Form:
    centre, slopes, error = (
        np.where(first, x, y) for x, y in ((a.centre, b.centre), (a.slopes, b.slopes), (a.error, b.error))
    )
    return Form(centre, slopes, error, choose(first, a.values, b.values))


def _scale(image: Interval, factor: Any, u: Form, plus: Any = 0.0, error: Any = 0.0) -> Form:
    """Return factor u + plus +- error."""
    size = np.abs(factor) * (np.abs(u.centre) + u.error) + np.abs(plus) + error
    return _closer(image, factor * u.centre + plus, factor * u.slopes, np.abs(factor) * u.error + error, size)


def _sum(image: Interval, a: Form, b: Form, sign: float = 1.0) -> Form:
    size = np.abs(a.centre) + np.abs(b.centre) + a.error + b.error
    return _closer(image, a.centre + sign * b.centre, a.slopes + sign * b.slopes, a.error + b.error, size)


def _difference(a: Form, b: Form) -> Form:
    return _sum(a.values - b.values, a, b, -1.0)


def _product(image: Interval, a: Form, b: Form) -> Form:
    """Return a b; of the products t_i t_j in the last term, those with i = j are squares and lie in [0, 1]."""
    squares, far = a.slopes * b.slopes, a.reach * b.reach
    centre = a.centre * b.centre + squares.sum(axis=0) / 2
    slopes = a.centre * b.slopes + b.centre * a.slopes
    cross = np.abs(squares).sum(axis=0)
    error = np.abs(a.centre) * b.error + np.abs(b.centre) * a.error + (far - cross / 2)
    size = np.abs(a.centre) * (np.abs(b.centre) + b.reach) + np.abs(b.centre) * a.reach + far + cross
    return _closer(image, centre, slopes, error, size)


def _quotient(image: Interval, a: Form, b: Form) -> Form:
    image_of_inverse = b.values.reciprocal()
    inverse = _expand(b, image_of_inverse, Interval.reciprocal, lambda x, y: -y.square(), lambda x, y: _cube(y) * 2.0)
    return _product(image, a, inverse)


def _smooth(name: str, u: Form, image: Interval) -> Form:
    return _expand(u, image, IMAGES[name], *DERIVATIVES[name])


def _expand(
    u: Form, image: Interval, rule: Callable[[Interval], Interval], derivative: Derivative, second: Derivative
) -> Form:
    """Return phi(u) from phi, phi'(x, y) and phi''(x, y), y = phi(x)."""
    p = np.clip(u.centre, u.values.low, u.values.high)
    point = between(p, p)
    at_point = rule(point)
    value, steep = _flat(at_point, u.slopes), _flat(derivative(point, at_point), u.slopes)
    bend = second(u.values, image)
    away = np.maximum(u.values.high - p, p - u.values.low) * _UP
    low, high = (edge * (away * away / 2) for edge in (np.minimum(bend.low, 0.0), np.maximum(bend.high, 0.0)))
    error = steep.error * away + value.error + (high - low) / 2
    size = (np.abs(low) + np.abs(high)) + np.abs(steep.centre) * (np.abs(u.centre) + np.abs(p))
    middle = value.centre + (steep.centre * (u.centre - p) + (low / 2 + high / 2))
    slopes = steep.centre * u.slopes
    return _closer(image, middle, slopes, np.abs(steep.centre) * u.error + error, size + np.abs(value.centre) + error)


def _absolute(image: Interval, u: Form) -> Form:
    """Return |u|, by the chord between the ends if 0 lies between them."""
    low, high = u.values.low, u.values.high
    across = (low < 0) & (high > 0)
    slope = np.where(across, (high + low) / np.where(across, high - low, 1.0), np.where(low >= 0, 1.0, -1.0))
    gap = np.where(across, np.maximum(high * (1 - slope), -low * (1 + slope)) * _UP, 0.0)
    return _scale(image, slope, u, gap / 2, gap / 2)


def _larger(image: Interval, a: Form, b: Form, sign: float = 1.0) -> Form:
    """Return the maximum or, for sign -1, the minimum: (a + b +- |a - b|) / 2."""
    apart_ = _difference(a, b)
    away = _absolute(apart_.values.absolute(), apart_)
    total = _sum(a.values + b.values, a, b)
    double = _sum(total.values + away.values if sign > 0 else total.values - away.values, total, away, sign)
    return _scale(image, 0.5, double)


def _clip(image: Interval, x: Form, low: Form, high: Form) -> Form:
    inner = _larger(IMAGES["maximum"](x.values, low.values), x, low)
    return _larger(image, inner, high, -1.0)


def _where(image: Interval, truth: Truth, a: Form, b: Form) -> Form:
    """Return a, b or, where the condition is not known, (a + b) / 2 +- |a - b| / 2."""
    gap = _difference(a, b)
    total = _sum(a.values + b.values, a, b)
    half = np.maximum(np.abs(gap.values.low), np.abs(gap.values.high)) / 2 * _UP
    either = _scale(image, 0.5, total, 0.0, half)
    return _pick(truth.true & ~truth.false, a, _pick(truth.false & ~truth.true, b, either))


def _power(image: Interval, a: Form, b: Form) -> Form:
    """Return a ** b: phi(a) if the exponent is one number, else exp(b log(a))."""
    fixed = b.values.low == b.values.high
    exponent = b.values

    def less(count: float) -> Interval:
        lower = exponent.low - count  # exact for usual exponents
        exact = between(lower, lower)
        return choose((lower + count == exponent.low) & (np.abs(lower) < 2.0**52), exact, exponent - count)

    found = _expand(
        a,
        image,
        lambda x: power(x, exponent),
        lambda x, y: exponent * power(x, less(1.0)),
        lambda x, y: exponent * less(1.0) * power(x, less(2.0)),
    )
    if fixed.all():
        return found
    log = _smooth("log", a, IMAGES["log"](a.values))
    inner = _product(b.values * log.values, b, log)
    other = _smooth("exp", inner, IMAGES["exp"](inner.values))
    return _pick(fixed, found, _as_well(image, other))


def _hypot(image: Interval, a: Form, b: Form) -> Form:
    first, second = (_smooth("square", x, x.values.square()) for x in (a, b))
    total = _sum(first.values + second.values, first, second)
    return _as_well(image, _smooth("sqrt", total, IMAGES["sqrt"](total.values)))


def _arctan2(image: Interval, y: Form, x: Form) -> Form:
    """Return arctan2: arctan(y / x) for x > 0, else +-pi / 2 - arctan(x / y); the interval at the jump."""
    right = x.values.low > 0
    over, under = _pick(right, y, x), _pick(right, x, y)
    ratio = _quotient(over.values / under.values, over, under)
    angle = _smooth("arctan", ratio, IMAGES["arctan"](ratio.values))
    turn = np.where(right, 0.0, np.where(y.values.low > 0, np.pi / 2, -np.pi / 2))
    found = _scale(image, np.where(right, 1.0, -1.0), angle, turn, 2 * _EPS)
    return _pick(avoids_jump(y.values, x.values), found, _flat(image, y.slopes))


def _mod(image: Interval, a: Form, b: Form) -> Form:
    once, count = turns(a.values, b.values)
    taken = _product(count * b.values, Form(count.low, np.zeros_like(a.slopes), np.zeros_like(a.error), count), b)
    return _pick(once, _sum(image, a, taken, -1.0), _flat(image, a.slopes))


_OTHERS: dict[str, Callable[..., Form]] = {
    "+": _sum,
    "-": lambda image, a, b: _sum(image, a, b, -1.0),
    "*": _product,
    "/": _quotient,
    "**": _power,
    "sign +": lambda image, u: u,
    "sign -": lambda image, u: Form(-u.centre, -u.slopes, u.error, image),
    "abs": _absolute,
    "arctan2": _arctan2,
    "clip": _clip,
    "hypot": _hypot,
    "maximum": _larger,
    "minimum": lambda image, a, b: _larger(image, a, b, -1.0),
    "mod": _mod,
    "where": _where,
}
"""Functions that are neither smooth nor listed here, such as floor, get an interval: they are constant or jump."""

Derivative = Callable[[Interval, Interval], Interval]
"""phi'(x) or phi''(x) from x and y = phi(x)."""

_root, _sine, _cosine, _sinh, _cosh = (IMAGES[name] for name in ("sqrt", "sin", "cos", "sinh", "cosh"))


def _cube(x: Interval) -> Interval:
    return x * x.square()


def _natural_log(number: float, like: Interval) -> Interval:
    """Return an interval that encloses log(number)."""
    ends = interval_of(np.log(number), like).low
    return loosely(ends, ends)


def _logarithm(base: float) -> tuple[Derivative, Derivative]:
    return (
        lambda x, y: x.reciprocal() / _natural_log(base, x),
        lambda x, y: -(x.square().reciprocal() / _natural_log(base, x)),
    )


def _inverse_root(inner: Callable[[Interval], Interval], sign: float = 1.0, bend: float = 1.0) -> Any:
    """Return the derivatives sign / sqrt(r(x)) and sign * bend * x / r(x)^(3/2)."""
    return (
        lambda x, y: sign / _root(inner(x)),
        lambda x, y: sign * bend * x / (inner(x) * _root(inner(x))),
    )


def _below(x: Interval) -> Interval:
    return 1.0 - x.square()


def _beyond(x: Interval) -> Interval:
    return 1.0 + x.square()


DERIVATIVES: dict[str, tuple[Derivative, Derivative]] = {
    "arccos": _inverse_root(_below, -1.0),
    "arccosh": _inverse_root(lambda x: x.square() - 1.0, bend=-1.0),
    "arcsin": _inverse_root(_below),
    "arcsinh": _inverse_root(_beyond, bend=-1.0),
    "arctan": (lambda x, y: _beyond(x).reciprocal(), lambda x, y: -2.0 * x / _beyond(x).square()),
    "arctanh": (lambda x, y: _below(x).reciprocal(), lambda x, y: 2.0 * x / _below(x).square()),
    "cbrt": (lambda x, y: 1.0 / (3.0 * y.square()), lambda x, y: -2.0 / (9.0 * _cube(y) * y.square())),
    "cos": (lambda x, y: -_sine(x), lambda x, y: -y),
    "cosh": (lambda x, y: _sinh(x), lambda x, y: y),
    "exp": (lambda x, y: y, lambda x, y: y),
    "exp2": (lambda x, y: y * _natural_log(2.0, x), lambda x, y: y * _natural_log(2.0, x).square()),
    "expm1": (lambda x, y: y + 1.0, lambda x, y: y + 1.0),
    "log": (lambda x, y: x.reciprocal(), lambda x, y: -x.square().reciprocal()),
    "log10": _logarithm(10.0),
    "log1p": (lambda x, y: (1.0 + x).reciprocal(), lambda x, y: -(1.0 + x).square().reciprocal()),
    "log2": _logarithm(2.0),
    "sin": (lambda x, y: _cosine(x), lambda x, y: -y),
    "sinh": (lambda x, y: _cosh(x), lambda x, y: y),
    "sqrt": (lambda x, y: 1.0 / (y + y), lambda x, y: -0.25 / _cube(y)),
    "square": (lambda x, y: x + x, lambda x, y: interval_of(2.0, x)),
    "tan": (lambda x, y: _beyond(y), lambda x, y: 2.0 * y * _beyond(y)),
    "tanh": (lambda x, y: _below(y).clip(0.0, 1.0), lambda x, y: -2.0 * y * _below(y).clip(0.0, 1.0)),
}
"""phi' and phi'' of every smooth function."""
