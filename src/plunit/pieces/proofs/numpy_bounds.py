"""The step of the branch and bound in NumPy, one node at a time: the reference for csrc/prove.cpp, and its fallback.

Units and layers lie between the linear functions of `relaxation`. The forms of split units are cuts in x, and so is
that of a goal, which must reach its floor. A goal has several forms: further ones use the edges over the values that
the units have where the bound so far is largest (a cutting-plane method).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.proofs.linear import NEVER, Region, over
from plunit.pieces.proofs.relaxation import Lines, substitute, terms_of
from plunit.pieces.rounding import FLOOR, UNIT, roundings

if TYPE_CHECKING:
    from plunit.pieces.proofs.bounding import Answer, Nodes, Query

ROUNDS = 4
"""The maximum number of further forms of a goal, which touch where the last linear program had its maximum."""

BINS = 64
"""The number of bins into which the range of a unit is divided."""

ENOUGH = 0.95
"""Another round follows if the last one left at most this fraction of the bound."""

MOST_COLUMNS = 256
"""The maximum number of columns of a zonotope whose longest vector is bounded by their products."""


@dataclass(eq=False)
class _Node:
    query: Query
    region: Region
    low: Floats
    high: Floats
    first: list[int] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    terms: list[Floats] = field(default_factory=list)
    shapes: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def error(self) -> float:
        """The relative error of all operations of a form."""
        return roundings(4 * sum(self.query.net.widths) + 64) * 1.0001


def bound_in_numpy(query: Query, nodes: Nodes, found: Answer, seconds: float) -> bool:
    """Do the work of `bounding.bound_nodes`; return whether all nodes are done. The clock is read between layers."""
    end = time.monotonic() + seconds
    for n in range(len(nodes)):
        done = _step(query, nodes, found, n, end, pinned=False)
        if done and found.branch[n, 0] < 0 and (nodes.bounds[n] >= 0).any():
            done = _step(query, nodes, found, n, end, pinned=True)
        if not done:
            return False
    return True


def _step(query: Query, nodes: Nodes, found: Answer, n: int, end: float, *, pinned: bool) -> bool:
    node = _Node(query, Region(nodes.box[n]), nodes.ranges[n, :, 0].copy(), nodes.ranges[n, :, 1].copy())
    node.shapes = np.zeros((len(node.low), query.net.inputs))
    found.x[n], found.branch[n] = nodes.box[n].sum(axis=1) / 2, -1
    for row, limit in zip(query.domain.rows, query.domain.limits, strict=True):
        node.region.add_cut(row, limit)
    for form, least in zip(nodes.cuts[n], nodes.floors[n], strict=True):
        if not np.isnan(form[-1]):
            node.region.add_cut(-form[:-1], over(form[-1], least))
    for k in range(len(query.net.hidden)):
        if time.monotonic() > end:
            return False
        if not node.region.empty:
            _bound_layer(node, k, _limits(node, nodes, n, k, pinned=pinned))
    if not node.region.empty:
        node.terms.append(_terms(node, len(query.net.hidden)))
        nodes.box[n] = np.stack([node.region.low, node.region.high], axis=1)
        nodes.ranges[n] = np.stack([node.low, node.high], axis=1)
        scores = _bound_gradient(node, nodes, found, n) if query.gradient else _bound_goals(node, nodes, found, n)
    if node.region.empty:
        nodes.bounds[n] = NEVER
    else:
        found.branch[n] = _choose(node, scores)
    return True


def _limits(node: _Node, nodes: Nodes, n: int, k: int, *, pinned: bool) -> list[tuple[int, float, float]]:
    """Return what is known about the units of layer k as (unit, sign, value), for sign z >= sign value."""
    start = sum(node.query.net.widths[1 : k + 1])
    stop = start + node.query.net.widths[k + 1]
    if pinned:  # all units are on one piece, whose ends cut the region
        knots, low, high = node.query.net.tables.knots[start:stop], node.low[start:stop], node.high[start:stop]
        ends = np.pad(knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        on = (knots <= low[:, None]).sum(axis=1)  # not by the middle, which may round to a knot
        known = [
            (start + i, ends[i, on[i]], ends[i, on[i] + 1])
            for i in np.flatnonzero(ends[range(len(on)), on + 1] >= high).tolist()
        ]
    else:
        splits = zip(nodes.split_unit[n], nodes.split_low[n], nodes.split_high[n], strict=True)
        known = [split for split in splits if start <= split[0] < stop]
    both = [((unit, 1.0, low), (unit, -1.0, high)) for unit, low, high in known]
    return [limit for pair in both for limit in pair if np.isfinite(limit[2])]


def _bound_layer(node: _Node, k: int, limits: list[tuple[int, float, float]]) -> None:
    net, region = node.query.net, node.region
    start, count = sum(net.widths[1 : k + 1]), net.widths[k + 1]
    node.first.append(start)
    node.terms.append(_terms(node, k))
    for unit, sign, value in limits:
        if sign > 0:
            node.low[unit] = max(node.low[unit], value)
        else:
            node.high[unit] = min(node.high[unit], value)
        region.empty |= bool(node.low[unit] > node.high[unit])
    if limits and not region.empty:
        units, signs, values = (np.array(column) for column in zip(*limits, strict=True))
        for form, constant, least in zip(*_unit_forms(node, k, units - start, signs), signs * values, strict=True):
            region.add_cut(-form, over(constant, least))
        region.shrink_all()
    knots = node.query.net.tables.knots[start : start + count]
    low, high = node.low[start : start + count], node.high[start : start + count]
    crossing = ((knots > low[:, None]) & (knots < high[:, None])).any(axis=1)
    units = np.flatnonzero(crossing | ~np.isfinite(low) | ~np.isfinite(high))
    if region.empty:
        return
    forms, constants = _unit_forms(node, k, np.repeat(units, 2), np.tile([1.0, -1.0], len(units)))
    for r, (form, constant) in enumerate(zip(forms, constants, strict=True)):
        unit, end, sign = units[r // 2], (high, low)[r % 2], (1.0, -1.0)[r % 2]
        if end is high:
            node.shapes[start + unit] = form
        end[unit] = sign * min(sign * end[unit], region.over_box(form, constant))
        if region.cuts and ((knots[unit] > low[unit]) & (knots[unit] < high[unit])).any():
            end[unit] = sign * min(sign * end[unit], region.maximise(form, constant)[0])
        region.empty |= bool(low[unit] > high[unit])
    if not region.empty:
        node.lines.append(_lines(node, slice(start, start + count), low / 2 + high / 2))


def _terms(node: _Node, k: int) -> Floats:
    size = node.lines[k - 1].size if k else np.maximum(np.abs(node.region.low), np.abs(node.region.high))
    return terms_of(node.query.net.layers[k], size)


def _lines(node: _Node, own: slice, touch: Floats) -> Lines:
    return Lines.of(node.query.net.tables[own], node.low[own], node.high[own], touch)


def _unit_forms(node: _Node, k: int, units: Ints, signs: Floats) -> tuple[Floats, Floats]:
    """Return forms [n, in] and constants [n] that sign z of these units of layer k never exceeds."""
    layer = node.query.net.layers[k]
    start = signs[:, None] * layer.weight[units], signs * layer.bias[units], node.terms[k][units]
    return _substitute(node, k, *start)[:2]


def _substitute(node: _Node, k: int, a: Floats, constant: Floats, size: Floats) -> tuple[Floats, Floats, list[Floats]]:
    """Bound a y + constant, y the inputs of layer k, by forms in x; also return a at each layer, first to last."""
    before = zip(node.query.net.layers[:k], node.lines, node.terms, strict=False)
    steps = [(layer, own.slope[:, None], own.constant[:, None], terms[None]) for layer, own, terms in before]
    reach = np.maximum(np.abs(node.region.low), np.abs(node.region.high))
    forms, constants, felt = substitute(steps, a[None], constant[None], size[None], reach[None], node.error)
    return forms[0], constants[0], [rows[0] for rows in felt]


def _goal_forms(node: _Node, goals: Floats) -> tuple[Floats, Floats, list[Floats]]:
    last = node.query.net.layers[-1]
    start = goals @ last.weight, goals @ last.bias, np.abs(goals) @ node.terms[-1]
    return _substitute(node, len(node.lines), *start)


def _bound_goals(node: _Node, nodes: Nodes, found: Answer, n: int) -> Floats:
    """Bound each condition and return how much each unit's gap matters for the one with the largest bound."""
    query, region, best, floor = node.query, node.region, NEVER, nodes.floors[n]
    forms, constants, felt = _goal_forms(node, query.goals)
    gap = np.concatenate([np.zeros((2, 0)), *(lines.gap for lines in node.lines)], axis=1)
    slopes = np.concatenate([np.zeros((len(forms), 0)), *felt], axis=1)
    scores = np.where(slopes > 0, gap[0], gap[1]) * np.abs(slopes)
    kept, goal = np.zeros(len(node.low)), np.append(np.zeros(query.net.inputs), 1.0)
    for c in np.flatnonzero(nodes.bounds[n] > NEVER):
        group = range(query.first[c], query.first[c + 1])
        least = min(region.over_box(forms[g], over(constants[g], floor[g])) for g in group)
        everything = region.with_input(0.0, max(least, 0.0))  # maximise t >= 0, by which all goals exceed their floors
        everything.empty |= least < 0
        more, shifts, top = forms, constants, np.inf
        for rounds in range(ROUNDS + 1):
            for g in group:
                everything.add_cut(np.append(-more[g], 1.0), over(shifts[g], floor[g]))
            before, (top, x, weights) = top, everything.maximise(goal, 0.0)
            top = min(top, before)
            if rounds == ROUNDS or not 0 < top <= ENOUGH * before:
                break
            more, shifts, _ = _goal_forms(_touch(node, x[:-1]), query.goals)
        nodes.bounds[n, c] = top
        if top > best:
            best, found.x[n] = top, x[:-1]
            kept = weights[region.cuts :].reshape(-1, len(group)).sum(axis=0) @ scores[group.start : group.stop]
    nodes.cuts[n] = np.nan
    if len(query.first) == 2 and best > NEVER:
        nodes.cuts[n] = np.append(forms, constants[:, None], axis=1)
    return np.asarray(kept)


