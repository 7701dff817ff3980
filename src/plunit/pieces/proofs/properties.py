"""Domains and properties: where x may be, and which pairs (x, f(x)) must not exist.

A `Domain` is a box with linear constraints. A `Case` is a domain with conditions on the outputs, and a `Property` has
cases: it holds if no x is in any of them. `never` and `always` make common ones; `plunit.pieces.formats.vnnlib` reads
properties from files.

>>> below_two = Property.always([(-1, 1)], rows=[[1.0]], limits=[2.0])
>>> below_two.contains([0.5], [1.9]), below_two.contains([0.5], [2.1])
(False, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.boxes import box_array, box_text, check_size, interval, many
from plunit.pieces.c_programs import Program
from plunit.pieces.networks import Network, check_network
from plunit.pieces.proofs.linear import NEVER, Region
from plunit.pieces.rounding import FLOOR, exact_affine, fractions, roundings

Box = Sequence[Any]
"""A pair (low, high) for each input; low == high fixes an input."""

Constraints = tuple[Any, Any] | None
"""(A, b) for A x <= b."""


HUGE = 1e150
"""The largest size of a constraint's coefficients: products of two do not overflow."""


class Impossible(ValueError):
    """No x in the box meets the constraints."""


@dataclass(frozen=True)
class Comparison:
    """sum of factors times variables <= limit, or < if strict, in exact numbers; factors: pairs (variable, factor)."""

    factors: tuple[tuple[int, Fraction], ...]
    limit: Fraction
    strict: bool

    def words(self, name: str) -> str:
        """Return the comparison as text, of variables of a vector of this name."""
        total = " + ".join(f"{factor} {name}[{i}]" for i, factor in self.factors)
        return f"{total} {'<' if self.strict else '<='} {self.limit}"

    def holds(self, values: Sequence[Fraction]) -> bool:
        """Whether the variables may have these values."""
        total = sum((factor * values[i] for i, factor in self.factors), Fraction(0))
        return total < self.limit if self.strict else total <= self.limit


@dataclass(frozen=True, eq=False)
class Domain:
    """x in box [in, 2] with rows x <= limits; rows [m, in], limits [m]."""

    box: Floats
    rows: Floats
    limits: Floats

    @classmethod
    def of(cls, net: Network, box: Box, constraints: Constraints = None) -> Domain:
        """Return the domain of a box, a pair (low, high) for each input, and of constraints (A, b) for A x <= b."""
        check_network(net)
        sides = box_array(net, box, fixed=True)
        check_size(net, np.abs(sides).max(axis=1))
        return cls(sides, *constraint_rows(constraints, net.inputs))

    def clip(self, x: Floats) -> Floats:
        """Return the points of the box that are nearest to x."""
        return np.clip(x, self.box[:, 0], self.box[:, 1])

    def holds(self, x: Floats, slack: float = 1e-12) -> Bools:
        """Return which of x [n, in] are in the domain; constraints may be exceeded by this fraction of their terms."""
        size = np.abs(x) @ np.abs(self.rows).T + np.abs(self.limits)
        within = (x >= self.box[:, 0]) & (x <= self.box[:, 1])
        return np.asarray(within.all(axis=1) & (x @ self.rows.T <= self.limits + slack * size).all(axis=1))

    def contains(self, x: Floats) -> bool:
        """Whether x [in] is in the domain, in exact arithmetic."""
        inside = bool((self.box[:, 0] <= x).all() and (x <= self.box[:, 1]).all())
        return inside and at_most(self.rows, fractions(x), self.limits)

    def points(self, count: int) -> Floats:
        """Return random points, [n, in], n from 1 to `count`; `Impossible` if no x meets the constraints."""
        rng, (low, high) = np.random.default_rng(0), self.box.T
        found = rng.uniform(low, high, (count, len(low)))
        found = found[self.holds(found)]
        if len(found):
            return found
        centre, radius = self.centre
        spread = radius * (high - low) * rng.uniform(-1, 1, (count, len(low)))
        found = self.clip(centre + spread)
        return found[self.holds(found)] if self.holds(found).any() else centre[None]

    @cached_property
    def centre(self) -> tuple[Floats, float]:
        """A point x and how far it is from all constraints, in widths of the box; `Impossible` if no x exists."""
        region = Region(self.box)
        for row, limit in zip(self.rows, self.limits, strict=True):
            region.add_cut(row, limit)
        radius, x, _ = region.with_margin().maximise(np.append(np.zeros(len(self.box)), 1.0), 0.0)
        if radius == NEVER:
            raise Impossible("no x in the box meets the constraints; use a larger box or fewer constraints")
        # t is in widths of the box that the cuts have shrunk
        widths = (self.box[:, 1] - self.box[:, 0], region.high - region.low)
        left = np.divide(widths[1], widths[0], out=np.ones(len(self.box)), where=widths[0] > 0)
        return self.clip(x[:-1]), float(x[-1] * left.min())


