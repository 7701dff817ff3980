"""The values that a function takes on intervals, for every function that an expression may call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.expressions.intervals import Interval, choose, constant, exactly, hull, loosely, whole
from plunit.pieces.arrays import Bools, Floats

_FAR = 2.0**40
"""Beyond that the place of a number between the extremes of a sine is not computed."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What a comparison can be in a box: [n] each."""

    true: Bools
    false: Bools


def compare(name: str, a: Interval, b: Interval) -> Truth:
    """Return whether a comparison can hold, and whether it can fail; where a side is undefined, both."""
    if name in (">", ">="):
        return compare({">": "<", ">=": "<="}[name], b, a)
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


def select(truth: Truth, a: Interval, b: Interval) -> Interval:
    """where(condition, a, b)."""
    return choose(truth.true & ~truth.false, a, choose(truth.false & ~truth.true, b, hull(a, b)))


def power(a: Interval, b: Interval) -> Interval:
    """The values of a ** b: whole exponents for all a, others for a >= 0; extremes are at corners, or at a = 0."""
    integer, fixed = whole_number(b), b.low == b.high
    base = choose(fixed & ~integer, a.within(0.0, np.inf), a.absolute())
    size = _corners(np.power, base, b)
    odd = _corners(np.power, a, b)
    pole = np.where((a.low <= 0) & (a.high >= 0) & (b.low < 0), np.inf, np.nan)
    odd = exactly(np.fmin(odd.low, -pole), np.fmax(odd.high, pole), odd)
    # negative a with an exponent that varies: defined where the exponent happens to be whole, and then of either sign
    mixed = Interval(-size.high, size.high, np.ones(a.low.shape, dtype=bool))
    found = choose(integer & (np.mod(b.low, 2) == 1), odd, choose((a.low < 0) & ~fixed, mixed, size))
    # NaN ** 0 and 1 ** NaN are 1 for NumPy
    return choose(a.partial | b.partial, hull(found, constant(1.0, a)), found)


def whole_number(b: Interval) -> Bools:
    """Return which intervals are one whole number."""
    return np.asarray((b.low == b.high) & (np.floor(b.low) == b.low))


