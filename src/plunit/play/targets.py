"""What the networks learn: a function given as text, one of the paper's, a drawing, or a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from plunit.data.held import HeldText
from plunit.data.tables import read_table
from plunit.ensemble.arrays import Array
from plunit.ensemble.units import Scale
from plunit.errors import UserError
from plunit.expressions import Expression, finite_values, parse
from plunit.play.settings import fields_of, number, text

POINTS = 1_000_000
"""The most points of a drawing or rows of a table."""

DOTS = 1000
"""At most so many rows are shown."""

GRID = {1: 100, 2: 20}
"""Points of each axis at which a function of one or of two variables is looked at."""

PAPER: dict[str, tuple[tuple[str, ...], float, float, int]] = {
    "sine": (("sin(x)",), -2 * math.pi, 2 * math.pi, 50),
    "parametric": (("(cos(t) - cos(2 * t)) ** 3", "(sin(2 * t) - sin(t)) ** 3"), 0.0, 2 * math.pi, 50),
    "saddle": (("x ** 2 - y ** 2",), -3.0, 3.0, 21),
}
"""The functions of the paper: each output as text, the ends of every variable, and points of each axis."""


@dataclass(frozen=True)
class Task:
    """Points x [n, in] and y [n, out] in the units of the user, and how they are scaled for training.

    Attributes:
        title: what the page calls it.
        x: inputs.
        y: targets.
        names: of the inputs.
        target: the name of the output.
        box: the ends of each input [in, 2].
        scales: of x and of y: the networks learn scales[1](y) from scales[0](x).
        expressions: the function, if it is known.
        notes: lines for the page.
    """

    title: str
    x: Array
    y: Array
    names: tuple[str, ...]
    target: str
    box: Array
    scales: tuple[Scale, Scale]
    expressions: tuple[Expression, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self.x.shape[1])

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.y.shape[1])

    @cached_property
    def scaled(self) -> tuple[Array, Array]:
        """Return x and y as the networks see them, in float32."""
        x, y = (scale(part).astype(np.float32) for scale, part in zip(self.scales, (self.x, self.y), strict=True))
        return x, y


def task_of(target: dict[str, Any]) -> Task:
    """Return the task that a page describes, or raise UserError.

    {"kind": "expression", "text": "sin(x)", "low": -6, "high": 6}, {"kind": "paper", "name": "sine"},
    {"kind": "drawn", "points": [[x, y], ...]} or {"kind": "csv", "text": "x,y...", "name": "file.csv"}.
    """
    kind = target.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UserError(f"unknown kind of target {str(kind)[:40]!r}; there are {', '.join(_KINDS)}")
    names, make = _KINDS[kind]
    fields_of(target, f"targets of kind {kind}", ("kind", *names))
    return make(target)


def grid(box: Array, count: int) -> Array:
    """Return an even grid of the box [count ** in, in]; the last input changes fastest."""
    axes = [np.linspace(low, high, count) for low, high in box]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))


def _like_the_sine(x: Array, y: Array, box: Array) -> tuple[Scale, Scale]:
    """Map the box to [-2 pi, 2 pi] and y to the spread of a sine: what the paper's settings were found for."""
    low, high = box.T
    spread = Scale.of(y, np.ones(len(y)))
    return Scale((low + high) / 2, (high - low) / (4 * math.pi)), Scale(spread.mean, spread.spread * math.sqrt(2))


def _expression(target: dict[str, Any]) -> Task:
    written = text("the function", target.get("text"), 10_000)
    low, high = (number(name, target.get(name, end), -1e6, 1e6) for name, end in (("low", -6.0), ("high", 6.0)))
    return _function(written, (_parsed(written),), low, high, None)


def _paper(target: dict[str, Any]) -> Task:
    name = text("the name", target.get("name"), 100)
    if name not in PAPER:
        raise UserError(f"the paper has no function {name[:40]!r}; there are {', '.join(PAPER)}")
    texts, low, high, count = PAPER[name]
    return _function(", ".join(texts), tuple(map(_parsed, texts)), low, high, count)


def _parsed(written: str) -> Expression:
    try:
        found = parse(written)
    except ValueError as error:
        raise UserError(f"{written[:200]!r}, {error}") from None
    if len(found.names) not in (1, 2):
        counted = f"{len(found.names)} variables ({', '.join(found.names[:8])})" if found.names else "no variable"
        raise UserError(f"a function here has one variable or two, as in sin(x) or x * y; this one has {counted}")
    return found


def _function(title: str, functions: tuple[Expression, ...], low: float, high: float, count: int | None) -> Task:
    """Return a function on a grid; the paper's are not scaled, and `count` is theirs."""
    if not low < high:
        raise UserError(f"low must be below high, got {low:g} and {high:g}")
    names = functions[0].names
    box = np.tile([low, high], (len(names), 1))
    x = grid(box, count or GRID[len(names)])
    try:
        y = np.stack([finite_values(f, *x.T) for f in functions], axis=1)
    except ValueError as error:
        raise UserError(str(error)) from None
    if np.abs(y).max() > 1e30:
        raise UserError(f"{title[:60]!r} reaches {np.abs(y).max():.3g}; choose ends at which it is smaller")
    plain = Scale(np.zeros(len(names)), np.ones(len(names))), Scale(np.zeros(len(functions)), np.ones(len(functions)))
    return Task(title, x, y, names, "f", box, plain if count else _like_the_sine(x, y, box), functions)


def _drawn(target: dict[str, Any]) -> Task:
    given = target.get("points")
    if not isinstance(given, list) or len(given) > POINTS:
        raise UserError(f"a drawing is a list of at most {POINTS:,} points")
    try:
        points = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        points = np.empty(0)
    if points.ndim != 2 or points.shape[1] != 2 or not (np.abs(points) <= 1e30).all():
        raise UserError("a drawing is a list of pairs [x, y] of finite numbers")
    x, place = np.unique(points[:, 0], return_inverse=True)
    if len(x) < 2:
        raise UserError(f"a drawing needs two places x or more, got {len(x)}; draw from left to right")
    y = np.bincount(place.ravel(), points[:, 1]) / np.bincount(place.ravel())
    even = np.linspace(x[0], x[-1], GRID[1])
    box = np.array([[x[0], x[-1]]])
    rows = even[:, None], np.interp(even, x, y)[:, None]
    return Task("drawing", *rows, ("x",), "y", box, _like_the_sine(*rows, box))


def _csv(target: dict[str, Any]) -> Task:
    written = text("the table", target.get("text"), 10_000_000)
    name = text("the name", target.get("name", "table.csv"), 1000)
    if written.startswith("PAR1"):
        raise UserError("the table is Parquet; save it as CSV")
    notes: list[str] = []
    # the name is for messages; its ending must not choose another reader
    table = read_table(HeldText.of("table.csv", written), "-1", (), notes.append)
    if len(table.y) > POINTS:
        raise UserError(f"the table has {len(table.y):,} rows, the limit is {POINTS:,}")
    if table.x.shape[1] > 2:
        raise UserError(f"the table has {table.x.shape[1]} inputs that vary; keep one or two columns before the last")
    box = np.stack([table.x.min(0), table.x.max(0)], axis=1)
    order = np.random.default_rng(0).permutation(len(table.y))  # batches want rows in random order
    rows = table.x[order], table.y[order, None]
    return Task(name[:100], *rows, table.inputs, table.target, box, _like_the_sine(*rows, box), notes=tuple(notes))


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], Task]]] = {
    "expression": (("text", "low", "high"), _expression),
    "paper": (("name",), _paper),
    "drawn": (("points",), _drawn),
    "csv": (("text", "name"), _csv),
}
