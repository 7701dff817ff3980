"""The statements of the paper that are theorems, each checked in rational arithmetic.

Its kinks and two points on every piece determine a piecewise-linear function. So finitely many points decide whether
two of them are equal, and these checks are proofs for each alpha and c of `SHAPES`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from plunit.functional import formula

SHAPES = tuple(itertools.product(map(Fraction, ("1/10", "1/4", "2/3", "1")), map(Fraction, ("1/3", "1", "5/2"))))
"""Pairs of alpha and c; the paper's default is the second."""

Function = Callable[[Fraction], Fraction]


def plu(alpha: Fraction, c: Fraction) -> Function:
    """Return PLU by the project's formula."""
    return lambda x: formula(np, np.array([x]), alpha, c)[0]


def relu(x: Fraction) -> Fraction:
    """Return max(0, x)."""
    return max(Fraction(0), x)


def points(*kinks: Fraction) -> list[Fraction]:
    """Return the kinks and two points strictly inside each piece between them."""
    ends = sorted({*kinks})
    inner = [low + (high - low) * Fraction(part, 3) for low, high in itertools.pairwise(ends) for part in (1, 2)]
    return sorted([ends[0] - 2, ends[0] - 1, *ends, *inner, ends[-1] + 1, ends[-1] + 2])


def slopes(function: Function, *kinks: Fraction) -> list[Fraction]:
    """Return the slope of a function on each piece between the kinks."""
    at = [x for x in points(*kinks) if x not in kinks]
    return [(function(high) - function(low)) / (high - low) for low, high in zip(at[::2], at[1::2], strict=True)]


def formula_of_the_paper() -> Iterator[bool]:
    """Whether max(alpha (x + c) - c, min(alpha (x - c) + c, x)) is the clip form, for 0 < alpha <= 1."""
    for alpha, c in SHAPES:
        for x in points(-c, c):
            yield max(alpha * (x + c) - c, min(alpha * (x - c) + c, x)) == plu(alpha, c)(x)


def segments() -> Iterator[bool]:
    """Whether PLU has the slopes alpha, 1, alpha and ReLU the slopes 0, 1."""
    yield slopes(relu, Fraction(0)) == [0, 1]
    for alpha, c in SHAPES:
        yield slopes(plu(alpha, c), -c, c) == [alpha, 1, alpha]


def unbounded() -> Iterator[bool]:
    """Whether PLU is unbounded, above and below: the slopes of its outer pieces are positive."""
    for alpha, c in SHAPES:
        first, _, last = slopes(plu(alpha, c), -c, c)
        yield first > 0 and last > 0


def odd() -> Iterator[bool]:
    """Whether PLU(-x) = -PLU(x)."""
    for alpha, c in SHAPES:
        yield from (plu(alpha, c)(-x) == -plu(alpha, c)(x) for x in points(-c, c))


def nonzero_derivative() -> Iterator[bool]:
    """Whether no slope of PLU is 0, so that no unit is dead, while one of ReLU is."""
    yield 0 in slopes(relu, Fraction(0))
    for alpha, c in SHAPES:
        yield 0 not in slopes(plu(alpha, c), -c, c)


def inverse() -> Iterator[bool]:
    """Whether the paper's inverse, with the argument that it lost, undoes PLU, and PLU undoes it."""
    for alpha, c in SHAPES:
        forward = plu(alpha, c)

        def backward(y: Fraction, alpha: Fraction = alpha, c: Fraction = c) -> Fraction:
            return min((y + c) / alpha - c, max((y - c) / alpha + c, y))

        for x in points(-c, c):  # the kinks of the inverse are the same
            yield backward(forward(x)) == x and forward(backward(x)) == x


def other_inverses() -> Iterator[bool]:
    """Whether ReLU takes a value twice, slope 100 undoes leaky ReLU, and artanh is finite on (-1, 1) only."""
    yield relu(Fraction(-1)) == relu(Fraction(-2))
    for x in points(Fraction(0)):
        leaky = x if x >= 0 else x / 100
        yield (leaky if leaky >= 0 else leaky * 100) == x
    yield from (math.isclose(math.tanh(math.atanh(y)), y) for y in (-0.9, -0.5, 0.0, 0.5, 0.9))
    yield from (not _has_artanh(y) for y in (-2.0, -1.0, 1.0, 2.0))


def _has_artanh(y: float) -> bool:
    try:
        return math.isfinite(math.atanh(y))
    except ValueError:
        return False


THEOREMS: dict[str, Callable[[], Iterable[Any]]] = {
    "formula": formula_of_the_paper,
    "segments": segments,
    "unbounded": unbounded,
    "inverse-others": other_inverses,
    "inverse-plu": inverse,
    "odd": odd,
    "derivative": nonzero_derivative,
}
"""Statement to its checks, each of which must be true."""
