"""What is to be fitted: the rows of a table, or a function given as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plunit.base.errors import UserError, shown
from plunit.base.files import ending
from plunit.data import parquet_table
from plunit.data.tables import read_table
from plunit.expressions import MOST_VARIABLES, Expression, finite_values, parse, sup_error
from plunit.pieces import network

Array = np.ndarray[Any, Any]

POINTS = {1: 2000, 2: 3600}
"""At so many points a function of one or of two variables is looked at; of more variables at 5,000."""

HUGE = 1e250
"""The largest value of a function: the exact curve of a network holds numbers up to 1e300."""

LARGEST, LEAST, SHORTEST = 1e150, 1e-150, 1e-9
"""The largest end of an interval, because squares of larger numbers overflow; and the least width, as a part of the
larger end and of a number whose square is not 0."""

SOON = 5.0
"""Poles are looked for so many seconds at the most."""

ENDINGS = (".csv", ".tsv", ".txt", *parquet_table.ENDINGS)


class Problem(NamedTuple):
    """Rows x [n, in] and y [n], the names of their columns, the box [in, 2] of x, and the function, if it is known."""

    title: str
    x: Array
    y: Array
    inputs: tuple[str, ...]
    target: str
    box: Array
    expression: Expression | None = None


def looks_like_a_file(text: str) -> bool:
    """Return whether an argument of `plunit fit` names a table rather than a function."""
    with suppress(OSError, ValueError):  # a long function is no name of a file
        return ending(text) in ENDINGS or Path(text).is_file()
    return False


def root_mean_square(values: Array) -> float:
    """sqrt(mean(values^2)), without overflow or underflow of the squares.

    >>> root_mean_square(np.array([3e-300, -3e-300])), root_mean_square(np.array([2e300]))
    (3e-300, 2e+300)
    """
    unit = float(np.abs(values).max(initial=0.0))
    return unit * math.sqrt(float(np.mean((values / unit) ** 2))) if unit > 0 else 0.0


def of_table(
    path: Path, target: str, inputs: Sequence[str], say: Callable[[str], object], *, content: bytes | None = None
) -> Problem:
    """Return the problem of learning one column of a table from others; see `read_table`."""
    table = read_table(path, target, inputs, say, content=content)
    box = np.stack([table.x.min(0), table.x.max(0)], axis=1)
    # what a terminal, a page and a picture show: a name may hold anything
    return Problem(shown(path.name), table.x, table.y, tuple(map(shown, table.inputs)), shown(table.target), box)


def of_expression(
    text: str,
    low: float,
    high: float,
    axis: int | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Problem:
    """Return the problem of fitting a function on low <= x <= high, for all variables without a range of their own.

    It is looked at in `axis` points of each axis; by default see `POINTS`.
    """
    try:
        expression = parse(text)
    except ValueError as error:
        raise UserError(f"{text[:200]!r}, {error}") from None
    own = ranges or {}
    names = expression.names
    if not names:
        raise UserError(f"{text!r} has no variable, so it is a constant; name one, as in 'sin(x)'")
    if len(names) > 8:
        raise UserError(f"{text!r} has {len(names)} variables, the limit is 8; leave some out")
    if unknown := [name for name in own if name not in names]:
        raise UserError(f"{unknown[0]!r} has a range and is no variable of {text[:200]!r}; it has {', '.join(names)}")
    for name in names:
        _check_ends(*own.get(name, (low, high)), f" for {name}" if name in own else "")
    box = np.array([own.get(name, (low, high)) for name in names], dtype=np.float64)
    x = _points(box, axis)
    try:
        y = finite_values(expression, *x.T)
        if axis is None and len(names) <= MOST_VARIABLES:  # poles between the points are said before training
            nothing = network([(np.zeros((1, len(names))), np.zeros(1))])
            sup_error(expression, nothing, box, closeness=1, time_limit=SOON)
    except ValueError as error:
        raise UserError(f"{error}; choose other ends") from None
    if (largest := np.abs(y).max()) > HUGE:
        raise UserError(
            f"{text[:200]!r} reaches {largest:.3g}, the networks take values up to {HUGE:g}; divide the function by a "
            "number, or choose other ends"
        )
    return Problem(text, x, y, names, "f", box, expression)


def _check_ends(low: float, high: float, of: str) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"low must be below high, both finite, got {low} and {high}{of}")
    if max(-low, high) > LARGEST:
        raise UserError(f"low and high must be between -{LARGEST:g} and {LARGEST:g}, got {low} and {high}{of}")
    if high - low < (least := SHORTEST * max(abs(low), abs(high), LEAST)):
        raise UserError(
            f"low {low} and high {high} are too close for double precision{of}; take ends that differ by at least "
            f"{least:.3g}"
        )


def of_drawing(points: Any, count: int) -> Problem:
    """Return the problem of fitting a line drawn through points [n, 2], at `count` places; equal x are averaged."""
    try:
        pairs = np.array(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pairs = np.empty(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not (np.abs(pairs) <= 1e30).all():
        raise UserError("a drawing is a list of pairs [x, y] of finite numbers, none beyond 1e30")
    x, place = np.unique(pairs[:, 0], return_inverse=True)
    if len(x) < 2:
        raise UserError(f"a drawing needs two places x or more, got {len(x)}; draw from left to right")
    y = np.bincount(place.ravel(), pairs[:, 1]) / np.bincount(place.ravel())
    even = np.linspace(x[0], x[-1], count)
    return Problem("your drawing", even[:, None], np.interp(even, x, y), ("x",), "y", np.array([[x[0], x[-1]]]))


def _points(box: Array, axis: int | None) -> Array:
    """Return points of the box [n, in]: an even grid for one and two inputs, else random ones."""
    inputs = len(box)
    count = POINTS.get(inputs, 5000)
    if inputs > 2:
        return np.random.default_rng(0).uniform(box[:, 0], box[:, 1], (count, inputs))
    ticks = [np.linspace(low, high, axis or round(count ** (1 / inputs))) for low, high in box]
    return np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, inputs)