def _touch(node: _Node, x: Floats) -> _Node:
    """Return the node with lines that touch the graphs of the units where the network is at x.

    They touch in the middle of a bin of the range: at the ends any edge would do, and rounding would choose one.
    """
    y, lines = x, []
    for k, (weight, bias, f) in enumerate(node.query.layers):
        if f is None:
            break
        own = slice(node.first[k], node.first[k] + len(bias))
        z, low, width = weight @ y + bias, node.low[own], node.high[own] - node.low[own]
        bin_ = np.floor(BINS * np.divide(z - low, width, out=np.zeros_like(z), where=width > 0))
        lines.append(_lines(node, own, low + (np.clip(bin_, 0, BINS - 1) + 0.5) / BINS * width))
        y = f(z)
    return replace(node, lines=lines)


def _bound_gradient(node: _Node, nodes: Nodes, found: Answer, n: int) -> Floats:
    """Write the range of the gradient of the first goal and return how much each unit matters for it.

    Backwards, a unit on several pieces has slope s = middle + radius e with |e| <= 1, and s v = middle v + radius |v|
    e'. So the gradient lies in a zonotope: a centre, and one column for each such e'.
    """
    query, net = node.query, node.query.net
    if node.region.cuts:
        wider = node.region.with_margin()
        top, x, _ = wider.maximise(np.append(np.zeros(net.inputs), 1.0), 0.0)
        node.region.empty |= top == NEVER
        found.x[n] = x[: net.inputs]
    centre = query.goals[0] @ net.layers[-1].weight
    terms = np.abs(query.goals[0]) @ np.abs(net.layers[-1].weight) + FLOOR
    columns, owners = np.zeros((0, len(centre))), np.zeros(0, dtype=np.int64)
    for k in range(len(net.hidden) - 1, -1, -1):
        start, weight = node.first[k], net.layers[k].weight
        least, most = _slopes(node, start, len(weight))
        middle = least / 2 + most / 2
        radius = np.maximum(most - middle, middle - least)
        reach = radius * (np.abs(centre) + np.abs(columns).sum(axis=0))
        fresh = np.flatnonzero(reach > 0)
        terms = np.maximum(np.abs(least), np.abs(most)) * terms @ np.abs(weight) + FLOOR * (np.abs(weight).sum() + 1)
        columns = np.concatenate([(middle * columns) @ weight, reach[fresh, None] * weight[fresh]])
        owners = np.concatenate([owners, start + fresh])
        centre = (middle * centre) @ weight
    error = roundings(4 * sum(net.widths) + 64 + 4 * len(node.low)) * (2.0 + len(columns))
    spread = error * terms + (np.abs(columns) * (1 + 1e-12)).sum(axis=0) + 4 * UNIT * np.abs(centre)
    found.gradient[n] = np.stack([centre - spread, centre + spread], axis=1)
    if not node.region.empty:
        nodes.bounds[n] = _longest(centre, columns, error * terms)
    scores = np.zeros(len(node.low))
    scores[owners] = np.abs(columns).sum(axis=1)
    return scores


