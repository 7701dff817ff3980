"""fixed(x) - net(x) as one network of x and of all rounding errors, for an optimiser to bound."""

from __future__ import annotations

import numpy as np

from plunit.pieces.activation import Activation, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedNetwork, check_fixed
from plunit.pieces.fixed.zonotopes import EPS, BoxForm, Pair, activation, affine, pairs, start
from plunit.pieces.functions import Functions
from plunit.pieces.networks import Network
from plunit.pieces.rewriting import beside


def error_network(fixed: FixedNetwork) -> tuple[Network, Floats]:
    """Return the network D and a box with fixed(x) - net(x) = D(x, e) for rounding errors e in that box.

    The inputs of D are x, the errors of rounding x, and those of rounding the values of each layer that rounds, in
    order. Units without knots pass the errors on to the layer that they belong to. Any bound on |D| bounds the error of
    fixed point. The exact max |D| over the box is at least the error and at most `error_bound`.
    """
    check_fixed(fixed)
    layers = pairs(fixed)
    # the errors that enter each layer with its inputs, and those of the outputs
    groups = [fixed.net.inputs, *(len(pair.bias) if pair.rounding else 0 for pair in layers)]
    weights, biases, activations = [], [], []
    for i, pair in enumerate(layers):
        ours, theirs, passed = _rows(pair, i == 0, groups[i], sum(groups[i + 1 :]))
        back = fixed.offset if i == 0 else np.zeros(pair.weight.shape[1])
        own, other = pair.fixed_bias - pair.fixed_weight @ back, pair.bias - pair.weight @ back
        if pair.f is not None and pair.fixed_f is not None:
            weights.append(np.concatenate([ours, theirs, passed]))
            biases.append(np.concatenate([own, other, np.zeros(len(passed))]))
            both = _activation(pair.fixed_f), _activation(pair.f)
            activations.append(beside(*both, identity().spread(len(passed), 1)))
        else:
            weights.append(ours - theirs + (passed if len(passed) else 0.0))
            biases.append(own - other)
    net = Network(tuple(w[None] for w in weights), tuple(b[None] for b in biases), tuple(activations))
    return net, _error_box(fixed, layers)


def _rows(pair: Pair, first: bool, errors: int, rest: int) -> tuple[Floats, Floats, Floats]:
    """Return the weights of the fixed units, of the network's own, and of `rest` errors that are passed on.

    The columns: fixed inputs h, the network's inputs (both are x in the first layer), the errors of h, and the rest.
    """
    units, inputs = pair.weight.shape
    none = np.zeros((units, 0 if first else inputs))
    entering = pair.fixed_weight if errors else np.zeros((units, 0))
    ours = np.concatenate([pair.fixed_weight, none, entering, np.zeros((units, rest))], axis=1)
    theirs = np.concatenate([none, pair.weight, np.zeros((units, errors + rest))], axis=1)
    return ours, theirs, np.eye(ours.shape[1])[ours.shape[1] - rest :]


def _error_box(fixed: FixedNetwork, layers: list[Pair]) -> Floats:
    """Return the sides of x and of all rounding errors, [inputs of D, 2]."""
    reach = np.abs(fixed.box - fixed.offset[:, None]).max(axis=1)
    halves = [np.ldexp(0.5, -fixed.fraction) + EPS * reach]
    halves += [np.full(len(pair.bias), pair.rounding) for pair in layers if pair.rounding]
    half = np.concatenate(halves)
    return np.concatenate([fixed.box, np.stack([-half, half], axis=1)])


def _activation(f: Functions) -> Activation:
    knots, slopes, _ = f.of_units()
    return Activation(knots[None], slopes[None], f(np.zeros(len(f.kinds)))[None])


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
