"""|fixed(x) - net(x)| <= bound for all x in a box, by forms of x and of all rounding errors on ever smaller boxes."""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedNetwork, check_fixed
from plunit.pieces.fixed.zonotopes import EPS, BoxForm, Pair, activation, affine, pairs, start

TINY = float(np.finfo(np.float64).tiny)
BATCH = 128
CLOSE = 1.05
"""A box is not cut further if its bound is within this factor of the bound at a single point."""


def error_bound(fixed: FixedNetwork, *, cuts: int = 4096) -> Floats:
    """Return a proved bound on |fixed(x) - net(x)| for each output, for all x in the box; net in exact arithmetic.

    The difference is a piecewise-linear function of x and of all rounding errors, each of which may be any number of at
    most half a unit. Boxes are cut in two where the bound is largest, at most `cuts` times.
    """
    check_fixed(fixed)
    layers, boxes = pairs(fixed), _centered(fixed)[None]
    bounds, scores, point = _evaluate(fixed, layers, boxes)
    made = 0
    while made < cuts:
        over = (bounds / np.maximum(point * CLOSE, TINY)).max(axis=1) * (scores.max(axis=1) > 0)
        worst = np.argsort(-over)[: min(BATCH, cuts - made)]
        worst = worst[over[worst] > 1]
        if not len(worst):
            break
        halves = _cut(boxes[worst], scores[worst])
        new_bounds, new_scores, new_point = _evaluate(fixed, layers, halves)
        new_bounds = np.minimum(new_bounds, np.concatenate([bounds[worst]] * 2))
        keep = np.ones(len(boxes), dtype=np.bool_)
        keep[worst] = False
        boxes, bounds = np.concatenate([boxes[keep], halves]), np.concatenate([bounds[keep], new_bounds])
        scores, point = np.concatenate([scores[keep], new_scores]), np.maximum(point, new_point)
        made += len(worst)
    return np.asarray(bounds.max(axis=0))


def sum_ranges(fixed: FixedNetwork, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
    """Return the range of weight @ h + bias over the box, [units] each, for h the values of the last layer so far."""
    layers = pairs(fixed)
    boxes = _centered(fixed)[None]
    while len(boxes) < BATCH:
        boxes = _cut(boxes, (boxes[..., 1] - boxes[..., 0]) * np.abs(layers[0].weight).sum(axis=0))
    y, d, _ = _forms(fixed, layers, boxes)
    total = (y + d).map(weight, bias)
    return total.low.min(axis=0), total.high.max(axis=0)


def _centered(fixed: FixedNetwork) -> Floats:
    return np.asarray(fixed.box - fixed.offset[:, None])


def _cut(boxes: Floats, scores: Floats) -> Floats:
    """Return both halves of each box, cut along the input of the largest score."""
    rows, axis = np.arange(len(boxes)), np.argmax(scores, axis=1)
    middle = boxes[rows, axis].mean(axis=1)
    left, right = boxes.copy(), boxes.copy()
    left[rows, axis, 1], right[rows, axis, 0] = middle, middle
    return np.concatenate([left, right])


def _forms(
    fixed: FixedNetwork, layers: list[Pair], boxes: Floats
) -> tuple[BoxForm, BoxForm, list[tuple[BoxForm, Floats]]]:
    """Return y and d after all layers, and for each activation z and what unknown pieces add to d."""
    half = np.ldexp(0.5, -fixed.fraction) + EPS * np.abs(_centered(fixed)).max(axis=1)
    y, d = start(boxes, half)
    seen = []
    for pair in layers:
        y, d = affine(pair, y, d)
        if pair.f is not None:
            z = y
            y, d, loose = activation(pair, z, d)
            seen.append((z, loose / np.maximum(loose + pair.rounding, TINY)))
    return y, d, seen


def _evaluate(fixed: FixedNetwork, layers: list[Pair], boxes: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the bound in each box [boxes, out], a score for a cut of each input [boxes, in], and a bound at points.

    A unit of unknown piece adds to the bound by its coefficients in the output. The score of an input is its share of
    that, by its part in the range of z.
    """
    _, d, seen = _forms(fixed, layers, boxes)
    bounds = d.largest + layers[-1].rounding
    inputs, scores = boxes.shape[1], np.zeros(boxes.shape[:2])
    cost, first = np.abs(d.coefficients).sum(axis=1), 2 * inputs
    for z, part in seen:
        units = z.center.shape[1]
        loose = cost[:, first : first + units] + part * cost[:, first + units : first + 2 * units]
        share = np.abs(z.coefficients[..., :inputs]) / np.maximum(z.radius, TINY)[..., None]
        scores += np.einsum("bu,bui->bi", loose, share)
        first += 2 * units
    some = np.argsort(-bounds.max(axis=1))[: 1 + len(boxes) // 16]
    middle = boxes[some].mean(axis=2, keepdims=True)
    _, d, _ = _forms(fixed, layers, np.concatenate([middle, middle], axis=2))
    return bounds, scores, (d.largest + layers[-1].rounding).max(axis=0)
