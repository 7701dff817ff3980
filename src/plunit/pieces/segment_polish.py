"""The last digits: running sums of y lose half of them, but running sums of what a fit leaves of y do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.segment_search import moved, slopes_of
from plunit.pieces.segment_sums import Fit, Sums, fit_values, knot_step

STEPS = 12
ENOUGH = 1e-13
"""The steps end when they lower the error by less than this part."""


class Polished(NamedTuple):
    """A fit: knots and values [k + 1], and sum w (y - f)^2 from the data themselves."""

    knots: Floats
    values: Floats
    error: float


def polished(x: Floats, y: Floats, w: Floats, knots: Floats) -> Polished:
    """Return the fit after Gauss-Newton steps of the knots, with its values at their best; x is sorted."""
    best, left = _settled(x, y, w, knots)
    damping = 1e-6
    for _ in range(STEPS if len(knots) > 2 else 0):
        step = knot_step(best.knots, slopes_of(best.knots, best.values), left, np.array(damping))
        trial, trial_left = _settled(x, y, w, moved(best.knots, step))
        gain = best.error - trial.error
        if gain > 0:
            best, left, damping = trial, trial_left, damping / 10
        else:
            damping = max(damping * 100, 1e-3)
        if 0 <= gain <= ENOUGH * best.error or damping > 1e6:
            break
    return best


def _settled(x: Floats, y: Floats, w: Floats, knots: Floats) -> tuple[Polished, Fit]:
    """Return the best values at the knots, corrected until nothing is left, and the last correction."""
    values = np.zeros(len(knots))
    for _ in range(3):
        rest = y - np.interp(x, knots, values)
        left = fit_values(Sums.of(x, rest, w), knots)
        values = values + left.values
    rest = y - np.interp(x, knots, values)
    left = fit_values(Sums.of(x, rest, w), knots)
    return Polished(knots, values, float(w @ rest**2)), left
