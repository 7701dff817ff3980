"""A bound on |fixed(x) - net(x)| for all x in a box, from forms in x and in all rounding errors, on ever smaller boxes.

The loop is not that of `plunit.pieces.proofs.branching`: a box has a bound for each output and no best point. Boxes are
cut where the bound is farthest above the error at a single point, not where the largest value may be.
"""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedNetwork, check_fixed
from plunit.pieces.fixed.zonotopes import Bend, BoxForm, Pair, activation, affine, largest_with_signs, pairs, start
from plunit.pieces.rounding import EPS, TINY

BATCH = 128
CLOSE = 1.05
"""A box is not cut further if its bound is within this factor of the bound at a single point."""

SMALL = 0.75
"""Boxes whose bounds are below this fraction of the largest one are not cut before the largest has fallen."""


def error_bound(fixed: FixedNetwork, *, cuts: int = 4096) -> Floats:
    """Return a proved bound on |fixed(x) - net(x)| for each output, for all x in the box; net in exact arithmetic.

    The difference is a piecewise-linear function of x and of all rounding errors, each of which is at most half a unit
    in size. Boxes are cut in two where the bound is largest, at most `cuts` times.
    """
    check_fixed(fixed)
    layers, boxes = pairs(fixed), _center(fixed)[None]
    bounds, scores, point = _evaluate(fixed, layers, boxes, np.zeros(fixed.net.outputs))
    count = 0
    while count < cuts:
        over = (bounds / np.maximum(point * CLOSE, TINY)).max(axis=1) * (scores.max(axis=1) > 0)
        worst = np.argsort(-over)[: min(BATCH, cuts - count)]
        worst = worst[over[worst] > 1]
        if not len(worst):
            break
        halves = _halve(boxes[worst], scores[worst])
        floor = np.maximum(CLOSE * point, SMALL * bounds.max(axis=0))
        new_bounds, new_scores, new_point = _evaluate(fixed, layers, halves, floor)
        new_bounds = np.minimum(new_bounds, np.concatenate([bounds[worst]] * 2))
        keep = np.ones(len(boxes), dtype=np.bool_)
        keep[worst] = False
        boxes, bounds = np.concatenate([boxes[keep], halves]), np.concatenate([bounds[keep], new_bounds])
        scores, point = np.concatenate([scores[keep], new_scores]), np.maximum(point, new_point)
        count += len(worst)
    return np.asarray(bounds.max(axis=0))


def sum_ranges(fixed: FixedNetwork, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
    """Return the range of weight @ h + bias over the box, [units] each, with h the values of the last layer so far."""
    layers = pairs(fixed)
    boxes = _center(fixed)[None]
    while len(boxes) < BATCH:
        boxes = _halve(boxes, (boxes[..., 1] - boxes[..., 0]) * np.abs(layers[0].weight).sum(axis=0))
    y, d, _ = _forms(fixed, layers, boxes)
    total = (y + d).map(weight, bias)
    return total.low.min(axis=0), total.high.max(axis=0)


def _center(fixed: FixedNetwork) -> Floats:
    return np.asarray(fixed.box - fixed.offset[:, None])


def _halve(boxes: Floats, scores: Floats) -> Floats:
    """Return both halves of each box, cut along the input of the largest score."""
    rows, axis = np.arange(len(boxes)), np.argmax(scores, axis=1)
    middle = boxes[rows, axis].mean(axis=1)
    left, right = boxes.copy(), boxes.copy()
    left[rows, axis, 1], right[rows, axis, 0] = middle, middle
    return np.concatenate([left, right])


def _forms(fixed: FixedNetwork, layers: list[Pair], boxes: Floats) -> tuple[BoxForm, BoxForm, list[Bend]]:
    """Return y and d after all layers, and what is unknown about each activation."""
    half = np.ldexp(0.5, -fixed.fraction) + EPS * np.abs(_center(fixed)).max(axis=1)
    y, d = start(boxes, half)
    bends = []
    for pair in layers:
        y, d = affine(pair, y, d)
        if pair.f is not None:
            y, d, bend = activation(pair, y, d)
            bends.append(bend)
    return y, d, bends


def _evaluate(fixed: FixedNetwork, layers: list[Pair], boxes: Floats, floor: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the bound in each box [boxes, out], a score for a cut of each input [boxes, in], and a bound at points.

    A unit of unknown slope adds to the bound through its coefficients in the output. The score of an input is its share
    of these amounts, in proportion to its share of the range of z.
    """
    _, d, bends = _forms(fixed, layers, boxes)
    inputs, scores = boxes.shape[1], np.zeros(boxes.shape[:2])
    cost, first = np.abs(d.coefficients).sum(axis=1), 2 * inputs
    for bend in bends:
        units = bend.half.shape[1]
        part = bend.loose / np.maximum(bend.loose + bend.other, TINY)
        loose = cost[:, first : first + units] + part * cost[:, first + units : first + 2 * units]
        share = np.abs(bend.z.coefficients[..., :inputs]) / np.maximum(bend.z.radius, TINY)[..., None]
        scores += np.einsum("bu,bui->bi", loose, share)
        first += 2 * units
    rounding = layers[-1].rounding
    bounds = _with_exact_slopes(layers[-1].fixed_weight, d, bends[-1], floor - rounding) if bends else d.largest
    some = np.argsort(-bounds.max(axis=1))[: 1 + len(boxes) // 16]
    middle = boxes[some].mean(axis=2, keepdims=True)
    _, d, _ = _forms(fixed, layers, np.concatenate([middle, middle], axis=2))
    return bounds + rounding, scores, (d.largest + rounding).max(axis=0)


def _with_exact_slopes(weight: Floats, d: BoxForm, bend: Bend, floor: Floats) -> Floats:
    """Return a bound on |d| [boxes, out] of the outputs, the maximum over the slopes s of the last hidden units.

    d is linear in each s = mean +- half, so it is largest where each s is at one of its ends. With these ends as signs,
    the forms half w d_u of the units are added to d before its size is computed, because they partly cancel, symbol by
    symbol.
    """
    units, symbols = bend.half.shape[1], bend.d.coefficients.shape[2]
    found = np.empty((len(d.center), len(weight)))
    for i, row in enumerate(weight):
        unknown = row * bend.half
        base = np.concatenate([d.coefficients[:, i, :symbols], d.center[:, i, None]], axis=1)
        forms = np.concatenate([bend.d.coefficients, bend.d.center[..., None]], axis=2) * unknown[..., None]
        own = np.abs(d.coefficients[:, i, symbols : symbols + units]).sum(axis=1) + d.slack[:, i]
        own += np.abs(row * bend.other).sum(axis=1) + np.abs(unknown * bend.d.slack).sum(axis=1)
        own *= 1 + 1e-12
        found[:, i] = largest_with_signs(base, forms, np.maximum(floor[i] - own, 0.0)) + own
    return np.minimum(found, d.largest)
