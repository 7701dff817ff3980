"""The gradient of a network as a form: how steep it can be, and in which direction.

Backwards through the network, a = s v. s is the slope of the piece that the unit is on, and v in [l, u] is the gradient
by the unit's output. With p_j = 1 on piece j and 0 elsewhere, v is split into v = sum_j v_j with
l p_j <= v_j <= u p_j, so that a = sum_j s_j v_j is linear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.networks import Network
from plunit.pieces.proofs.encoding import Encoding, Range, Unit, interval_of
from plunit.pieces.proofs.program import Form, Program


def gradient_form(net: Network, encoding: Encoding) -> tuple[Form, Range]:
    """Return the gradient of the first output, [in], as a form, and its range."""
    program = encoding.program
    low = high = net.weights[-1][0, 0]
    back = Form(np.zeros((len(low), program.count)), low)
    for weight, units in zip(net.weights[-2::-1], encoding.units[::-1], strict=True):
        front = _through(program, units, back, low, high)
        slopes = np.array([[unit.slopes.min(), unit.slopes.max()] for unit in units]).T
        ends = np.stack([slopes[0] * low, slopes[0] * high, slopes[1] * low, slopes[1] * high])
        low, high = interval_of(weight[0].T, np.zeros(weight.shape[2]), ends.min(axis=0), ends.max(axis=0))
        back = front.map(weight[0].T, np.zeros(weight.shape[2]))
    return back, (low, high)


def _through(program: Program, units: Sequence[Unit], back: Form, low: Floats, high: Floats) -> Form:
    """Return s v for the units of a layer."""
    fresh = [
        program.columns(len(unit.slopes)) if len(unit.slopes) > 1 and low[i] < high[i] else None
        for i, unit in enumerate(units)
    ]
    back, front = program.padded(back), program.form(len(units))
    for i, (unit, place) in enumerate(zip(units, fresh, strict=True)):
        if len(unit.slopes) == 1:
            front.matrix[i], front.constant[i] = unit.slopes[0] * back.matrix[i], unit.slopes[0] * back.constant[i]
            continue
        on = _indicators(program, unit)
        parts = Form(low[i] * on.matrix, low[i] * on.constant)
        if place is not None:
            share = program.form(len(unit.slopes))
            share.matrix[:, place] = np.eye(len(unit.slopes))
            program.limit(Form(on.matrix - share.matrix, on.constant), 0.0, np.inf)
            parts.matrix[:, place] += (high[i] - low[i]) * np.eye(len(unit.slopes))
            whole = parts.map(np.ones((1, len(unit.slopes))), np.zeros(1))
            rest = Form(whole.matrix - back.matrix[i], whole.constant - back.constant[i])
            program.limit(rest, 0.0, 0.0)
        front.matrix[i], front.constant[i] = unit.slopes @ parts.matrix, unit.slopes @ parts.constant
    return front


def _indicators(program: Program, unit: Unit) -> Form:
    """Return p_0 = 1 - b_1, p_j = b_j - b_{j+1}, ..., p_m = b_m."""
    found = program.form(len(unit.slopes))
    found.constant[0] = 1.0
    binaries = np.eye(len(unit.slopes) - 1)
    found.matrix[1:, unit.binaries] += binaries
    found.matrix[:-1, unit.binaries] -= binaries
    return found


def exclude(encoding: Encoding, pattern: Sequence[Ints]) -> None:
    """Exclude a pattern; one with a piece that its unit cannot be on in this encoding is excluded already."""
    row = encoding.program.form(1)
    for units, pieces in zip(encoding.units, pattern, strict=True):
        for unit, piece in zip(units, pieces - np.array([unit.first for unit in units]), strict=True):
            if not 0 <= piece < len(unit.slopes):
                return
            on = np.arange(len(unit.slopes) - 1) < piece
            row.matrix[0, unit.binaries] = np.where(on, -1.0, 1.0)
            row.constant[0] += piece
    encoding.program.limit(row, 1.0, np.inf)
