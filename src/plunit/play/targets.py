"""The settings of a page: networks, and the function that they learn, given as text, a drawing, or a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from plunit.base.errors import UserError
from plunit.base.fields import construct, match_name
from plunit.base.ranges import DOMAIN, Range
from plunit.ensemble import ACTIVATIONS
from plunit.ensemble.arrays import Array, Scale
from plunit.expressions import Expression
from plunit.fitting.problems import Problem, of_drawing, of_expression, of_numbers

MEMBERS = Range(1, 4096)
MOST_POINTS = 1_000_000  # of a drawing or a table, at most
AXIS = (100, 20)  # points of each axis, for functions of one and of two variables
TURN = 2 * math.pi
End = Annotated[float, DOMAIN]

PAPER_FUNCTIONS = {
    "sine": (("sin(x)",), -TURN, TURN, 50),
    "parametric": (("(cos(t) - cos(2 * t)) ** 3", "(sin(2 * t) - sin(t)) ** 3"), 0.0, TURN, 50),
    "saddle": (("x ** 2 - y ** 2",), -3.0, 3.0, 21),
}
"""The functions of the paper: each output as text, the ends of every variable, and the points of each axis."""


@dataclass(frozen=True)
class Settings:
    """The target, as `task_of` expects it, and the networks: `depth` hidden layers of `width` units.

    Network i of each activation starts with the generator of (seed, i). `method` is Adam's, with lr, or Levenberg and
    Marquardt's. With `paused`, training waits for a command.
    """

    target: Any
    activations: tuple[str, ...] = ("tanh", "relu", "plu")
    depth: Annotated[int, Range(1, 6)] = 2
    width: Annotated[int, Range(1, 32)] = 3
    alpha: Annotated[float, Range(0, 1)] = 0.1
    c: Annotated[float, Range(0.01, 10)] = 1.0
    lr: Annotated[float, Range(1e-5, 1)] = 0.01
    networks: Annotated[int, MEMBERS] = 1000
    seed: Annotated[int, Range(0, 2**31 - 1)] = 0
    method: Literal["adam", "second order"] = "adam"
    paused: bool = False


def settings_of(given: Any) -> Settings:
    """Return the validated settings of a page."""
    found = construct("settings", Settings, given)
    names = [match_name("activation", name, ACTIVATIONS) for name in found.activations]
    if len(set(names)) < len(names):
        raise UserError(f"each activation can be named once, got {', '.join(names)}")
    if "plu_learned" in names and not 1e-6 <= found.alpha <= 1 - 1e-6:
        raise UserError(f"learned PLU needs 0 < alpha < 1 at the start, got {found.alpha:g}; use 0.1")
    return found


@dataclass(frozen=True)
class LearningTask:
    """Rows x [n, in] and y [n, out] in the units of the user; the networks learn scales[1](y) from scales[0](x)."""

    title: str
    x: Array
    y: Array
    target: str
    box: Array
    scales: Sequence[Scale]
    function: Expression | None
    notes: Sequence[str]

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self.x.shape[1])

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.y.shape[1])

    def widths(self, settings: Settings) -> tuple[int, ...]:
        """Return the units from input to output."""
        return (self.inputs, *[settings.width] * settings.depth, self.outputs)

    @cached_property
    def scaled(self) -> tuple[Array, Array]:
        """The scaled rows in float32, from which the networks learn."""
        return self.scales[0](self.x).astype(np.float32), self.scales[1](self.y).astype(np.float32)


def task_of(target: Any) -> LearningTask:
    """Return the task that a page describes.

    {"kind": "expression", "text": "sin(x)", "low": -6, "high": 6}, {"kind": "paper", "name": "sine"},
    {"kind": "drawn", "points": [[x, y], ...]} or {"kind": "csv", "text": "x,y...", "name": "file.csv"}.
    """
    if not isinstance(target, dict):
        raise UserError("a target must be an object such as {'kind': 'expression', 'text': 'sin(x)'}")
    fields = dict(target)
    kind = match_name("kind of target", fields.pop("kind", None), _KINDS)
    return construct(f"a target of kind {kind}", _KINDS[kind], fields)


def _of_text(text: Annotated[str, Range(0, 10_000)], low: End = -6.0, high: End = 6.0) -> LearningTask:
    names = of_expression(text, low, high, 2).inputs  # at the corners: how many variables?
    if len(names) > 2:
        raise UserError(f"use one or two variables; {text[:60]!r} has {', '.join(names[:9])}")
    found = of_expression(text, low, high, AXIS[len(names) - 1])
    return _task([found], found.notes)


def _of_paper(name: Any) -> LearningTask:
    texts, low, high, axis = PAPER_FUNCTIONS[match_name("function of the paper", name, PAPER_FUNCTIONS)]
    return _task([of_expression(written, low, high, axis) for written in texts], scaled=False)


def _of_drawing(points: Any) -> LearningTask:
    if not isinstance(points, list) or len(points) > MOST_POINTS:
        raise UserError(f"a drawing is a list of at most {MOST_POINTS:,} points")
    return _task([of_drawing(points, AXIS[0])])


def _of_table(
    text: Annotated[str, Range(0, 10_000_000)], name: Annotated[str, Range(0, 200)] = "table.csv"
) -> LearningTask:
    if text.startswith("PAR1"):
        raise UserError("the table is a Parquet file; save it as CSV")
    notes: list[str] = []
    data = text.encode(errors="surrogatepass")
    found = of_numbers(Path(name), notes.append, content=data)
    if len(found.y) > MOST_POINTS:
        raise UserError(f"the table has {len(found.y):,} rows; the limit is {MOST_POINTS:,}")
    if len(found.inputs) > 2:
        raise UserError(f"the table has {len(found.inputs)} inputs that vary; keep one or two before the last column")
    order = np.random.default_rng(0).permutation(len(found.y))  # batches want rows in random order
    return _task([found._replace(title=name, x=found.x[order], y=found.y[order])], notes)


_KINDS: dict[str, Callable[..., LearningTask]] = {
    "expression": _of_text,
    "paper": _of_paper,
    "drawn": _of_drawing,
    "csv": _of_table,
}


def _task(outputs: list[Problem], notes: Sequence[str] = (), *, scaled: bool = True) -> LearningTask:
    """Return the task; scaled, the box is [-2 pi, 2 pi] and y as wide as a sine, as the paper's settings want it."""
    first, y = outputs[0], np.stack([one.y for one in outputs], axis=1)
    if 0 < (least := np.ptp(y, axis=0).min()) < 1e-30:
        raise UserError(f"the target varies by {least:.3g}, less than 1e-30; scale it, or choose other ends")
    if (largest := np.abs(y).max()) > 1e30:
        raise UserError(f"the target reaches {largest:.3g}, more than 1e30; scale it, or choose other ends")
    scales = [Scale(np.zeros(count), np.ones(count)) for count in (len(first.box), len(outputs))]
    if scaled:
        (low, high), spread = first.box.T, Scale.of(y, np.ones(len(y)))
        scales = [Scale((low + high) / 2, (high - low) / (2 * TURN)), Scale(spread.mean, spread.spread * math.sqrt(2))]
    title = ", ".join(one.title for one in outputs)
    return LearningTask(title, first.x, y, first.target, first.box, scales, first.expression, notes)
