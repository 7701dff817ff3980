"""Questions about values: how large, how small, how far apart, and where does one output exceed another.

For one input the curve gives the answer, and for two inputs the polygons. For more inputs, or constraints, a
mixed-integer program (`encoding`) is solved by HiGHS. The network is evaluated at each answer before it is returned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from plunit.pieces import exact_curves
from plunit.pieces.arrays import Floats
from plunit.pieces.exact_curves import Curve
from plunit.pieces.limits import Progress
from plunit.pieces.networks import Network, check_network
from plunit.pieces.proofs.covering import certain_value
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.maximising import (
    SECONDS,
    Box,
    Constraints,
    Optimum,
    Undecided,
    checked_index,
    effort_of,
    largest_of,
    maximise,
    maximise_each,
    negated,
    one_output,
)
from plunit.pieces.rewriting import combination, difference


@dataclass(frozen=True, eq=False)
class Bounds:
    """low <= f(x) <= high for all x in the domain, [out] each; proved: both are reached, to 1e-6 of the largest |f|."""

    low: Floats
    high: Floats
    proved: bool


def maximum(
    net: Network,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum:
    """Max f(x) over x in the box: where it is, and a bound that no value exceeds.

    Args:
        net: a single network.
        box: a pair (low, high) for each input.
        output: which output.
        constraints: (A, b) for A x <= b besides the box.
        time_limit: in seconds; None for no limit. When it is over, the best point and the bound so far are returned,
            and `proved` is False.
        progress: a function that is called with the progress, such as print.

    >>> from plunit.pieces import activation, network
    >>> net = network([(np.eye(3), np.zeros(3)), activation.relu(), ([[1.0, -1.0, 0.5]], [0.0])])
    >>> found = maximum(net, [(-1, 2)] * 3)
    >>> found.value, round(found.bound, 6), found.proved
    (3.0, 3.0, True)
    """
    domain = Domain.of(net, box, constraints)
    return maximise(one_output(net, output), domain, effort_of(time_limit, progress))


def minimum(
    net: Network,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum:
    """Min f(x) over x in the box: where it is, and a bound that every value exceeds; arguments as `maximum`."""
    domain = Domain.of(net, box, constraints)
    return negated(maximise(one_output(net, output, -1.0), domain, effort_of(time_limit, progress)))


def bounds(
    net: Network,
    box: Box,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Bounds:
    """Low <= f(x) <= high for every output, each as narrow as can be; `time_limit` is for all of them together."""
    domain = Domain.of(net, box, constraints)
    effort = effort_of(time_limit, progress)
    tops = maximise_each(domain, [one_output(net, i, sign) for sign in (-1.0, 1.0) for i in range(net.outputs)], effort)
    ends = np.array([top.bound for top in tops])
    return Bounds(-ends[: net.outputs], ends[net.outputs :], all(top.proved for top in tops))


@overload
def distance(one: Curve, other: Curve) -> float: ...
@overload
def distance(
    one: Network,
    other: Network,
    box: Box,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum: ...
def distance(
    one: Network | Curve,
    other: Network | Curve,
    box: Box | None = None,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum | float:
    """Sup |f(x) - g(x)| over the box and all outputs, of two networks; or of two curves over their domain.

    >>> from plunit.pieces import activation, network
    >>> f = network([(np.eye(3), np.zeros(3)), activation.plu(), ([[1.0, 1.0, 1.0]], [0.0])])
    >>> g = network([([[1.0, 1.0, 1.0]], [0.0])])
    >>> round(float(distance(f, g, [(-3, 3)] * 3)), 6)
    5.4
    """
    if isinstance(one, Curve) and isinstance(other, Curve):
        if box is not None or constraints is not None:
            raise TypeError("curves have a domain of their own; give distance(one, other) alone")
        return exact_curves.distance(one, other)
    if not (isinstance(one, Network) and isinstance(other, Network)) or box is None:
        raise TypeError(
            f"distance takes two curves, or two networks and a box, got {type(one).__name__}, {type(other).__name__}"
            f"{' without a box' if box is None else ''}"
        )
    both = difference(one, other)
    domain = Domain.of(both, box, constraints)
    parts = [one_output(both, i, sign) for sign in (-1.0, 1.0) for i in range(both.outputs)]
    return largest_of(maximise_each(domain, parts, effort_of(time_limit, progress)))


def counterexample(
    net: Network,
    box: Box,
    condition: tuple[int, int],
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum | None:
    """Find an x in the box where output i exceeds output j, condition = (i, j); None if it is proved that none does.

    `value` of the answer is f_i(x) - f_j(x). `Undecided` is raised if time is over before either, or if the largest
    difference cannot be told apart from 0: its rounding error, and the tolerance of the solver, count as errors.
    """
    check_network(net)
    try:
        first, second = condition
    except (TypeError, ValueError):
        raise ValueError(f"condition must be a pair of outputs (i, j), got {condition!r}") from None
    i, j = (checked_index(output, net.outputs, "condition", "outputs") for output in (first, second))
    margin = combination(net, np.eye(net.outputs)[[i]] - np.eye(net.outputs)[[j]])
    domain = Domain.of(margin, box, constraints)
    found = maximise(margin, domain, replace(effort_of(time_limit, progress), target=0.0))
    if certain_value(margin, found.x) > 0:
        return found
    if found.bound > 0:
        raise Undecided(found)
    return None
