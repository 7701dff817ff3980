"""One linear region: all x for which each unit is on a given piece. Its best corner, a point inside, its gradient.

A pattern is the piece of each unit, layer by layer: arrays [units] of indices into the activation's slopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.networks import Network
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.program import Form, Program

INSIDE = 1e-13
"""A region narrower than this part of the box is no wider than the rounding of x, and has no inside."""


def pieces_at(net: Network, x: Floats) -> list[Ints]:
    """Return the pattern at x [..., in], arrays [..., units]; on a knot the lower piece."""
    pattern = []
    for weight, bias, f in zip(net.weights, net.biases, net.activations, strict=False):
        z = x @ weight[0].T + bias[0]
        piece = (z[..., None] > f.knots[0]).sum(axis=-1)
        x = _take(f.slopes[0], piece) * z + _take(f.intercepts[0], piece)
        pattern.append(piece)
    return pattern


def gradient_of(net: Network, pattern: Sequence[Ints]) -> Floats:
    """Return the gradient of the first output where units have this pattern, [..., in]."""
    found: Floats = net.weights[-1][0, 0]
    for weight, f, piece in zip(net.weights[-2::-1], net.activations[::-1], pattern[::-1], strict=True):
        found = np.asarray((found * _take(f.slopes[0], piece)) @ weight[0])
    return found


def best_corner(net: Network, domain: Domain, pattern: Sequence[Ints]) -> Floats | None:
    """Return the point of the region with the largest first output; None if the region is empty."""
    program = Program()
    x = _inputs(program, domain)
    for form, low, high in _sides(net, domain, pattern, x):
        program.limit(form, low, high)
    return _place(domain, program, x, _output(net, pattern, x))


def inner_point(net: Network, domain: Domain, pattern: Sequence[Ints]) -> Floats | None:
    """Return the point of the region that is farthest from its sides, in a box of width 1; None if it has no inside."""
    program = Program()
    x = _inputs(program, domain)
    distance = program.columns(1)
    for form, low, high in ((x, *domain.box.T), *_sides(net, domain, pattern, x)):
        away = program.padded(form)
        away.matrix[:, distance] = np.linalg.norm(form.matrix, axis=1)[:, None]
        program.limit(away, -np.inf, high)
        away.matrix[:, distance] *= -1
        program.limit(away, low, np.inf)
    goal = program.form(1)
    goal.matrix[0, distance] = 1.0
    found = program.relaxation().maximum(goal)
    return None if found.t is None or found.t[distance] <= INSIDE else domain.clip(_at(x, found.t))


def some_point(domain: Domain) -> Floats | None:
    """Return a point of the domain; None if it is empty."""
    program = Program()
    x = _inputs(program, domain)
    program.limit(x.map(domain.rows, np.zeros(len(domain.rows))), -np.inf, domain.limits)
    return _place(domain, program, x, program.form(1))


def _inputs(program: Program, domain: Domain) -> Form:
    program.columns(len(domain.box))
    return Form(np.diag(domain.box[:, 1] - domain.box[:, 0]), domain.box[:, 0])


def _sides(
    net: Network, domain: Domain, pattern: Sequence[Ints], x: Form
) -> Iterator[tuple[Form, Floats | float, Floats]]:
    """Yield forms with the bounds that they have in the region."""
    yield x.map(domain.rows, np.zeros(len(domain.rows))), -np.inf, domain.limits
    for z, f, piece in zip(_forms(net, pattern, x), net.activations, pattern, strict=False):
        ends = np.pad(f.knots[0], ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        yield z, _take(ends, piece), _take(ends, piece + 1)


def _output(net: Network, pattern: Sequence[Ints], x: Form) -> Form:
    return list(_forms(net, pattern, x))[-1][:1]


def _forms(net: Network, pattern: Sequence[Ints], x: Form) -> Iterator[Form]:
    """Yield z of each layer, and then the outputs."""
    for weight, bias, f, piece in zip(net.weights, net.biases, net.activations, pattern, strict=False):
        z = x.map(weight[0], bias[0])
        yield z
        slope = _take(f.slopes[0], piece)
        x = Form(slope[:, None] * z.matrix, slope * z.constant + _take(f.intercepts[0], piece))
    yield x.map(net.weights[-1][0], net.biases[-1][0])


def _place(domain: Domain, program: Program, x: Form, goal: Form) -> Floats | None:
    found = program.relaxation().maximum(goal)
    return None if found.t is None else domain.clip(_at(x, found.t))


def _at(x: Form, t: Floats) -> Floats:
    return np.asarray(x.matrix @ t[: x.matrix.shape[1]] + x.constant)


def _take(table: Floats, piece: Ints) -> Floats:
    """Return table[i, piece[..., i]] for each unit i."""
    return np.asarray(table[np.arange(len(table)), piece])
