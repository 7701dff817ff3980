"""The lookup table that could replace a network: the fewest nodes with the same largest error, and its bytes.

The nodes are equally spaced on each axis, their number may differ between axes, and interpolation is linear in all of
them. Interpolation along one axis does not increase errors. So the error of the table is at most the sum of the errors
of its axes, which gives a first grid; a search among its neighbours finds a smaller one. The largest error is measured,
not proved: a denser measurement could add a few nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.expressions import Expression
from plunit.pieces import Curve, FixedNetwork, Network
from plunit.pieces.formats.c_header import table_bytes

MOST_INPUTS = 4
"""Maximum number of inputs of a table."""

MOST_NODES = 2**24
"""Maximum number of nodes of a table."""

VALUE_BYTES = {"int16": 2, "float": 4, "double": 8}
"""The bytes of a value."""

CODE = {
    "int16": (58, 186, 204, 210),
    "float": (1408, 1588, 1588, 1596),
    "double": (2252, 2464, 2452, 2464),
}
"""Bytes of the code that interpolates in one, two, three and four inputs, including its software floating point.

These and the following numbers are for a Cortex-M0, which has no floating point, by Clang 20 with -Os;
`python -m benchmarks.lookup` measures them again.
"""

NETWORK_CODE = {"int16": 306, "int8": 306, "float": 1300, "double": 2228}
"""Bytes of the code of a network with two hidden layers: the largest of four shapes from 2-8-8-1 to 5-16-16-1."""

CURVE_CODE = 2092
"""Bytes of the code of a curve in double."""

WIDE_CODE = 72
"""Bytes of code that 64-bit sums add, if a fixed-point layer needs them."""

_INTERPOLATION = ("linear", "bilinear", "trilinear", "linear")

_HALF, _SIXTH = (0.0, 0.5), (0.0, 0.19, 0.35, 0.5, 0.65, 0.81)
"""Points along each side of a cell, as fractions, at which errors are measured. The search in large grids uses only
those where a parabola has its largest error."""

_LOOK, _CLOSE = 200_000, 3_000_000
"""Maximum number of values of the function for one measurement, in the search and at its end."""

_ROUNDS = 3
"""The number of times the search tries all axes."""

_LONGER, _PATIENCE = 12, 60_000_000
"""The number of lengths of an axis that the end of the search tries at once, and the number of measured errors after
which it gives up: next to a jump, more nodes do not help."""


@dataclass(frozen=True)
class LookupTable:
    """A grid of nodes, with its error and size.

    Attributes:
        nodes: the number of nodes on each axis.
        kind: "int16", "float" or "double", the type of the values.
        error: the largest error measured.
        points: the number of points at which it was measured.
    """

    nodes: tuple[int, ...]
    kind: str
    error: float
    points: int

    @property
    def size(self) -> int:
        """The bytes of the values."""
        return math.prod(self.nodes) * VALUE_BYTES[self.kind]

    @property
    def code(self) -> int:
        """The bytes of the code, measured for a Cortex-M0."""
        return CODE[self.kind][len(self.nodes) - 1]


def find_table(f: Expression, box: Array, error: float, kind: str) -> LookupTable | None:
    """Return the smallest table found whose largest error is at most `error`, or None.

    None means that a table would have too many nodes, that its values are rounded by more than the error, or that the
    search gave up, as it does where the function jumps.

    Args:
        f: the function.
        box: the ends of each input [inputs, 2].
        error: the largest error allowed.
        kind: the type of the values; int16 rounds them to 65,535 steps of the function's range.

    >>> from plunit.expressions import parse
    >>> find_table(parse("x * y"), np.array([[0.0, 1.0], [0.0, 2.0]]), 0.01, "float").nodes
    (2, 2)
    >>> find_table(parse("x**2"), np.array([[-1.0, 1.0]]), 1.01 * 0.2**2 / 4, "float").nodes
    (11,)
    """
    step = _value_range(f, box) / 65534 if kind == "int16" else 0.0
    if step / 2 >= error:
        return None

    def fits(nodes: tuple[int, ...]) -> bool:
        is_small = math.prod(nodes) * len(_SIXTH) ** len(box) <= _LOOK
        return _measure(f, box, nodes, step, _SIXTH if is_small else _HALF, _LOOK)[0] <= error

    nodes = tuple(_along_axis(f, box, axis, error / len(box)) for axis in range(len(box)))
    if not (nodes := _scale(nodes, fits)):
        return None
    nodes = _improve(nodes, fits)
    patience = _PATIENCE
    while math.prod(nodes) <= MOST_NODES:
        lengths = [np.unique(np.linspace(n, n + n // 4 + 3, min(_LONGER, n // 4 + 4)).round()) for n in nodes]
        longer = {(*nodes[:at], int(n), *nodes[at + 1 :]) for at, more in enumerate(lengths) for n in more}
        for grid in sorted(longer, key=math.prod):  # measuring at more points may find a larger error
            found, points = _measure(f, box, grid, step, _SIXTH, _CLOSE)
            if found <= error:
                return LookupTable(grid, kind, found, points)
            patience -= points
            if patience < 0:
                return None
        nodes = tuple(n + n // 4 + 1 for n in nodes)
    return None


def _value_range(f: Expression, box: Array) -> float:
    """Return the largest difference between values at random points and corners."""
    rng, (low, high) = np.random.default_rng(0), box.T
    x = rng.uniform(low, high, (20_000, len(box)))
    y = f(*np.concatenate([x, np.array(list(itertools.product(*box.tolist())))]).T)
    return float(y.max() - y.min())


def _measure(
    f: Expression, box: Array, nodes: tuple[int, ...], step: float, places: tuple[float, ...], most: int
) -> tuple[float, int]:
    """Return the largest error in cells of a table, at these places along each side, and the number of points.

    All cells are measured, or random ones if that takes more than `most` values. The values are rounded to multiples
    of `step`.
    """
    axes, low = len(nodes), box[:, 0]
    width = (box[:, 1] - low) / (np.array(nodes) - 1)
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=axes)))
    inner = np.array(list(itertools.product(places, repeat=axes)))
    weight = np.where(corners == 1, inner[:, None], 1 - inner[:, None]).prod(axis=2)  # [points, corners]
    cells = math.prod(n - 1 for n in nodes)
    count = min(cells, max(1, most // (len(corners) + len(inner))))
    at = np.arange(cells) if count == cells else np.random.default_rng(0).integers(0, cells, count)
    cell = np.stack(np.unravel_index(at, [n - 1 for n in nodes]), axis=1).astype(np.float64)
    values, wanted = (f(*(low + (cell[:, None] + part) * width).reshape(-1, axes).T) for part in (corners, inner))
    values = np.rint(values / step) * step if step > 0 else values
    away = values.reshape(count, -1) @ weight.T - wanted.reshape(count, -1)
    return float(np.abs(away).max()), away.size


def _along_axis(f: Expression, box: Array, axis: int, error: float) -> int:
    """Return the number of nodes that interpolation along one axis needs, on random lines parallel to it."""
    rng, (low, high) = np.random.default_rng(axis), box.T
    lines = rng.uniform(low, high, (48, len(box)))

    def fits(nodes: int) -> bool:
        places = np.add.outer(np.arange(nodes - 1), _SIXTH).ravel()
        x = np.repeat(lines[:, None], len(places) + 1, axis=1)
        x[..., axis] = low[axis] + np.append(places, nodes - 1) / (nodes - 1) * (high[axis] - low[axis])
        y = f(*x.reshape(-1, len(box)).T).reshape(len(lines), -1)
        ends, inner = y[:, :: len(_SIXTH)], y[:, :-1].reshape(len(lines), nodes - 1, len(_SIXTH))
        between = ends[:, :-1, None] + np.diff(ends)[..., None] * np.array(_SIXTH)
        return float(np.abs(between - inner).max()) <= error

    return _least(fits, 2, 4096)


def _least(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number from `low` to `high` that fits, or `high`; if a number fits, so do larger ones."""
    reach = low
    while reach < high and not fits(reach):
        low, reach = reach + 1, min(high, 2 * reach)
    while low < reach:
        middle = (low + reach) // 2
        low, reach = (low, middle) if fits(middle) else (middle + 1, reach)
    return reach


