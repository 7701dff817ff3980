"""What the networks learn: a function given as text, one of the paper's, a drawing, or a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.data.held import HeldText
from plunit.ensemble.arrays import Array
from plunit.ensemble.units import Scale
from plunit.errors import UserError
from plunit.expressions import Expression
from plunit.fitting.problems import Problem, of_drawing, of_expression, of_table, without_options
from plunit.play.settings import checked_fields, number, text
from plunit.ranges import DOMAIN

POINTS = 1_000_000  # of a drawing or a table, at most
AXIS = (100, 20)  # points of each axis, for functions of one and of two variables
TURN = 2 * math.pi

PAPER = {
    "sine": (("sin(x)",), -TURN, TURN, 50),
    "parametric": (("(cos(t) - cos(2 * t)) ** 3", "(sin(2 * t) - sin(t)) ** 3"), 0.0, TURN, 50),
    "saddle": (("x ** 2 - y ** 2",), -3.0, 3.0, 21),
}
"""The functions of the paper: each output as text, the ends of every variable, and the points of each axis."""

FIELDS = {"expression": ("text", "low", "high"), "paper": ("name",), "drawn": ("points",), "csv": ("text", "name")}


@dataclass(frozen=True)
class Task:
    """Rows x [n, in] and y [n, out] in the units of the user; the networks learn scales[1](y) from scales[0](x)."""

    title: str
    x: Array
    y: Array
    names: tuple[str, ...]
    target: str
    box: Array
    scales: tuple[Scale, Scale]
    functions: tuple[Expression, ...]
    notes: tuple[str, ...]

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
        """The rows as the networks see them, in float32."""
        return self.scales[0](self.x).astype(np.float32), self.scales[1](self.y).astype(np.float32)


def task_of(target: dict[str, Any]) -> Task:
    """Return the task that a page describes, or raise UserError.

    {"kind": "expression", "text": "sin(x)", "low": -6, "high": 6}, {"kind": "paper", "name": "sine"},
    {"kind": "drawn", "points": [[x, y], ...]} or {"kind": "csv", "text": "x,y...", "name": "file.csv"}.
    """
    try:
        return _found(target)
    except UserError as error:
        raise UserError(without_options(str(error))) from None


def _found(target: dict[str, Any]) -> Task:
    kind = str(target.get("kind"))[:40]
    if kind not in FIELDS:
        raise UserError(f"unknown kind of target {kind!r}; there are {', '.join(FIELDS)}")
    checked_fields(target, f"targets of kind {kind}", ("kind", *FIELDS[kind]))
    notes: list[str] = []
    if kind == "expression":
        written = text("the function", target.get("text"), 10_000)
        low, high = (number(name, target.get(name, end), DOMAIN) for name, end in (("low", -6.0), ("high", 6.0)))
        return _task([_function(written, low, high, None)], notes)
    if kind == "paper":
        name = text("the name", target.get("name"), 100)
        if name not in PAPER:
            raise UserError(f"the paper has no function {name!r}; there are {', '.join(PAPER)}")
        texts, low, high, axis = PAPER[name]
        return _task([_function(written, low, high, axis) for written in texts], notes, scaled=False)
    if kind == "drawn":
        points = target.get("points")
        if not isinstance(points, list) or len(points) > POINTS:
            raise UserError(f"a drawing is a list of at most {POINTS:,} points")
        return _task([of_drawing(points, AXIS[0])], notes)
    return _table(text("the table", target.get("text"), 10_000_000), target.get("name", "table.csv"), notes)


def _function(written: str, low: float, high: float, axis: int | None) -> Problem:
    if not low < high:
        raise UserError(f"low must be below high, got {low:g} and {high:g}")
    found = of_expression(written, low, high, 2)  # at the corners: how many variables?
    if len(found.inputs) > 2:
        raise UserError(f"a function here has one variable or two; {written[:60]!r} has {', '.join(found.inputs[:9])}")
    return of_expression(written, low, high, axis or AXIS[len(found.inputs) - 1])


def _table(content: str, name: Any, notes: list[str]) -> Task:
    if content.startswith("PAR1"):
        raise UserError("the table is Parquet; save it as CSV")
    # the name is for the title only: its ending must not choose another reader
    problem = of_table(HeldText.of("table.csv", content, text("the name", name, 200)), "-1", (), notes.append)
    if len(problem.y) > POINTS:
        raise UserError(f"the table has {len(problem.y):,} rows, the limit is {POINTS:,}")
    if len(problem.inputs) > 2:
        raise UserError(f"the table has {len(problem.inputs)} inputs that vary; keep one or two before the last column")
    task = _task([problem], notes, title=name)
    order = np.random.default_rng(0).permutation(len(task.y))  # batches want rows in random order
    return Task(**{**vars(task), "x": task.x[order], "y": task.y[order]})


def _task(outputs: list[Problem], notes: list[str], *, scaled: bool = True, title: str = "") -> Task:
    """Return the task; scaled, the box is [-2 pi, 2 pi] and y as wide as a sine, as the paper's settings want it."""
    first = outputs[0]
    y = np.stack([one.y for one in outputs], axis=1)
    if 0 < (least := np.ptp(y, axis=0)).min() < 1e-30:
        raise UserError(f"the target varies by {least.min():.3g}, the limit is 1e-30; scale it, or choose other ends")
    if np.abs(y).max() > 1e30:
        raise UserError(f"the target reaches {np.abs(y).max():.3g}, the limit is 1e30; scale it, or choose other ends")
    (low, high), ones = first.box.T, np.ones
    scales = Scale(0 * low, ones(len(low))), Scale(0 * y[0], ones(len(y[0])))
    if scaled:
        spread = Scale.of(y, ones(len(y)))
        scales = Scale((low + high) / 2, (high - low) / (2 * TURN)), Scale(spread.mean, spread.spread * math.sqrt(2))
    functions = tuple(one.expression for one in outputs if one.expression)
    title = title or ", ".join(one.title for one in outputs)
    return Task(title, first.x, y, first.inputs, first.target, first.box, scales, functions, tuple(notes))
