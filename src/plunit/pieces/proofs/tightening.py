"""Narrower ranges of z by linear programs: fewer knots that a unit can cross, and a tighter program.

Tjeng, Xiao and Tedrake (2019) tighten the ranges of ReLU networks first, too (docs/literature.md).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.encoding import Encoding, Range, encode
from plunit.pieces.proofs.highs import Contradiction
from plunit.pieces.proofs.program import Form, Relaxation

MARGIN = 1e-7
"""The assumed error of a linear program's answer, as a part of the range."""

ROUNDS = 4
PAYS = 0.9
"""Another round is made if the last one left at most this part of the knots."""


def encode_domain(net: Network, domain: Domain, known: tuple[Range, ...] = ()) -> Encoding:
    """Encode the network with the box and the constraints of a domain."""
    found = encode(net, domain.box, known)
    if not domain.free:
        found.program.limit(found.x.map(domain.rows, np.zeros(len(domain.rows))), -np.inf, domain.limits)
    return found


def tighten(net: Network, domain: Domain, encoding: Encoding, above: float, deadline: float) -> Encoding:
    """Encode the part of the domain where the first output is at least `above`, with ranges as narrow as that allows.

    Begin with an encoding of the domain, to which rows may be added. Raise `Contradiction` if there is no such part.
    The deadline is a time of time.monotonic().
    """
    encoding = _limited(encoding, above)
    for _ in range(ROUNDS if time.monotonic() < deadline else 0):
        before = encoding.inside
        ranges, box = _round(encoding, domain, deadline)
        domain = replace(domain, box=box)
        encoding = _limited(encode_domain(net, domain, ranges), above)
        if encoding.inside > PAYS * before or time.monotonic() > deadline:
            break
    return encoding


def _limited(encoding: Encoding, above: float) -> Encoding:
    if np.isfinite(above):
        encoding.program.limit(encoding.output[:1], above, np.inf)
    return encoding


def _round(encoding: Encoding, domain: Domain, deadline: float) -> tuple[tuple[Range, ...], Floats]:
    """Return narrower ranges and a smaller box."""
    relaxed = encoding.program.relaxation(deadline)
    if relaxed.maximum(encoding.output[:1]).status == "infeasible":
        raise Contradiction("HiGHS finds no x with values that the network has")
    low, high = domain.box.T.copy()
    for i in range(len(low)):
        low[i], high[i] = _narrow(relaxed, encoding.x[i : i + 1], low[i], high[i])
    ranges = []
    for z, (bottom, top), units in zip(encoding.z, encoding.ranges, encoding.units, strict=True):
        bottom, top = bottom.copy(), top.copy()
        for i, unit in enumerate(units):
            if len(unit.slopes) > 1 and time.monotonic() < deadline:
                bottom[i], top[i] = _narrow(relaxed, z[i : i + 1], bottom[i], top[i])
        ranges.append((bottom, top))
    return tuple(ranges), np.stack([low, high], axis=1)


def _narrow(relaxed: Relaxation, form: Form, low: float, high: float) -> tuple[float, float]:
    """Return the range of a form over the relaxation, inside [low, high]."""
    margin = MARGIN * (high - low)
    most, least = relaxed.maximum(form), relaxed.maximum(Form(-form.matrix, -form.constant))
    top = min(high, most.bound + margin) if most.status == "optimal" else high
    bottom = max(low, -least.bound - margin) if least.status == "optimal" else low
    return (bottom, top) if bottom <= top else (low, high)
