"""Where the knots of a least-squares fit go: a start by dynamic programming, then steps, then exchanges of knots."""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.segment_sums import Sums, fit_values, knot_step

PLACES = 160
"""So many places for knots at the start."""

CLOSEST = 1e-7
"""Knots stay at least that far apart, as a part of the interval."""

STEPS = 24
EXCHANGES = 6


def places(x: Floats) -> Floats:
    """Return about PLACES places for knots: quantiles of the distinct x, or all of them and places between."""
    if len(x) <= PLACES:
        between = max(1, PLACES // len(x))
        return np.interp(np.arange((len(x) - 1) * between + 1) / between, np.arange(len(x)), x)
    return x[np.round(np.linspace(0, len(x) - 1, PLACES)).astype(int)]


def starts(sums: Sums, where: Floats, most: int) -> list[Floats]:
    """Return knots for 1, ..., most segments, by dynamic programming over the places.

    The least error of a fit up to the place p with the value v there is kept as one parabola, a v^2 - 2 b v + c, for
    each p and each number of segments: that of the best place for the knot before. Other knots before could be better
    for other v; so this is a start and no more.
    """
    first, last = np.triu_indices(len(where), 1)
    ends = sums.up_to(where)
    ends[:, 0], ends[:, -1] = 0.0, sums.running[:, -1]
    found = ends[:, last] - ends[:, first]
    table = np.full((6, len(where), len(where)), np.nan)
    table[:5, first, last] = sums.between(where[first], where[last], found)
    table[5, first, last] = found[5]
    parabola = np.stack([np.full(len(where), np.inf)] * 3)
    parabola[:, 0] = sums.ridge, 0.0, 0.0
    before: list[Ints] = []
    for _ in range(most):
        parabola, origin = _lengthen(parabola, table, sums.ridge)
        before.append(origin)
    return [where[_trace(before[: count + 1])] for count in range(most)]


def _lengthen(parabola: Floats, table: Floats, ridge: float) -> tuple[Floats, Ints]:
    """Return the parabolas with one segment more, and the place before for each place."""
    a, b, c = parabola[:, :, None]
    pivot, slope = a + table[0] + ridge, b + table[3]
    with np.errstate(invalid="ignore"):
        new_a = table[2] - table[1] ** 2 / pivot + ridge
        new_b = table[4] - table[1] * slope / pivot
        new_c = c + table[5] - slope**2 / pivot
        least = new_c - new_b**2 / new_a
    least = np.where(np.isfinite(least) & np.isfinite(c), least, np.inf)
    origin = np.argmin(least, axis=0)
    at = np.arange(len(origin))
    chosen = np.stack([new_a[origin, at], new_b[origin, at], new_c[origin, at]])
    return np.where(np.isfinite(least[origin, at]), chosen, np.inf), origin


def _trace(before: list[Ints]) -> Ints:
    """Return the places of the knots that end at the last place."""
    at = [len(before[0]) - 1]
    for origin in reversed(before):
        at.append(int(origin[at[-1]]))
    return np.array(at[::-1])


def refined(sums: Sums, knots: Floats, steps: int = STEPS) -> tuple[Floats, Floats]:
    """Return better knots [sets, k + 1] and their squared errors [sets], by damped Gauss-Newton steps."""
    fit = fit_values(sums, knots)
    if knots.shape[-1] < 3:
        return knots, fit.error
    damping = np.full(len(knots), 1e-2)
    for _ in range(steps):
        trial = moved(knots, knot_step(knots, slopes_of(knots, fit.values), fit, damping))
        new = fit_values(sums, trial)
        better = new.error < fit.error
        damping = np.clip(np.where(better, damping / 4, damping * 6), 1e-9, 1e9)
        if not better.any() and damping.min() > 1e4:
            break
        knots = np.where(better[:, None], trial, knots)
        fit = fit_values(sums, knots) if not better.all() else new
    return knots, fit.error


def slopes_of(knots: Floats, values: Floats) -> Floats:
    """Return the slopes [..., k] of curves with these values at their knots."""
    return np.asarray(np.diff(values, axis=-1) / np.diff(knots, axis=-1))


def moved(knots: Floats, step: Floats) -> Floats:
    """Return knots with the inner ones moved, each by less than half the way to its neighbours."""
    room = np.maximum(0.45 * (np.diff(knots, axis=-1) - CLOSEST), 0.0)
    result = knots.copy()
    result[..., 1:-1] += np.clip(np.nan_to_num(step), -room[..., :-1], room[..., 1:])
    return result


def exchanged(sums: Sums, knots: Floats, where: Floats, rounds: int = EXCHANGES) -> tuple[Floats, float]:
    """Return better knots [k + 1] and their squared error: take a knot out, put it in elsewhere, while that helps."""
    best, errors = refined(sums, knots[None])
    knots, error = best[0], float(errors[0])
    for _ in range(rounds if len(knots) > 2 else 0):
        trials = inserted(sums, removed(sums, knots), where)
        found, errors = refined(sums, trials, 12)
        lowest = int(np.argmin(errors))
        if not errors[lowest] < error * (1 - 1e-9):
            break
        knots, error = found[lowest], float(errors[lowest])
    return knots, error


def removed(sums: Sums, knots: Floats, keep: int = 4) -> Floats:
    """Return the best sets of knots with one inner knot less, [keep, k]."""
    inner = np.arange(1, len(knots) - 1)
    sets = np.stack([np.delete(knots, j) for j in inner])
    return sets[np.argsort(fit_values(sums, sets).error, kind="stable")[:keep]]


def inserted(sums: Sums, sets: Floats, where: Floats, keep: int = 6) -> Floats:
    """Return the best sets with one knot more, [keep, k + 1], of sets of knots [m, k] and places for the new one."""
    grid = where[1:-1]
    trials = np.concatenate([np.broadcast_to(sets[:, None], (len(sets), len(grid), sets.shape[1])),
                             np.broadcast_to(grid[:, None], (len(sets), len(grid), 1))], axis=-1)
    trials = np.sort(trials.reshape(-1, trials.shape[-1]), axis=-1)
    trials = trials[(np.diff(trials, axis=-1) > 4 * CLOSEST).all(axis=-1)]
    return trials[np.argsort(fit_values(sums, trials).error, kind="stable")[:keep]]
