"""What is to be proved of a network: which pairs (x, f(x)) there must not be.

A `Property` has cases, and a case is a box of inputs, linear constraints on them, and conditions on the outputs. The
property holds if no x is in any case. `never` and `always` make the usual ones; `plunit.pieces.formats.vnnlib` reads
them from files.

>>> below_two = Property.always([(-1, 1)], rows=[[1.0]], limits=[2.0])
>>> below_two.contains([0.5], [1.9]), below_two.contains([0.5], [2.1])
(False, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.boxes import interval, many
from plunit.pieces.networks import Network
from plunit.pieces.proofs.domain import Comparison, Constraints, Domain, at_most, constraint_rows, inequalities, numbers
from plunit.pieces.rounding import FLOOR, fractions, roundings


@dataclass(frozen=True, eq=False)
class Condition:
    """rows y <= limits, all of them together; rows [m, out], limits [m]; strict: < instead of <=.

    exact: comparisons that y must meet as well, in numbers that float64 does not have. The rows allow every y that
    meets them, so that a proof may use the rows only.
    """

    rows: Floats
    limits: Floats
    strict: bool = False
    exact: tuple[Comparison, ...] = ()

    def __post_init__(self) -> None:
        _replace(self, *inequalities("a condition", self.rows, self.limits))

    def contains(self, y: list[Fraction]) -> bool:
        """Whether y [out] meets every row, in exact arithmetic."""
        return at_most(self.rows, y, self.limits, strict=self.strict) and all(one.holds(y) for one in self.exact)

    def surely_contains(self, y: Floats, error: Floats) -> bool:
        """Whether every number within the errors of y [out] meets all rows, and nothing else is to be met."""
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

    exact: comparisons that x must meet as well, such as open bounds. Box and rows allow every x that meets them, so
    that a proof may use the box and the rows only.
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

    def contains(self, x: Floats) -> bool:
        """Whether x [in] is in the domain, in exact arithmetic."""
        exact = fractions(x) if self.exact else []
        return super().contains(x) and all(one.holds(exact) for one in self.exact)


@dataclass(frozen=True, eq=False)
class Property:
    """No x may be in any of the cases: what VNN-LIB files say, negated."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        _check_parts("a property", self.cases, Case)
        object.__setattr__(self, "cases", tuple(self.cases))
        sizes = {(len(case.box), case.conditions[0].rows.shape[1]) for case in self.cases}
        if len(sizes) != 1:
            raise ValueError(f"a property needs cases of the same numbers (inputs, outputs), got {sorted(sizes)}")

    @classmethod
    def never(cls, box: Any, conditions: Sequence[tuple[Any, Any]], constraints: Constraints = None) -> Property:
        """No x in the box has rows f(x) <= limits, for any of the conditions (rows, limits)."""
        try:
            pairs = [(rows, limits) for rows, limits in conditions]
        except (TypeError, ValueError):
            raise ValueError(
                f"conditions are a list of pairs (rows, limits) for rows y <= limits, got {conditions!r}"
            ) from None
        return cls((_case(box, tuple(Condition(*pair) for pair in pairs), constraints),))

    @classmethod
    def always(cls, box: Any, rows: Any, limits: Any, constraints: Constraints = None) -> Property:
        """Every x in the box has rows f(x) <= limits."""
        rows, limits = inequalities("what always holds", rows, limits)
        broken = [Condition(-rows[i : i + 1], -limits[i : i + 1], strict=True) for i in range(len(rows))]
        return cls((_case(box, tuple(broken), constraints),))

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

    def check_fits(self, net: Network) -> None:
        """Raise ValueError if the property is of another number of inputs or outputs than the network has."""
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
        raise TypeError(f"{what} is made of a sequence of {kind.__name__}, got {parts!r:.200}")


def _replace(thing: Condition | Case, rows: Floats, limits: Floats) -> None:
    object.__setattr__(thing, "rows", rows)
    object.__setattr__(thing, "limits", limits)
