"""Are proofs about a program in integers right? The program is run on every input that it can get.

The inputs are one or two numbers of 8 bits: a part of the grid of a network in fixed point. A judge returns "right", or
"wrong: ..." for a verdict, a witness, a maximum or bounds that the runs contradict, and for "undecided".
"""

from fractions import Fraction

import numpy as np
from random_networks import dense_network, mixture, random_network, scaled_network

from plunit.pieces import Case, Condition, Property, activation, bounds, holds, maximum, minimum, network, quantize
from plunit.pieces.boxes import box_array


def judge_program(seed):
    """Return "right", "refused: ..." or "wrong: ..." for all questions about one program."""
    rng = np.random.default_rng([seed, 11])
    try:
        net = _network(rng, seed)
        box = [tuple(sorted(rng.uniform(-3, 3, 2))) for _ in range(net.inputs)]
        if seed % 3 == 0:
            box = [(-2.0, 2.0)] * net.inputs
        fixed = quantize(net, box, 8 if rng.random() < 0.5 else 16)
    except ValueError as error:
        return f"refused: {error}"
    part, q = _part(rng, fixed)
    y = np.ldexp(fixed.integers(q), -fixed.layers[-1].fraction)
    x = np.clip(fixed.offset + q * fixed.step, *np.transpose(part))
    if not np.array_equal(fixed(x), y):
        return "wrong: the inputs of the judge are not those of the program"
    return _extremes(rng, fixed, part, x, y) or _properties(rng, fixed, part, x, y) or "right"


def _network(rng, seed):
    """Return a network as training leaves it, or an adversarial one: saturating, with ties, of wild scales."""
    inputs, outputs, kind = int(rng.integers(1, 3)), int(rng.integers(1, 4)), seed % 6
    if kind == 0:
        return dense_network(seed, inputs, 16, 16, outputs)
    if kind == 1:
        return dense_network(seed, inputs, 8, outputs, f=activation.hardtanh(), weight=8.0)
    if kind == 2:
        return random_network(seed, inputs, 8, 3, outputs)
    if kind == 3:
        return scaled_network(2 * (seed // 2), inputs, 4, 2)
    if kind == 4:
        rows = rng.integers(-2, 3, (6, inputs)).astype(float)
        last = np.repeat(rng.integers(-1, 2, (1, 6)).astype(float), outputs, axis=0)
        return network([(rows, rng.integers(-2, 3, 6)), activation.hardtanh(-0.25, 0.25), (last, np.arange(outputs))])
    return network(
        [
            (rng.normal(size=(5, inputs)), rng.normal(size=5)),
            mixture(rng, 5),
            (rng.normal(size=(outputs, 5)), np.zeros(outputs)),
        ]
    )


def _part(rng, fixed):
    """Return a box with at most 256 integers a side, its ends on the grid or between, and all integers in it."""
    first, last = fixed.ends
    count = 256 if fixed.net.inputs == 1 else int(rng.integers(2, 257))
    low = rng.integers(first, np.maximum(first, last - count + 1) + 1)
    if rng.random() < 0.3:
        low = first
    high = np.minimum(low + count - 1, last)
    between = rng.uniform(-0.45, 0.45, (2, len(low))) * (rng.random() < 0.5)
    part = np.stack(
        [fixed.offset + (end + more) * fixed.step for end, more in zip((low, high), between, strict=True)], axis=1
    )
    part = np.clip(part, fixed.box[:, :1], fixed.box[:, 1:])
    part.sort(axis=1)
    ends = fixed.to_integers(part[:, 0]), fixed.to_integers(part[:, 1])
    axes = [np.arange(a, b + 1) for a, b in zip(*ends, strict=True)]
    return box_array(fixed.net, part, fixed=True), np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(
        -1, len(axes)
    )


def _extremes(rng, fixed, part, x, y):
    i = int(rng.integers(fixed.net.outputs))
    for find, best in ((maximum, y[:, i].max()), (minimum, y[:, i].min())):
        found = find(fixed, part, output=i)
        at = np.ldexp(fixed.integers(found.q[None]), -fixed.layers[-1].fraction)[0, i]
        if not (found.proved and found.value == found.bound == best == at == fixed(found.x)[i]):
            return f"wrong: {find.__name__}[{i}] is {found}, but {best!r} is reached"
    rows = rng.integers(-2, 3, (1, len(part))).astype(float)
    limits = rows @ x[int(rng.integers(len(x)))]
    inside = _at_most(rows, x, limits)
    found = maximum(fixed, part, output=i, constraints=(rows, limits))
    if found.value != y[inside, i].max() or not found.proved:
        return f"wrong: the maximum[{i}] with constraints is {found}, but {y[inside, i].max()!r} is reached"
    all_of = bounds(fixed, part)
    if not (np.array_equal(all_of.low, y.min(axis=0)) and np.array_equal(all_of.high, y.max(axis=0))):
        return f"wrong: bounds are {all_of}"
    return None


def _properties(rng, fixed, part, x, y):
    """Compare verdicts on conjunctions and disjunctions, open and closed, with limits that are reached."""
    outputs = fixed.net.outputs
    for _ in range(4):
        conditions = []
        for _ in range(int(rng.integers(1, 3))):
            rows = rng.choice([-1.0, 0.0, 1.0, 0.1], (int(rng.integers(1, 4)), outputs))
            values = y @ rows.T
            tie = rng.random() < 0.6
            limits = values.min(axis=0) if tie else np.quantile(values, rng.uniform(-0.0, 0.3), axis=0)
            limits = limits - (0.0 if rng.random() < 0.7 else 1e-3) * np.ptp(values, axis=0)
            if rng.random() < 0.2:
                limits = np.nextafter(limits, rng.choice([-np.inf, np.inf]))
            conditions.append(Condition(rows, limits, bool(rng.random() < 0.5)))
        conditions = [Condition(one.rows, one.limits, conditions[0].strict) for one in conditions]
        asked = Property((Case(part, np.zeros((0, len(part))), np.zeros(0), tuple(conditions)),))
        broken = _breaks(conditions, y)
        verdict = holds(fixed, asked)
        if verdict.status != ("refuted" if broken else "proved"):
            return f"wrong: {verdict.status} {conditions}, but {broken} is the truth; {verdict.reason}"
        if broken and not (
            asked.contains(verdict.x, verdict.y)
            and np.array_equal(fixed(verdict.x), verdict.y)
            and np.array_equal(fixed.to_integers(verdict.x), verdict.q)
        ):
            return f"wrong: the witness {verdict} is none"
    return None


def _breaks(conditions, y):
    """Return whether an output meets a condition; rational arithmetic decides what is close."""
    y = np.unique(y, axis=0)
    return any(_at_most(one.rows, y, one.limits, one.strict).any() for one in conditions)


def _at_most(rows, points, limits, strict=False):
    """Return at which points [n, k] rows x <= limits (< if strict), exactly."""
    excess = points @ rows.T - limits
    size = 1e-9 * (np.abs(points) @ np.abs(rows).T + np.abs(limits)) + 1e-290
    found = (excess < -size).all(axis=1)
    for i in np.flatnonzero((excess <= size).all(axis=1) & ~found):
        exact = [_exact(row, points[i], limit) for row, limit in zip(rows, limits, strict=True)]
        found[i] = all(one < 0 or (one == 0 and not strict) for one in exact)
    return found


def _exact(row, x, limit):
    terms = (Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), x.tolist(), strict=True))
    return sum(terms) - Fraction(float(limit))