@dataclass(frozen=True, eq=False)
class Condition:
    """rows y <= limits, all of them together; rows [m, out], limits [m]; strict: < instead of <=.

    exact: comparisons that y must meet as well, with numbers that float64 cannot represent. The rows allow every y that
    meets them, so a proof may use only the rows.
    """

    rows: Floats
    limits: Floats
    strict: bool = False
    exact: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        _replace(self, *inequalities("a condition", self.rows, self.limits))

    @property
    def words(self) -> str:
        """The condition in words."""
        sign = "<" if self.strict else "<="
        exact = [one.words("y") for one in self.exact]
        return " and ".join([*inequality_words(self.rows, self.limits, "y", sign), *exact]) or "any output"

    def contains(self, y: list[Fraction]) -> bool:
        """Whether y [out] meets every row, in exact arithmetic."""
        return at_most(self.rows, y, self.limits, strict=self.strict) and all(one.holds(y) for one in self.exact)

    def surely_contains(self, y: Floats, error: Floats) -> bool:
        """Whether every number within the errors of y [out] meets all rows, and there is nothing else to meet."""
        return not self.exact and bool((self._excess(y, error)[1] < 0).all())

    def surely_lacks(self, y: Floats, error: Floats) -> bool:
        """Whether no number within the errors of y [out] meets all rows."""
        return bool((self._excess(y, error)[0] > 0).any())

    def _excess(self, y: Floats, error: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest rows y - limits, rounded outward; NaN if numbers are too large."""
        size = np.abs(self.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            middle = self.rows @ y - self.limits
            spread = size @ error + roundings(len(y) + 8) * (size @ np.abs(y) + np.abs(self.limits)) + FLOOR
            return middle - spread, middle + spread


@dataclass(frozen=True, eq=False)
class Case(Domain):
    """x in box [in, 2] with rows x <= limits, and y = f(x) meets at least one of the conditions.

    exact: comparisons that x must meet as well, such as open bounds. Box and rows allow every x that meets them, so a
    proof may use only the box and the rows.
    """

    conditions: tuple[Condition, ...]
    exact: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        box = numbers("a box", self.box)
        if box.ndim != 2 or box.shape[1] != 2 or not len(box):
            raise ValueError(f"a box must have a pair (low, high) for each input, got shape {box.shape}")
        if not (np.isfinite(box).all() and (box[:, 0] <= box[:, 1]).all()):
            for i, ends in enumerate(box):
                interval(ends, "a box", f" for input {i}", fixed=True)
        _check_parts("a case", self.conditions, Condition)
        object.__setattr__(self, "box", box)
        object.__setattr__(self, "conditions", tuple(self.conditions))
        _replace(self, *constraint_rows((self.rows, self.limits), len(box)))
        if not self.conditions or len({condition.rows.shape[1] for condition in self.conditions}) != 1:
            outputs = [condition.rows.shape[1] for condition in self.conditions]
            raise ValueError(
                f"a case needs conditions on the same outputs, got {outputs} outputs; add one, or pad rows"
            )

    @property
    def words(self) -> str:
        """The inputs in words."""
        where = box_text(self.box)
        exact = [one.words("x") for one in self.exact]
        return " and ".join([where, *inequality_words(self.rows, self.limits, "x", "<="), *exact])

    def contains(self, x: Floats) -> bool:
        """Whether x [in] is in the domain, in exact arithmetic."""
        exact = fractions(x) if self.exact else []
        return super().contains(x) and all(one.holds(exact) for one in self.exact)


@dataclass(frozen=True, eq=False)
class Property:
    """No x may be in any of the cases: the negation of what a VNN-LIB file says."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        _check_parts("a property", self.cases, Case)
        object.__setattr__(self, "cases", tuple(self.cases))
        sizes = {(len(case.box), case.conditions[0].rows.shape[1]) for case in self.cases}
        if len(sizes) != 1:
            raise ValueError(f"a property needs cases of the same numbers (inputs, outputs), got {sorted(sizes)}")

    @classmethod
    def never(cls, box: Any, conditions: Sequence[tuple[Any, Any]], constraints: Constraints = None) -> Property:
        """Return the property that no x in the box has rows f(x) <= limits for any condition (rows, limits)."""
        try:
            pairs = [(rows, limits) for rows, limits in conditions]
        except (TypeError, ValueError):
            raise ValueError(
                f"conditions must be a list of pairs (rows, limits) for rows y <= limits, got {conditions!r}"
            ) from None
        return cls((_case(box, tuple(Condition(*pair) for pair in pairs), constraints),))

    @classmethod
    def always(cls, box: Any, rows: Any, limits: Any, constraints: Constraints = None) -> Property:
        """Return the property that every x in the box has rows f(x) <= limits."""
        rows, limits = inequalities("what always holds", rows, limits)
        broken = [Condition(-rows[i : i + 1], -limits[i : i + 1], strict=True) for i in range(len(rows))]
        return cls((_case(box, tuple(broken), constraints),))

    @property
    def claim(self) -> str:
        """The property in words, a line for each case.

        >>> print(Property.always([(0, 1)] * 2, rows=[[1.0, -2.0]], limits=[3.0]).claim)
        no x in [0.0, 1.0] x [0.0, 1.0] has -1.0 y[0] + 2.0 y[1] < -3.0
        """
        return "\n".join(
            f"no x in {case.words} has {' or '.join(one.words for one in case.conditions)}" for case in self.cases
        )

    @property
    def inputs(self) -> int:
        """The dimension of x."""
        return len(self.cases[0].box)

    @property
    def outputs(self) -> int:
        """The dimension of y."""
        return int(self.cases[0].conditions[0].rows.shape[1])

    def contains(self, x: Any, y: Any) -> bool:
        """Whether the pair (x [in], y [out]) is in a case: with y = f(x) it is a counterexample."""
        x, y = numbers("x", x), numbers("y", y)
        if (x.shape, y.shape) != ((self.inputs,), (self.outputs,)):
            raise ValueError(f"x must have shape ({self.inputs},) and y ({self.outputs},), got {x.shape} and {y.shape}")
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(f"x and y must be finite, got {x.tolist()} and {y.tolist()}")
        exact = fractions(y)
        return any(case.contains(x) and any(one.contains(exact) for one in case.conditions) for case in self.cases)

    def check_fits(self, net: Network | Program) -> None:
        """Raise ValueError unless the network has as many inputs and outputs as the property."""
        if (net.inputs, net.outputs) != (self.inputs, self.outputs):
            raise ValueError(
                f"the property has {many(self.inputs, 'input')} and {many(self.outputs, 'output')}, the network has "
                f"{net.inputs} and {net.outputs}; check that the two belong together"
            )


def _case(box: Any, conditions: tuple[Condition, ...], constraints: Constraints) -> Case:
    sides = numbers("a box", box)
    return Case(sides, *constraint_rows(constraints, len(sides) if sides.ndim else 0), conditions)


def _check_parts(what: str, parts: Any, kind: type) -> None:
    if not (isinstance(parts, Iterable) and all(isinstance(part, kind) for part in parts)):
        raise TypeError(f"{what} needs a sequence of {kind.__name__}, got {parts!r:.200}")


def _replace(thing: Condition | Case, rows: Floats, limits: Floats) -> None:
    object.__setattr__(thing, "rows", rows)
    object.__setattr__(thing, "limits", limits)


def constraint_rows(constraints: Constraints, inputs: int) -> tuple[Floats, Floats]:
    """Check constraints (A, b) on this number of inputs and return A [m, in] and b [m]."""
    if constraints is None:
        return np.zeros((0, inputs)), np.zeros(0)
    try:
        rows, limits = constraints
    except (TypeError, ValueError):
        raise ValueError(f"constraints must be a pair (A, b) for A x <= b, got {constraints!r}") from None
    rows, limits = inequalities("constraints", rows, limits, "input")
    if rows.shape[1] != inputs:
        raise ValueError(f"constraints A x <= b on {inputs} inputs need A [m, {inputs}], got {rows.shape}")
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    if (wrong := np.flatnonzero((np.maximum(sizes, np.abs(limits)) > HUGE) | ((sizes > 0) & (sizes < 1 / HUGE)))).size:
        raise ValueError(
            f"the coefficients of a constraint must be between {1 / HUGE:g} and {HUGE:g} in size, got row {wrong[0]}: "
            f"{rows[wrong[0]].tolist()} <= {limits[wrong[0]]}; multiply the row by a power of 10"
        )
    return rows, limits


def inequalities(what: str, rows: Any, limits: Any, of: str = "output") -> tuple[Floats, Floats]:
    """Return rows [m, n] and limits [m] as arrays; ValueError if they are not finite or do not fit."""
    rows, limits = numbers(what, rows), numbers(what, limits)
    if rows.ndim != 2 or limits.shape != rows.shape[:1]:
        raise ValueError(
            f"{what}: rows must have a row for each limit and a column for each {of}, as in rows=[[1.0]], "
            f"limits=[3.8]; got shapes {rows.shape} and {limits.shape}"
        )
    if not (np.isfinite(rows).all() and np.isfinite(limits).all()):
        raise ValueError(f"{what} must be finite, got NaN or inf; leave out rows without a limit")
    return rows, limits


def inequality_words(rows: Floats, limits: Floats, name: str, sign: str) -> list[str]:
    """Return rows times a vector of this name <= limits, as text."""
    lines = []
    for row, limit in zip(rows.tolist(), limits.tolist(), strict=True):
        terms = [f"{factor!r} {name}[{i}]" for i, factor in enumerate(row) if factor] or ["0.0"]
        lines.append(f"{' + '.join(terms)} {sign} {limit!r}")
    return lines


def numbers(what: str, values: Any) -> Floats:
    """Return values as a new array; ValueError if they are not numbers."""
    try:
        if np.iscomplexobj(values):
            raise ValueError
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} must be an array of numbers, got {values!r:.200}") from None


def at_most(rows: Floats, values: list[Fraction], limits: Floats, *, strict: bool = False) -> bool:
    """Whether rows @ values <= limits (or < if strict), in exact arithmetic."""
    return all(excess < 0 or (excess == 0 and not strict) for excess in exact_affine(rows, -limits, values))
