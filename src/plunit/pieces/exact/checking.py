"""f(x) = G x + b on every polygon by its pattern, G = W_n D_{n-1} W_{n-1} ... D_1 W_1 with D_i = diag f_i'; and checks.

Maps by the chain rule are exact to rounding even on the thinnest polygon. Maps from differences of values are not.

Values come from points and slopes from patterns, so the two must agree: to 1e-7 of the largest |f| on the domain, or of
the largest term in the sum that f is, beyond the rounding of x. Otherwise there is a fault, and its text says where.
Either a piece too short for floating-point numbers was lost there, or rounding inside the network is larger than that.
The errors that `layer` follows are not added to the 1e-7: where a step collapses they are as large as the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, Words, blocks
from plunit.pieces.exact.layer import EPS, SAFETY, TINY, Units, affine_with_error, of_members
from plunit.pieces.exact.mesh import Mesh
from plunit.pieces.networks import Ensemble, terms
from plunit.pieces.tracing import Polyline

BLOCK = 2**12
AGREE = 1e-7

_REASON = (
    "pieces there are too short, or rounding is too large, for double precision; give the weights more even scales, or "
    "take a domain without that place"
)


class Maps(NamedTuple):
    """gradient [polygons, out, in], intercept [polygons, out], and the gradient's tolerance [polygons, out, in]."""

    gradient: Floats
    intercept: Floats
    tolerance: Floats


