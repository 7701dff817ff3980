"""The values of a function on many boxes at once, as intervals [a, b] with ends that are rounded outward.

An interval encloses the exact values and those that NumPy computes. It may be wider: a variable that occurs twice is
treated as two; smaller boxes give tighter intervals. A sum, a product or a quotient is rounded to the nearest number,
so the next number outward is enough. NumPy's other functions are assumed to be within 4 units in the last place, and
the intervals allow 8. Where a part of f is undefined (the root of a negative number, a division by 0), f has no value
and nothing is claimed; a part that `where` does not choose does not count. The ends of an empty interval are NaN.
Moore, Kearfott and Cloud (2009; docs/glossary.md) introduce intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plunit.expressions.expression import Step, run_steps
from plunit.pieces.arrays import Bools, Floats

_LARGEST = float(np.finfo(np.float64).max)
_SLACK = 8 * float(np.finfo(np.float64).eps)
_TINY = 8 * float(np.finfo(np.float64).smallest_subnormal)
_FAR = 2.0**40  # beyond, numbers are not located between the extremes of a sine


@dataclass(frozen=True, eq=False)
class Interval:
    """n intervals [low, high]; in an operation, a float is the interval of that number.

    Args:
        low, high: the ends, [n]; infinite where there is no bound, NaN where the interval is empty.
        partial: [n], whether the value may be undefined (NaN) or infinite somewhere in the box.
    """

    low: Floats
    high: Floats
    partial: Bools

    def __add__(self, other: Interval | float) -> Interval:
        other = self._alike(other)
        return widen(self.low + other.low, self.high + other.high, self, other)

    def __sub__(self, other: Interval | float) -> Interval:
        other = self._alike(other)
        return widen(self.low - other.high, self.high - other.low, self, other)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.partial)

    def __mul__(self, other: Interval | float) -> Interval:
        other = self._alike(other)
        ends = [_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        nothing = np.where(np.isnan(self.low) | np.isnan(other.low), np.nan, 0.0)
        return widen(np.min(ends, axis=0) + nothing, np.max(ends, axis=0) + nothing, self, other)

    def __truediv__(self, other: Interval) -> Interval:
        return self * other.reciprocal()

    def __rsub__(self, other: float) -> Interval:
        return self._alike(other) - self

    def __rtruediv__(self, other: float) -> Interval:
        return self._alike(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def _alike(self, other: Interval | float) -> Interval:
        return other if isinstance(other, Interval) else interval_of(other, self)

    def reciprocal(self) -> Interval:
        """Return 1 / [a, b], unbounded on the side of 0."""
        inside = (self.low < 0) & (self.high > 0) | (self.low == 0) & (self.high == 0)
        low = np.where(inside | (self.high == 0), -np.inf, 1 / self.high)
        high = np.where(inside | (self.low == 0), np.inf, 1 / self.low)
        return widen(low, high, self)

    def square(self) -> Interval:
        """Return the squares of the numbers."""
        size = self.absolute()
        return _at_least(0.0, widen(size.low * size.low, size.high * size.high, self))

    def absolute(self) -> Interval:
        """Return the absolute values of the numbers."""
        low, high = np.abs(self.low), np.abs(self.high)
        across = (self.low < 0) & (self.high > 0)
        return Interval(np.where(across, 0.0, np.minimum(low, high)), np.maximum(low, high), self.partial)

    def within(self, low: float, high: float) -> Interval:
        """Return the part in [low, high]; `partial` is set where some of the interval lies outside."""
        outside = (self.low < low) | (self.high > high)
        ends = np.maximum(self.low, low), np.minimum(self.high, high)
        nothing = np.where(ends[0] <= ends[1], 0.0, np.nan)
        return Interval(ends[0] + nothing, ends[1] + nothing, self.partial | outside)

    def clip(self, low: float, high: float) -> Interval:
        """Return the interval with its ends clipped, for values that are known to lie in [low, high]."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high), self.partial)

    def monotone(self, f: Callable[[Floats], Any]) -> Interval:
        """Return the values of a rising library function."""
        return loosely(f(self.low), f(self.high), self)


def enclosure(steps: Sequence[Step], low: Floats, high: Floats) -> Interval:
    """Return intervals [n] that enclose the values of f in the boxes low <= inputs <= high, [names, n] each."""
    inputs = [between(*ends) for ends in zip(low, high, strict=True)]
    found: Interval = run_steps(
        steps, inputs, lambda value: interval_of(value, inputs[0]), lambda name, _, values: IMAGES[name](*values)
    )
    return found


def between(low: Floats, high: Floats) -> Interval:
    """Return the intervals [low, high], in which every value is defined."""
    return Interval(low, high, np.zeros(low.shape, dtype=bool))


