"""Values come from points, slopes from patterns: the two must agree, or an error says where they do not.

They agree if they differ by at most 1e-7 of the largest |f| on the domain, or of the largest term in the sum that makes
f, apart from the rounding of x. Otherwise a piece too short for floating-point numbers was lost, or rounding inside the
network is larger than that. The errors that `tolerance` tracks are not added to the 1e-7: where a step collapses they
are as large as the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words
from plunit.pieces.exact.affine_maps import maps
from plunit.pieces.exact.mesh import Mesh
from plunit.pieces.exact.polylines import Polyline
from plunit.pieces.exact.tolerance import SAFETY
from plunit.pieces.networks import Ensemble, terms
from plunit.pieces.rounding import EPS

AGREE = 1e-7

_REASON = (
    "pieces there are too short, or rounding is too large, for double precision; give the weights more even scales, or "
    "use a domain without that place"
)


def gaps(knots: Floats, values: Floats, slopes: Floats, tolerance: Floats) -> tuple[Floats, Floats]:
    """Return |values[i + 1] - values[i] - slopes[i] h|, h = knots[i + 1] - knots[i], and the part rounding explains."""
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


def raise_tolerance(knots: Floats, values: Floats, slopes: Floats, tolerance: Floats) -> Floats:
    """Return the tolerance, raised to the difference between values and slopes where that is larger."""
    gap, allowed = gaps(knots, values, slopes, tolerance)
    large = gap > allowed + AGREE * np.abs(values).max(axis=0)
    return np.where(large, gap / np.diff(knots)[:, None], tolerance) if large.any() else tolerance


def check_line(nets: Ensemble, line: Polyline, x: Floats) -> tuple[Polyline, dict[int, str]]:
    """Return the line, and the faults found in it by member; x: [n, in], the inputs at its points.

    Where a sum cancels, values agree with slopes only up to the rounding of its terms. The error of the slope is raised
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
    """Return the faults found in the values at the vertices of a mesh, by member.

    Only values with large errors are compared with the maps of the surrounding polygons.
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
        ): f"at x = {_text(place[i])} f is {_text(value[vertex[i]])}, but the map of an adjacent polygon gives "
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