def _corners(f: Callable[..., Any], a: Interval, b: Interval) -> Interval:
    ends = [f(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return loosely(np.min(ends, axis=0), np.max(ends, axis=0), a, b)


def _meets(x: Interval, period: float, shift: float) -> Bools:
    """Return which intervals may hold a number (k + shift) period with a whole k."""
    low, high = x.low / period - shift, x.high / period - shift
    margin = 1e-15 * (np.abs(low) + np.abs(high) + 1)
    far = np.maximum(np.abs(low), np.abs(high)) > _FAR
    return np.asarray(far | (np.floor(high + margin) >= np.ceil(low - margin)))


def _wave(f: Callable[..., Any], top: float) -> Callable[[Interval], Interval]:
    """The sine or the cosine: monotone between the tops (k + top) 2 pi and the bottoms half a period further."""

    def image(x: Interval) -> Interval:
        ends = f(x.low), f(x.high)
        found = loosely(np.minimum(*ends), np.maximum(*ends), x)
        high = np.where(_meets(x, 2 * np.pi, top), 1.0, found.high)
        low = np.where(_meets(x, 2 * np.pi, top + 0.5), -1.0, found.low)
        return Interval(low, high, found.partial).cut(-1.0, 1.0)

    return image


def _tan(x: Interval) -> Interval:
    pole = np.where(_meets(x, np.pi, 0.5), np.inf, np.nan)
    found = x.monotone(np.tan)
    return exactly(np.fmin(found.low, -pole), np.fmax(found.high, pole), x)


def _at_least(floor: float, found: Interval) -> Interval:
    return Interval(np.maximum(found.low, floor), found.high, found.partial)


def _rising(f: Callable[..., Any], low: float = -np.inf, high: float = np.inf, floor: float = -np.inf) -> Any:
    """A rising function on [low, high] whose values are not below `floor`."""
    return lambda x: _at_least(floor, x.within(low, high).monotone(f))


def _step(f: Callable[[Floats], Any]) -> Callable[[Interval], Interval]:
    return lambda x: exactly(f(x.low), f(x.high), x)


def _either(f: Callable[..., Any]) -> Callable[[Interval, Interval], Interval]:
    return lambda a, b: exactly(f(a.low, b.low), f(a.high, b.high), a, b)


def turns(a: Interval, b: Interval) -> tuple[Bools, Interval]:
    """Return where floor(a / b) is one number, and that number; 0 elsewhere."""
    quotient = a / b
    count = np.floor(quotient.low)
    once = (count == np.floor(quotient.high)) & np.isfinite(count)
    return once, constant(np.where(once, count, 0.0), a)


def _mod(a: Interval, b: Interval) -> Interval:
    once, count = turns(a, b)
    among = exactly(np.minimum(b.low, 0.0), np.maximum(b.high, 0.0), a, b)
    # as a division: no bound where it may be one by 0
    return choose((b.low <= 0) & (b.high >= 0), whole(a), choose(once, a - count * b, among))


def apart(y: Interval, x: Interval) -> Bools:
    """Return which boxes keep apart from the jump of arctan2(y, x): y = 0, x <= 0."""
    return np.asarray((y.low > 0) | (y.high < 0) | (x.low > 0))


def _arctan2(y: Interval, x: Interval) -> Interval:
    away = apart(y, x)
    half = np.nextafter(np.pi, 4.0)
    found = _corners(np.arctan2, y, x)
    return Interval(np.where(away, found.low, -half), np.where(away, found.high, half), found.partial).cut(-half, half)


def _arccos(x: Interval) -> Interval:
    inside = x.within(-1.0, 1.0)
    return loosely(np.arccos(inside.high), np.arccos(inside.low), inside)


def _heaviside(x: Interval, middle: Interval) -> Interval:
    zero, one = constant(0.0, x), constant(1.0, x)
    rest = select(compare("==", x, zero), middle, one)
    found = select(compare("<", x, zero), zero, rest)
    return Interval(found.low, found.high, found.partial | x.partial)


_WIDE = {name: _rising(getattr(np, name)) for name in ["cbrt", "sinh", "tanh", "arctan", "arcsinh"]}

IMAGES: dict[str, Callable[..., Interval]] = {
    **_WIDE,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": power,
    "sign +": lambda a: a,
    "sign -": lambda a: -a,
    "abs": lambda x: x.absolute(),
    "arccos": _arccos,
    "arccosh": _rising(np.arccosh, low=1.0, floor=0.0),
    "arcsin": _rising(np.arcsin, -1.0, 1.0),
    "arctan2": _arctan2,
    "arctanh": _rising(np.arctanh, -1.0, 1.0),
    "ceil": _step(np.ceil),
    "clip": lambda x, low, high: IMAGES["minimum"](IMAGES["maximum"](x, low), high),
    "cos": _wave(np.cos, 0.0),
    "cosh": lambda x: _at_least(1.0, x.absolute().monotone(np.cosh)),
    "exp": _rising(np.exp, floor=0.0),
    "exp2": _rising(np.exp2, floor=0.0),
    "expm1": _rising(np.expm1, floor=-1.0),
    "floor": _step(np.floor),
    "heaviside": _heaviside,
    "hypot": lambda a, b: _corners(np.hypot, a.absolute(), b.absolute()).cut(0.0, np.inf),
    "log": _rising(np.log, low=0.0),
    "log10": _rising(np.log10, low=0.0),
    "log1p": _rising(np.log1p, low=-1.0),
    "log2": _rising(np.log2, low=0.0),
    "maximum": _either(np.maximum),
    "minimum": _either(np.minimum),
    "mod": _mod,
    "round": _step(np.round),
    "sign": _step(np.sign),
    "sin": _wave(np.sin, 0.25),
    "sqrt": _rising(np.sqrt, low=0.0, floor=0.0),
    "square": lambda x: x.square(),
    "tan": _tan,
    "trunc": _step(np.trunc),
    "where": select,
}