def interval_of(value: Any, like: Interval) -> Interval:
    """Return a number as one interval for each interval of `like`."""
    return between(*[np.full_like(like.low, value)] * 2)


def hull(a: Interval, b: Interval) -> Interval:
    """Return the smallest interval that contains both."""
    return Interval(np.fmin(a.low, b.low), np.fmax(a.high, b.high), a.partial | b.partial)


def choose(first: Bools, a: Interval, b: Interval) -> Interval:
    """Return a where `first` holds, else b."""
    return Interval(*(np.where(first, getattr(a, name), getattr(b, name)) for name in ("low", "high", "partial")))


def widen(low: Floats, high: Floats, *given: Interval) -> Interval:
    """Return the interval with its ends one number further out, for an operation that rounds to nearest."""
    return exactly(np.nextafter(low, -np.inf), np.nextafter(high, np.inf), *given)


def loosely(low: Floats, high: Floats, *given: Interval) -> Interval:
    """Return the interval with its ends 8 units in the last place further out, for a library function."""
    low, high = np.minimum(low, _LARGEST), np.maximum(high, -_LARGEST)
    return exactly(low - (_SLACK * np.abs(low) + _TINY), high + (_SLACK * np.abs(high) + _TINY), *given)


def exactly(low: Floats, high: Floats, *given: Interval) -> Interval:
    """Return the interval with these ends, for a function without rounding, such as floor."""
    # an unbounded value may be infinite, and inf - inf is NaN in the next step
    partial = ~(np.isfinite(low) & np.isfinite(high))
    for interval in given:
        partial = partial | interval.partial
    return Interval(low, high, partial)


def _times(a: Floats, b: Floats) -> Floats:
    # an infinite end stands for numbers of any size, and 0 times any of them is 0
    return np.where((a == 0) | (b == 0), 0.0, a * b)


class Truth(NamedTuple):
    """Whether a comparison can hold in a box, and whether it can fail, [n] each."""

    true: Bools
    false: Bools


def _compare(name: str, a: Interval, b: Interval) -> Truth:
    """Return whether a comparison can be true and false; both where a side may be undefined."""
    if name in (">", ">="):
        return _compare({">": "<", ">=": "<="}[name], b, a)
    same = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    meeting = (a.low <= b.high) & (b.low <= a.high)
    true, false = {
        "<": (a.low < b.high, a.high >= b.low),
        "<=": (a.low <= b.high, a.high > b.low),
        "==": (meeting, ~same),
        "!=": (~same, meeting),
    }[name]
    undefined = a.partial | b.partial
    return Truth(true | undefined, false | undefined)


def _select(truth: Truth, a: Interval, b: Interval) -> Interval:
    return choose(truth.true & ~truth.false, a, choose(truth.false & ~truth.true, b, hull(a, b)))


def power(a: Interval, b: Interval) -> Interval:
    """Return a ** b, for integer exponents and all a, or any b and a >= 0; extremes are at corners, or at a = 0."""
    fixed = b.low == b.high
    integer = fixed & (np.floor(b.low) == b.low)
    base = choose(fixed & ~integer, a.within(0.0, np.inf), a.absolute())
    size = _corners(np.power, base, b)
    odd = _with_pole((a.low <= 0) & (a.high >= 0) & (b.low < 0), _corners(np.power, a, b))
    # negative a with a varying exponent: defined where the exponent is an integer, and then of either sign
    mixed = Interval(-size.high, size.high, np.ones(a.low.shape, dtype=bool))
    found = choose(integer & (np.mod(b.low, 2) == 1), odd, choose((a.low < 0) & ~fixed, mixed, size))
    # in NumPy, NaN ** 0 and 1 ** NaN are 1
    return choose(a.partial | b.partial, hull(found, interval_of(1.0, a)), found)


