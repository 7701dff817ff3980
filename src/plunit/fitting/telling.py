"""What was found, in words."""

from __future__ import annotations

import math

import numpy as np

from plunit.fitting.problems import Problem, root_mean_square
from plunit.fitting.solving import SAMPLES, FitSettings, Found
from plunit.pieces import Curve

WINNERS = 5
ROWS = 40


def told(problem: Problem, settings: FitSettings, found: Found) -> list[str]:
    """Return lines that say what was found."""
    model = found.model
    hidden = " x ".join(map(str, model.widths_[1:-1])) or "no"
    what = f"{len(problem.y):,} rows" if problem.expression is None else f"{len(problem.y):,} points"
    names = ", ".join(problem.inputs[:8]) + (", ..." if len(problem.inputs) > 8 else "")
    head = f"{problem.target} = f({names})" if problem.expression is None else problem.title
    averaged = model.theta_.shape[1]
    kind = "the best network" if averaged == 1 else f"the mean of the {averaged} best networks"
    lines = [
        f"{head}, {what}: {kind} of {settings.starts} starts, {hidden} {settings.activation} units",
        *_errors(problem, found),
        *_pieces(problem, settings, found),
        f"the best starts: {_winners(found)}",
    ]
    if found.stopped:
        lines.append("stopped before the end: this is the best so far")
    return lines


def _errors(problem: Problem, found: Found) -> list[str]:
    size = root_mean_square(problem.y - np.mean(problem.y))
    lines = [f"root mean square error {found.rmse:.4g}, {_share(found.rmse, size)} of the standard deviation"]
    if found.tests:
        mean, half = found.interval()
        n = len(found.tests)
        few = "one split" if n == 1 else f"{n} splits, too few for an interval"
        about = f" +- {half:.2g} (95 % interval of the mean over {n} splits)" if n > 2 else f" ({few})"
        lines.append(f"on rows not seen in training {mean:.4g}{about}, {_share(mean, size)} of the standard deviation")
    if largest := found.largest:
        lines.append(f"largest error {error_text(largest.value, largest.bound, hasattr(found.model, 'curve_'))}")
    return lines


def error_text(value: float, bound: float | None, of_curve: bool) -> str:
    """Return an error with how it is known."""
    if bound is not None:
        return f"{value:.4g}, at most {bound:.4g} (bounded by interval arithmetic)"
    if of_curve:
        return f"{value:.4g} at the points looked at; no bound (the function jumps, or intervals do not show one)"
    return f"{value:.4g} at {SAMPLES:,} random points; no bound (it needs one input and a piecewise-linear network)"


def _pieces(problem: Problem, settings: FitSettings, found: Found) -> list[str]:
    if found.reduced is None:
        return [f"the network has {found.curve.pieces} straight pieces", found.missing] if found.missing else []
    few, curve = found.reduced, found.curve
    if few.of == "f":
        wanted = "" if settings.pieces is None else f" with {settings.pieces} pieces at most"
        near = f"the closest curve{wanted}" if settings.pieces is not None else "the fewest pieces within the error"
        told_error = f"largest error {error_text(few.error, few.bound, True)}"
    elif few.of == "the network":
        near, told_error = "the fewest pieces within the error", f"{few.error:.4g} from the network at most"
    else:
        near = "the best curve through the rows" if settings.pieces is None else "the best such curve through the rows"
        told_error = f"root mean square error {few.error:.4g}"
    return [f"the network has {curve.pieces} straight pieces", f"{near}: {few.curve.pieces} pieces, {told_error}"]


def _winners(found: Found) -> str:
    table = found.model.candidates_
    losses = [f"no. {start} ({loss:.3g})" for start, loss in zip(table["start"], table["validation_loss"], strict=True)]
    middle = float(np.median(table["validation_loss"]))
    unit = "mean square error on rows of validation, in units of the variance"
    return f"{', '.join(losses[:WINNERS])}; the median of all {middle:.3g} ({unit})"


def _share(error: float, size: float) -> str:
    return f"{100 * error / size:.3g} %" if size > 0 and math.isfinite(error) else "no share"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value):.6g}"


def formula(curve: Curve, name: str) -> list[tuple[str, str, str]]:
    """Return the pieces of a curve as rows (from, to, line), at most 40."""
    knots, values, slopes = (part.tolist() for part in (curve.knots, curve.values[:, 0], curve.slopes[:, 0]))
    rows = [
        (f"{a:.6g}", f"{b:.6g}", f"{y:.6g} {_signed(slope)} ({name} {_signed(-a)})")
        for a, b, y, slope in zip(knots, knots[1:], values, slopes, strict=False)
    ]
    return rows[:ROWS]
