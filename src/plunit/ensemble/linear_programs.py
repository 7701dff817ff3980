"""min over d of max_i |e_i + J_i d| within |d| <= reach: the linear program of a minimax step, by interior points.

With t for the maximum, u = (d, t) and slacks s > 0 the constraints are

    J d - t + s_1 = -e,    -J d - t + s_2 = e,    d + s_3 = reach,    -d + s_4 = reach,

and each has a multiplier z > 0. Mehrotra's predictor and corrector (1992; Nocedal and Wright, chapter 14) lead to
s z = 0. Each step solves the normal equations J^T (z_1 / s_1 + z_2 / s_2) J + diag(...), bordered by t. The iterates
are feasible for both programs. The answer need not be trusted: a step is kept only if the error falls.
"""

from __future__ import annotations

import numpy as np

from plunit.ensemble.arrays import Array

ITERATIONS = 30
"""Maximum number of steps; about 12 are typical."""

_GAP = 0.03
"""The steps end when the optimum is known to this fraction of the decrease since the start."""

_BACK = 0.97  # fraction of the distance to the nearest bound
_LIFT = 1e-14  # fraction of the mean of the diagonal, so that a column of zeros does not divide by 0

Quadruple = tuple[Array, Array, Array, Array]


def chebyshev_step(errors: Array, slopes: Array, reach: Array) -> tuple[Array, float]:
    """Return d [parameters] that nearly minimises max |errors + d slopes| within |d| <= reach, and that maximum.

    Args:
        errors: [n], not all 0.
        slopes: [parameters, n].
        reach: [parameters], above 0.

    >>> d, most = chebyshev_step(np.array([1.0, 3.0]), np.ones((1, 2)), np.array([10.0]))
    >>> print(f"{d[0]:.1f} {most:.1f}")
    -2.0 1.0
    """
    unit = float(np.abs(errors).max())
    program = _Program(errors / unit, slopes * (reach / unit)[:, None])
    for _ in range(ITERATIONS):
        if not program.advance():
            break
    return program.d * reach, float(np.abs(program.now).max()) * unit


class _Program:
    """The program with errors in units of the largest, and d in units of its reach."""

    def __init__(self, errors: Array, slopes: Array) -> None:
        (count, n), self.errors, self.slopes = slopes.shape, errors, slopes
        self.d, self.t = np.zeros(count), 1.1
        half, side = np.full(n, 0.5 / n), np.full(count, 0.05 / count)
        self.z: Quadruple = (half, half, side, side)
        self.now = errors

    def advance(self) -> bool:
        """Take a step; return False at the optimum, or when rounding prevents progress."""
        s = self._slacks()
        gap = sum(float(a @ b) for a, b in zip(s, self.z, strict=True))
        if gap < _GAP * max(1.0 - (self.t - gap), 1e-3):
            return False
        mu = gap / (2 * len(self.now) + 2 * len(self.d))
        normal = _Normal(self.slopes, s, self.z)
        try:
            predicted = normal.step([-a * b for a, b in zip(s, self.z, strict=True)])
            along, through = _length(s, predicted.s), _length(self.z, predicted.z)
            four = list(zip(s, predicted.s, self.z, predicted.z, strict=True))
            after = sum(float((a + along * x) @ (b + through * y)) for a, x, b, y in four)
            centre = mu * (after / gap) ** 3
            chosen = normal.step([centre - a * b - x * y for a, x, b, y in four])
        except np.linalg.LinAlgError:
            return False
        along, through = _BACK * _length(s, chosen.s), _BACK * _length(self.z, chosen.z)
        d, t = self.d + along * chosen.d, self.t + along * chosen.t
        if not (np.isfinite(d).all() and np.isfinite(t)):
            return False
        self.d, self.t = d, t
        self.z = tuple(b + through * y for b, y in zip(self.z, chosen.z, strict=True))  # type: ignore[assignment]
        self.now = self.errors + self.d @ self.slopes
        return True

    def _slacks(self) -> Quadruple:
        return self.t - self.now, self.t + self.now, 1.0 - self.d, 1.0 + self.d


class _Change:
    """Changes of d, t, slacks and multipliers."""

    def __init__(self, d: Array, t: float, s: Quadruple, z: Quadruple) -> None:
        self.d, self.t, self.s, self.z = d, t, s, z


class _Normal:
    """The normal equations at slacks s and multipliers z."""

    def __init__(self, slopes: Array, s: Quadruple, z: Quadruple) -> None:
        self.slopes, self.s, self.z = slopes, s, z
        w = [b / a for a, b in zip(s, z, strict=True)]
        both = slopes * np.sqrt(w[0] + w[1])
        self.gram = both @ both.T  # of an array with itself: BLAS computes half of it
        diagonal = np.diag_indices_from(self.gram)
        self.gram[diagonal] += w[2] + w[3]
        self.gram[diagonal] += _LIFT * self.gram[diagonal].mean()
        self.border = -slopes @ (w[0] - w[1])
        self.corner = float((w[0] + w[1]).sum())

    def step(self, products: list[Array]) -> _Change:
        """Return the step that changes s z by these products, to first order; raise LinAlgError if there is none."""
        y = [a / b for a, b in zip(products, self.s, strict=True)]
        right = -(self.slopes @ (y[0] - y[1]) + y[2] - y[3])
        inner, bordered = np.linalg.solve(self.gram, np.stack([right, self.border], axis=1)).T
        t = (float((y[0] + y[1]).sum()) - float(self.border @ inner)) / (self.corner - float(self.border @ bordered))
        d = inner - t * bordered
        moved = d @ self.slopes
        s = (t - moved, t + moved, -d, d)
        z = tuple((p - b * x) / a for p, b, x, a in zip(products, self.z, s, self.s, strict=True))
        return _Change(d, t, s, z)


def _length(values: Quadruple, changes: Quadruple) -> float:
    """Return the largest step, at most 1, after which all values are still at least 0."""
    most = 1.0
    for value, change in zip(values, changes, strict=True):
        falling = change < 0
        if falling.any():
            most = min(most, float((-value[falling] / change[falling]).min()))
    return most