def _corners(f: Callable[..., Any], a: Interval, b: Interval) -> Interval:
    ends = [f(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return loosely(np.min(ends, axis=0), np.max(ends, axis=0), a, b)


def _with_pole(there: Bools, found: Interval) -> Interval:
    """Return the interval, or all numbers where there is a pole."""
    pole = np.where(there, np.inf, np.nan)
    return exactly(np.fmin(found.low, -pole), np.fmax(found.high, pole), found)


def _meets(x: Interval, period: float, shift: float) -> Bools:
    """Return which intervals may contain a number (k + shift) period with an integer k."""
    low, high = x.low / period - shift, x.high / period - shift
    margin = 1e-15 * (np.abs(low) + np.abs(high) + 1)
    far = np.maximum(np.abs(low), np.abs(high)) > _FAR
    return np.asarray(far | (np.floor(high + margin) >= np.ceil(low - margin)))


def _wave(f: Callable[..., Any], top: float) -> Callable[[Interval], Interval]:
    """Return sine or cosine on intervals: monotone between maxima at (k + top) 2 pi and minima half a period later."""

    def image(x: Interval) -> Interval:
        ends = f(x.low), f(x.high)
        found = loosely(np.minimum(*ends), np.maximum(*ends), x)
        high = np.where(_meets(x, 2 * np.pi, top), 1.0, found.high)
        low = np.where(_meets(x, 2 * np.pi, top + 0.5), -1.0, found.low)
        return Interval(low, high, found.partial).clip(-1.0, 1.0)

    return image


def _at_least(floor: float, found: Interval) -> Interval:
    return Interval(np.maximum(found.low, floor), found.high, found.partial)


def _rising(f: Callable[..., Any], low: float = -np.inf, high: float = np.inf, floor: float = -np.inf) -> Any:
    """Return, on intervals, a rising function with the domain [low, high] and values not below `floor`."""
    return lambda x: _at_least(floor, x.within(low, high).monotone(f))


def _exact(f: Callable[..., Any]) -> Callable[..., Interval]:
    """Return, on intervals, a function without rounding that rises in all arguments."""
    return lambda *given: exactly(f(*(one.low for one in given)), f(*(one.high for one in given)), *given)


def turns(a: Interval, b: Interval) -> tuple[Bools, Interval]:
    """Return where floor(a / b) is a single number, and that number, 0 elsewhere."""
    quotient = a / b
    count = np.floor(quotient.low)
    once = (count == np.floor(quotient.high)) & np.isfinite(count)
    return once, interval_of(np.where(once, count, 0.0), a)


def _mod(a: Interval, b: Interval) -> Interval:
    once, count = turns(a, b)
    among = exactly(np.minimum(b.low, 0.0), np.maximum(b.high, 0.0), a, b)
    # as for a division: unbounded where b may be 0
    return _with_pole((b.low <= 0) & (b.high >= 0), choose(once, a - count * b, among))


def avoids_jump(y: Interval, x: Interval) -> Bools:
    """Return which boxes do not meet the jump of arctan2(y, x) at y = 0, x <= 0."""
    return np.asarray((y.low > 0) | (y.high < 0) | (x.low > 0))


def _arctan2(y: Interval, x: Interval) -> Interval:
    away = avoids_jump(y, x)
    half = np.nextafter(np.pi, 4.0)
    found = _corners(np.arctan2, y, x)
    return Interval(np.where(away, found.low, -half), np.where(away, found.high, half), found.partial).clip(-half, half)


def _heaviside(x: Interval, middle: Interval) -> Interval:
    zero, one = interval_of(0.0, x), interval_of(1.0, x)
    rest = _select(_compare("==", x, zero), middle, one)
    found = _select(_compare("<", x, zero), zero, rest)
    return Interval(found.low, found.high, found.partial | x.partial)


IMAGES: dict[str, Callable[..., Any]] = {
    **{name: partial(_compare, name) for name in ("<", "<=", ">", ">=", "==", "!=")},
    **{name: _exact(getattr(np, name)) for name in ("ceil", "floor", "maximum", "minimum", "round", "sign", "trunc")},
    **{name: _rising(getattr(np, name)) for name in ("arcsinh", "arctan", "cbrt", "sinh", "tanh")},
    **{name: _rising(getattr(np, name), low=0.0) for name in ("log", "log10", "log2")},
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": power,
    "sign +": lambda a: a,
    "sign -": lambda a: -a,
    "abs": Interval.absolute,
    "arccos": lambda x: -x.within(-1.0, 1.0).monotone(lambda end: -np.arccos(end)),
    "arccosh": _rising(np.arccosh, low=1.0, floor=0.0),
    "arcsin": _rising(np.arcsin, -1.0, 1.0),
    "arctan2": _arctan2,
    "arctanh": _rising(np.arctanh, -1.0, 1.0),
    "clip": lambda x, low, high: IMAGES["minimum"](IMAGES["maximum"](x, low), high),
    "cos": _wave(np.cos, 0.0),
    "cosh": lambda x: _at_least(1.0, x.absolute().monotone(np.cosh)),
    "exp": _rising(np.exp, floor=0.0),
    "exp2": _rising(np.exp2, floor=0.0),
    "expm1": _rising(np.expm1, floor=-1.0),
    "heaviside": _heaviside,
    "hypot": lambda a, b: _corners(np.hypot, a.absolute(), b.absolute()).clip(0.0, np.inf),
    "log1p": _rising(np.log1p, low=-1.0),
    "mod": _mod,
    "sin": _wave(np.sin, 0.25),
    "sqrt": _rising(np.sqrt, low=0.0, floor=0.0),
    "square": Interval.square,
    "tan": lambda x: _with_pole(_meets(x, np.pi, 0.5), x.monotone(np.tan)),
    "where": _select,
}
"""Each function and operator of expressions, on intervals."""
