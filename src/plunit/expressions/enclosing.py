"""f([a, b]) and f'([a, b]): the steps of an expression on intervals, for many boxes at once.

The interval f([a, b]) holds every value that f has in the box, and may hold others: a variable that occurs twice is
treated as two. Smaller boxes give closer intervals. Where a part of f is undefined (the root of a negative number, a
division by 0), f has no value and nothing is said; a part that `where` does not choose does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plunit.expressions.functions import Function
from plunit.expressions.intervals import Interval, choose, constant, whole
from plunit.expressions.rules import IMAGES, compare
from plunit.expressions.slopes import SLOPES
from plunit.pieces.arrays import Floats

if TYPE_CHECKING:
    from plunit.expressions.expression import Step


def enclosure(steps: Sequence[Step], low: Floats, high: Floats) -> Interval:
    """Return intervals [n] that hold the values of f in the boxes low <= inputs <= high, [names, n] each."""
    inputs = [Interval(a, b, np.zeros(a.shape, dtype=bool)) for a, b in zip(low, high, strict=True)]
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for name, value in steps:
            if isinstance(value, Function):
                count = len(value.arguments)
                stack[-count:] = [_image(name, value, stack[-count:])]
            else:
                stack.append(inputs[int(value)] if name == "input" else constant(value, inputs[0]))
    return stack[0]  # type: ignore[no-any-return]


def slope_enclosure(steps: Sequence[Step], low: Floats, high: Floats) -> tuple[Interval, Interval]:
    """Return intervals [n] that hold the values and the slopes of f, a function of one variable; low, high: [1, n]."""
    x = Interval(low[0], high[0], np.zeros(low[0].shape, dtype=bool))
    stack: list[tuple[Any, Any]] = []
    with np.errstate(all="ignore"):
        for name, value in steps:
            if isinstance(value, Function):
                count = len(value.arguments)
                given = stack[-count:]
                image = _image(name, value, [pair[0] for pair in given])
                stack[-count:] = [(image, None if value.compares else _slope(name, image, given))]
            elif name == "input":
                stack.append((x, constant(1.0, x)))
            else:
                stack.append((constant(value, x), constant(0.0, x)))
    return stack[0]


def _image(name: str, function: Function, values: Sequence[Any]) -> Any:
    return compare(name, *values) if function.compares else IMAGES[name](*values)


def _slope(name: str, image: Interval, given: Sequence[tuple[Any, Any]]) -> Interval:
    found = SLOPES[name](image, *(part for pair in given for part in pair))
    unknown = image.partial | np.isnan(found.low) | np.isnan(found.high)
    return choose(unknown, whole(image), found)