def maps(nets: Ensemble, patterns: Sequence[Words], member: Ints) -> Maps:
    """Return the affine maps of polygons with these patterns and members [polygons].

    The tolerance is 32 times the rounding error of the gradient, by the rule of `layer` from the last layer back.
    """
    parts = (([above[:, part] for above in patterns], member[part]) for part in blocks(len(member), BLOCK))
    found = (_maps(nets, *part) for part in parts)
    return Maps(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def _maps(nets: Ensemble, patterns: Sequence[Words], member: Ints) -> Maps:
    outputs, last = nets.outputs, nets.layers[-1]
    # a row for each output of each polygon
    who = np.repeat(member, outputs)
    rows = np.broadcast_to(of_members(last.weight, member), (len(member), *last.weight.shape[1:]))
    rows = rows.reshape(len(who), -1)
    state = np.stack([rows, EPS * np.abs(rows)], axis=1)
    constant = np.broadcast_to(of_members(last.bias, member), (len(member), outputs)).reshape(-1).copy()
    for (layer, f), pattern in zip(nets.hidden[::-1], patterns[::-1], strict=True):
        units = Units.of(f)
        both = (units.chosen(part, pattern, member) for part in (units.slopes, units.intercepts))
        slope, shift = (np.repeat(part, outputs, axis=0) for part in both)
        constant += (state[:, 0] * shift).sum(axis=1)
        state[:, 0] *= slope
        state[:, 1] *= np.abs(slope)
        constant += (state[:, 0] * of_members(layer.bias, who)).sum(axis=1)
        weight = layer.weight.swapaxes(1, 2)
        state = affine_with_error(weight, np.zeros(weight.shape[:2]), state, who)
    state = state.reshape(len(member), outputs, 2, nets.inputs)
    return Maps(state[:, :, 0], constant.reshape(len(member), outputs), SAFETY * state[:, :, 1] + TINY)


def group_starts(slopes: Floats, tolerance: Floats, fresh: Bools) -> Bools:
    """Return the pieces [n] that start a group of equal slopes [n, out]; `fresh` ones always do.

    Slopes are equal where they differ by no more than the sum of their tolerances. A piece joins a group if its slope
    is equal to that of its neighbour and to that of the first piece of the group: so small differences do not add up.
    """
    first = fresh.copy()
    first[1:] |= (np.abs(np.diff(slopes, axis=0)) > tolerance[1:] + tolerance[:-1]).any(axis=1)
    start = np.flatnonzero(first)[np.cumsum(first) - 1]
    far = (np.abs(slopes - slopes[start]) > tolerance + tolerance[start]).any(axis=1)
    for begin in np.unique(start[far]):
        for piece in np.flatnonzero(start == begin):
            if (np.abs(slopes[piece] - slopes[begin]) > tolerance[piece] + tolerance[begin]).any():
                first[piece], begin = True, piece
    return first


def same_maps(maps: Maps, pairs: Ints) -> Ints:
    """Return the functional piece of each polygon, 0, 1, ...; `pairs` [n, 2] are neighbours.

    Gradients are equal where they differ by no more than the sum of their tolerances; being continuous, neighbours with
    equal gradients have one affine map. All polygons of a piece equal its first: small differences do not add up.
    """
    equal = _equal(maps, *pairs.T)
    group = connected(len(maps.gradient), pairs[equal])
    while True:
        first = np.unique(group, return_index=True)[1]
        far = ~_equal(maps, np.arange(len(group)), first[group])
        if not far.any():
            return group
        # the polygons that are far from the first one of their group make groups of their own
        one, two = pairs.T
        group = connected(len(group), pairs[equal & (group[one] == group[two]) & (far[one] == far[two])])


def _equal(maps: Maps, one: Ints, two: Ints) -> Bools:
    gap = np.abs(maps.gradient[one] - maps.gradient[two])
    return np.asarray((gap <= maps.tolerance[one] + maps.tolerance[two]).all(axis=(1, 2)))


def connected(count: int, pairs: Ints) -> Ints:
    """Return the connected component, 0, 1, ..., of each vertex of a graph with these pairs as edges.

    >>> connected(5, np.array([[0, 3], [3, 4]])).tolist()
    [0, 1, 2, 0, 0]
    """
    label = np.arange(count)
    while True:
        ends = np.sort(label[pairs], axis=1)
        if (ends[:, 0] == ends[:, 1]).all():
            return np.asarray(np.unique(label, return_inverse=True)[1])
        np.minimum.at(label, ends[:, 1], ends[:, 0])
        while (label != label[label]).any():
            label = label[label]


def gaps(knots: Floats, values: Floats, slopes: Floats, tolerance: Floats) -> tuple[Floats, Floats]:
    """Return |values[i + 1] - values[i] - slopes[i] h| with h = knots[i + 1] - knots[i], and what rounding allows."""
    step = np.diff(knots)[:, None]
    reach = np.abs(knots[1:, None]) + np.abs(knots[:-1, None])
    allowed = SAFETY * EPS * np.abs(slopes) * reach + tolerance * step
    return np.abs(np.diff(values, axis=0) - slopes * step), allowed


def check_agreement(knots: Floats, values: Floats, slopes: Floats, tolerance: Floats) -> None:
    """Raise ValueError if the slopes of a curve contradict its values."""
    with np.errstate(over="ignore", invalid="ignore"):
        gap, allowed = gaps(knots, values, slopes, tolerance)
        wrong = ~(gap <= allowed + AGREE * np.abs(values).max(axis=0))
    if wrong.any():
        i, output = (int(index[0]) for index in np.nonzero(wrong))
        raise ValueError(
            f"values and slopes must agree: between x = {knots[i]} and {knots[i + 1]} output {output} goes from "
            f"{values[i, output]} to {values[i + 1, output]}, but its slope there is {slopes[i, output]}"
        )


def agreeing(knots: Floats, values: Floats, slopes: Floats, tolerance: Floats) -> Floats:
    """Return the tolerance, raised to the difference of values and slopes where that is larger."""
    gap, allowed = gaps(knots, values, slopes, tolerance)
    large = gap > allowed + AGREE * np.abs(values).max(axis=0)
    return np.where(large, gap / np.diff(knots)[:, None], tolerance) if large.any() else tolerance


def checked_line(nets: Ensemble, line: Polyline, x: Floats) -> tuple[Polyline, dict[int, str]]:
    """Return the line, and its faults by member; x: [n, in], the inputs at its points.

    Where a sum cancels, values agree with slopes to the rounding of its terms only. The error of the slope is raised
    there.
    """
    value, (slope, slope_error) = line.value[:, 0], line.slope.swapaxes(0, 1)
    first = np.flatnonzero(~line.last)
    member = line.member[first]
    gap, allowed = (part[first] for part in gaps(line.t, value, slope[:-1], SAFETY * slope_error[:-1]))
    scale = AGREE * _largest(np.abs(value), line.member, nets.members)
    large = gap > allowed + scale[member]
    if not large.any():
        return line, {}
    slope_error = slope_error.copy()
    slope_error[first] = np.where(large, gap / np.diff(line.t)[first, None] / SAFETY, slope_error[first])
    scale = np.maximum(scale, AGREE * _largest(terms(nets, x, line.member), line.member, nets.members))
    lost = gap > allowed + scale[member]
    faults = {
        int(line.member[a]): f"between x = {line.t[a]} and {line.t[a + 1]} f goes from {_text(value[a])} to "
        f"{_text(value[a + 1])}, but its slope is {_text(slope[a])}: {_REASON}"
        for a in reversed(first[lost.any(axis=1)])
    }
    return replace(line, slope=np.stack([slope, slope_error], axis=1)), faults


def mesh_faults(nets: Ensemble, mesh: Mesh, patterns: Sequence[Words]) -> dict[int, str]:
    """Return the faults of the values at the vertices of a mesh, by member.

    The values are compared with the maps of the polygons around where an error is large, and only there.
    """
    value, error = mesh.state.swapaxes(0, 1)
    scale = AGREE * _largest(np.abs(value), mesh.member, nets.members)
    doubtful = (error > scale[mesh.member]).any(axis=1)
    if not doubtful.any():
        return {}
    faces, corner = mesh.faces, np.flatnonzero(doubtful[mesh.faces.tails])
    polygons, which = np.unique(faces.owner[corner], return_inverse=True)
    owner = mesh.member[faces.tails[faces.offsets[polygons]]]
    gradient, intercept, _ = (part[which] for part in maps(nets, [above[:, polygons] for above in patterns], owner))
    vertex = faces.tails[corner]
    member, place = mesh.member[vertex], mesh.place[vertex]
    scale = np.maximum(scale, AGREE * _largest(terms(nets, place, member), member, nets.members))
    steep = SAFETY * EPS * np.einsum("noi,ni->no", np.abs(gradient), np.abs(place))
    expected = np.einsum("noi,ni->no", gradient, place) + intercept
    lost = np.abs(expected - value[vertex]) > scale[member] + steep
    return {
        int(
            member[i]
        ): f"at x = {_text(place[i])} f is {_text(value[vertex[i]])}, but by the map of the polygon beside it "
        f"{_text(expected[i])}: {_REASON}"
        for i in reversed(np.flatnonzero(lost.any(axis=1)))
    }


def _text(numbers: Floats) -> str:
    return ", ".join(f"{number:.17g}" for number in np.atleast_1d(numbers))


def _largest(sizes: Floats, member: Ints, members: int) -> Floats:
    """Return the largest sizes [n, out] of each member, [members, out]."""
    if members == 1:
        return np.asarray(sizes.max(axis=0, keepdims=True))
    largest = np.zeros((members, sizes.shape[1]))
    np.maximum.at(largest, member, sizes)
    return largest
