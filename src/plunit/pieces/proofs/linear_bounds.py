"""`LinearBounds`: a network between two linear functions of x, on many boxes at once.

`plunit.expressions.distance` compares them with a formula. The method is that of `relaxation`, without cuts.
"""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network
from plunit.pieces.proofs.bounding import Query, call_prover
from plunit.pieces.proofs.properties import Domain
from plunit.pieces.proofs.relaxation import Lines, dot, substitute, terms_of
from plunit.pieces.rounding import FLOOR, UNIT, roundings
from plunit.programs.interface import ProofNodes
from plunit.programs.libraries import library, why_not_native


class LinearBounds:
    """Linear functions above and below the first output of a network, f(x) <= y + a (x - m) in a box with middle m.

    Args:
        net: the network.
        box: [in, 2], a box that contains all others.
        engine: "native" or "numpy"; by default the faster one that is available.
    """

    def __init__(self, net: Network, box: Floats, engine: str | None = None) -> None:
        domain = Domain(box, np.zeros((0, net.inputs)), np.zeros(0))
        goal = np.eye(1, net.outputs)
        self.query = Query.of(net, domain, [np.concatenate([goal, -goal])])
        self.engine = engine or ("numpy" if why_not_native("prove") else "native")

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return y [n, 2] and a [n, 2, in] for the boxes low <= x <= high, [n, in]; the bound from above comes first.

        The middle is low / 2 + high / 2 as computed.
        """
        forms = _box_forms(self.query, low, high) if self.engine == "numpy" else self._compiled_forms(low, high)
        a, b, middle = forms[..., :-1], forms[..., -1], (low / 2 + high / 2)[..., None]
        size = (np.abs(a) @ np.abs(middle))[..., 0] + np.abs(b)
        at = b + (a @ middle)[..., 0] + roundings(2 * a.shape[2] + 8) * size + FLOOR
        return at * [1.0, -1.0], a * [[1.0], [-1.0]]

    def _compiled_forms(self, low: Floats, high: Floats) -> Floats:
        (n, inputs), units = low.shape, len(self.query.net.tables.knots)
        ranges = np.broadcast_to([-np.inf, np.inf], (n, units, 2)).copy()
        forms = np.full((n, 2, inputs + 1), np.nan)
        nodes = ProofNodes(nodes=n, box=np.stack([low, high], axis=2), range=ranges, cut=forms, seconds=np.inf)
        call_prover(library("prove").plunit_forms, self.query, nodes)
        return forms


def _box_forms(query: Query, low: Floats, high: Floats) -> Floats:
    """Return forms a x + b above the goals in the boxes low <= x <= high, [n, in]: a and b, [n, goals, in + 1].

    `numpy_bounds` does the same for one box with cuts. Here the boxes are rows of the arrays.
    """
    net, reach, lines, terms, start = query.net, np.maximum(np.abs(low), np.abs(high)), list[Lines](), list[Floats](), 0
    size, error = reach, roundings(4 * sum(net.widths) + 64) * 1.0001

    def go_back(rows: Floats, constant: Floats, size: Floats) -> tuple[Floats, Floats]:
        steps = [
            (before, own.slope, own.constant, own_terms)
            for before, own, own_terms in zip(net.layers, lines, terms, strict=False)
        ]
        return substitute(steps, rows[None], constant, size, reach, error)[:2]

    for layer, _ in net.hidden:
        terms.append(terms_of(layer, size))
        both = np.concatenate([layer.weight, -layer.weight]), np.concatenate([layer.bias, -layer.bias])
        top, units = _largest(*go_back(*both, np.tile(terms[-1], 2)), low, high), len(layer.bias)
        ends = -top[:, units:], top[:, :units]
        lines.append(Lines.of(net.tables[start : start + units], *ends, ends[0] / 2 + ends[1] / 2))
        start, size = start + units, lines[-1].size
    last, goals = net.layers[-1], query.goals
    found = go_back(goals @ last.weight, goals @ last.bias, terms_of(last, size) @ np.abs(goals).T)
    return np.concatenate([found[0], found[1][..., None]], axis=2)


def _largest(a: Floats, b: Floats, low: Floats, high: Floats) -> Floats:
    """Return the largest a x + b over each box, rounded up."""
    middle, half = low / 2 + high / 2, (high - low) / 2 * (1 + 4 * UNIT) + FLOOR
    steep = np.abs(a)
    size = dot(steep, np.abs(middle) + half) + np.abs(b)
    return np.asarray(b + dot(a, middle) + dot(steep, half) + roundings(4 * a.shape[2] + 16) * size + FLOOR)
