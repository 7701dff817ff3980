"""The last digits of a fit: running sums of y lose half of them, but running sums of the residuals do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.segment_steps import Fit, fit_values, knot_step, moved, slopes_of
from plunit.pieces.segment_sums import Sums

STEPS = 12
ENOUGH = 1e-12
"""The steps end when they lower the error by less than this part."""


class Polished(NamedTuple):
    """A fit: knots and values [k + 1], and sum w (y - f)^2 from the data themselves."""

    knots: Floats
    values: Floats
    error: float


def polished(sums: Sums, y: Floats, knots: Floats) -> Polished:
    """Return the fit after Gauss-Newton steps of the knots, with its values at their best."""
    best, left = _settled(sums, y, knots)
    damping = 1e-6
    for _ in range(STEPS if len(knots) > 2 else 0):
        step = knot_step(slopes_of(best.knots, best.values), left, np.array(damping))
        trial, trial_left = _settled(sums, y, moved(best.knots, step))
        gain = best.error - trial.error
        if gain > 0:
            best, left, damping = trial, trial_left, damping / 10
        elif damping > 1e-3:
            break
        else:
            damping = 1e-2
        if 0 <= gain <= ENOUGH * best.error:
            break
    return best


def _settled(sums: Sums, y: Floats, knots: Floats) -> tuple[Polished, Fit]:
    """Return the best values at the knots, corrected until they do not change, and the last correction."""
    values, rest = np.zeros(len(knots)), y
    for _ in range(2):
        values = values + fit_values(sums.with_y(rest), knots).values
        rest = y - np.interp(sums.x, knots, values)
    left = sums.with_y(rest)
    return Polished(knots, values, left.total), fit_values(left, knots)