def _scale(nodes: tuple[int, ...], fits: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Return the smallest grid with about these proportions that fits, or () if it would have too many nodes."""

    def grid(percent: int) -> tuple[int, ...]:
        return tuple(max(2, 1 + round((n - 1) * percent / 100)) for n in nodes)

    most = 100
    while not fits(grid(most)):
        most = round(1.5 * most)
        if math.prod(grid(most)) > MOST_NODES:
            return ()
    return grid(_least(lambda percent: fits(grid(percent)), 1, most))


def _improve(nodes: tuple[int, ...], fits: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Return a grid with fewer nodes that fits: fewer on one axis, and perhaps more on another.

    Errors do not fall steadily with the number of nodes (a node on a kink helps), so several reductions are tried.
    """
    axes = range(len(nodes))
    for _ in range(_ROUNDS):
        before = nodes
        for fewer, more in itertools.product(axes, axes):
            base = [n + (at == more != fewer) * max(1, n // 10) for at, n in enumerate(nodes)]
            for part in (0.3, 0.45, 0.6, 0.75, 0.85, 0.93, 0.97, 1.0):
                count = max(2, min(base[fewer] - 1, round(part * base[fewer])))
                smaller = tuple(count if at == fewer else n for at, n in enumerate(base))
                if math.prod(smaller) >= math.prod(nodes):
                    break
                if fits(smaller):
                    nodes = smaller
                    break
        if nodes == before:
            break
    return nodes


def describe_table(f: Expression, box: Array, error: float, function: Curve | Network | FixedNetwork) -> str:
    """Return a line that compares a network or curve within `error` of f with a table of the same error.

    Fixed-point networks are compared with a table of int16 values, other functions with a table of doubles.
    """
    kind = "int16" if isinstance(function, FixedNetwork) else "double"
    name = f"lookup table with {_INTERPOLATION[len(box) - 1]} interpolation of {kind} values"
    found = find_table(f, box, error, kind)
    if found is None:
        return f"{name}: none with up to {MOST_NODES:,} nodes was found to have an error of at most {error:.4g}"
    own, tables = "curve" if isinstance(function, Curve) else "network", table_bytes(function)
    code = CURVE_CODE if isinstance(function, Curve) else network_code(function)
    smaller = "the table" if found.size + found.code <= tables + code else f"the {own}"
    return (
        f"{name}: {' x '.join(map(str, found.nodes))} nodes for the same error (measured at {found.points:,} points), "
        f"{found.size:,} bytes and {found.code:,} of code; this {own}: {tables:,} bytes of tables and {code:,} of "
        f"code. {smaller.capitalize()} is smaller"
    )


def network_code(function: Network | FixedNetwork) -> int:
    """Return the bytes of the code of a network in fixed point or in double."""
    if isinstance(function, Network):
        return NETWORK_CODE["double"]
    return NETWORK_CODE[f"int{function.bits}"] + WIDE_CODE * any(layer.wide for layer in function.layers)