def _longest(centre: Floats, columns: Floats, off: Floats) -> float:
    """Return a bound on the 2-norm of g + d for all g = centre + e @ columns with |e_i| <= 1, and |d_i| <= off_i.

    |g|^2 is at most |centre|^2 + 2 sum |centre column_i| + sum |column_i column_k|: products cancel where their sizes
    do not. `more` bounds the rounding of the products: all their terms together are at most |size|^2. Adding E^2
    nonnegative products takes E^2 roundings, which the root halves: at most E^2 u |size| is lost. The caller's `off`
    includes this: it is at least gamma_4E (2 + E) size, because each column belongs to a unit. |d| is at most the sum
    of its components.
    """
    if len(columns) > MOST_COLUMNS:
        return np.inf
    with np.errstate(over="ignore", invalid="ignore"):  # a square that overflows gives no bound
        size = np.abs(centre) + np.abs(columns).sum(axis=0)
        square = centre @ centre + 2 * np.abs(columns @ centre).sum() + np.abs(columns @ columns.T).sum()
        more = roundings(4 * (len(columns) + len(centre)) + 64) * (size @ size)
        return float((np.sqrt(square + more + FLOOR) + (off + 4 * UNIT * size).sum()) * (1 + 16 * UNIT))


def _slopes(node: _Node, start: int, count: int) -> tuple[Floats, Floats]:
    """Return the least and the largest slope of each unit of a layer on its range."""
    knots, slopes = (
        table[start : start + count] for table in (node.query.net.tables.knots, node.query.net.tables.slopes)
    )
    low, high = node.low[start : start + count, None], node.high[start : start + count, None]
    ends = np.pad(knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    begin, end = ends[:, :-1], ends[:, 1:]
    met = np.where(low < high, (begin < high) & (end > low), (begin <= high) & (end >= low))
    return slopes.min(axis=1, where=met, initial=np.inf), slopes.max(axis=1, where=met, initial=-np.inf)


def _choose(node: _Node, scores: Floats) -> tuple[int, int]:
    """Return where to branch: splitting a unit removes its gap, halving an input halves the gaps that it causes."""
    gap = np.concatenate([np.zeros((2, 0)), *(lines.gap for lines in node.lines)], axis=1)
    knot = np.concatenate([np.zeros((2, 0), dtype=np.int64), *(lines.knot for lines in node.lines)], axis=1)
    if not (scores > 0).any():  # where the goals are exact, the cuts need not be
        scores = gap.sum(axis=0)
    if not (scores > 0).any():  # nothing matters, or numbers are too large: any unit that may cross a knot
        knots = node.query.net.tables.knots
        inside = np.argwhere((knots > node.low[:, None]) & (knots < node.high[:, None]))
        return (node.shapes.shape[1] + int(inside[0, 0]), int(inside[0, 1])) if len(inside) else (-1, -1)
    middle = (node.region.low + node.region.high) / 2
    divisible = (middle > node.region.low) & (middle < node.region.high)
    parts = np.abs(node.shapes) * np.where(divisible, node.region.high - node.region.low, 0.0)
    whole = parts.sum(axis=1)
    shares = (scores / np.where(whole > 0, whole, np.inf)) @ parts
    unit, axis = int(scores.argmax()), int(shares.argmax())
    # the gap of a gradient does not shrink before the unit is on one piece
    if (8.0 if node.query.gradient else 1.0) * scores[unit] < shares[axis]:
        return axis, -1
    return len(shares) + unit, int(knot[int(gap[0, unit] < gap[1, unit]), unit])
