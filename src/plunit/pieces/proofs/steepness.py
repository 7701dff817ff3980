"""The steepest slope of a network, proved: `lipschitz` and `is_monotone`.

A measure of the gradient, such as a norm or a component, is maximised over all linear regions. Curves and polygons give
it for one and two inputs. Otherwise the gradient is a form in the columns of the program of `encoding`: backwards
through the network, a = s v, where s is the slope of the piece that the unit is on, and v in [l, u] is the gradient by
the unit's output. With p_j = 1 on piece j and 0 elsewhere, v is split into v = sum_j v_j with l p_j <= v_j <= u p_j, so
that a = sum_j s_j v_j is linear. A `Steepness` is a measure with the goals in such forms that bound it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plunit.pieces.activation import absolute, piecewise
from plunit.pieces.arrays import Floats, Ints, blocks
from plunit.pieces.exact.polygon_set import polygons
from plunit.pieces.exact_curves import curve
from plunit.pieces.limits import Progress, Unlisted
from plunit.pieces.networks import Network
from plunit.pieces.proofs.covering import polygon_cover
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.encoding import NARROW, Encoding, Range, Unit, add_units, interval_of
from plunit.pieces.proofs.highs import FEASIBLE, Contradiction, Listener
from plunit.pieces.proofs.maximising import (
    PROVED,
    SECONDS,
    Box,
    Constraints,
    Effort,
    Optimum,
    TimeOver,
    Undecided,
    checked_index,
    effort_of,
    largest_of,
    one_output,
    shares,
    timed,
)
from plunit.pieces.proofs.program import Form, Program
from plunit.pieces.proofs.regions import (
    INSIDE,
    STARTS,
    domain_ball,
    gradient_error,
    gradient_of,
    inner_point,
    pieces_at,
    starts,
)
from plunit.pieces.proofs.tightening import encode_domain, tighten

SAMPLES = 20_000
"""The number of gradients that are evaluated before the proof."""

BLOCK = 1000
"""Gradients at a time, between two looks at the clock."""


def lipschitz(
    net: Network,
    box: Box,
    *,
    norm: float = 2,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum:
    """The smallest L with |f_i(x) - f_i(y)| <= L ||x - y|| on the box, for every output i.

    `norm` is the order of ||x - y||: 1, 2 or inf. L is the largest dual norm of a gradient. The gradient at x has the
    norm `value`, and no gradient has a norm above `bound`. If `proved`, the two are equal to 1e-6 of their size, or are
    0 to the tolerance of the solver; else L is between them.
    """
    if isinstance(norm, bool) or not isinstance(norm, (int, float)) or norm not in (1, 2, np.inf):
        raise ValueError(f"norm must be 1, 2 or inf, got {norm!r}")
    domain = Domain.of(net, box, constraints)
    effort = effort_of(time_limit, progress)
    parts = [one_output(net, i) for i in range(net.outputs)]
    what = dual_norm(float(norm))
    return largest_of([steepest(part, domain, what, share) for part, share in shares(parts, effort)])


def is_monotone(
    net: Network,
    feature: int,
    box: Box,
    *,
    increasing: bool = True,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> bool:
    """Return whether f(x) never falls (or never rises) as x[feature] grows in the box.

    False: there is a slope of the wrong sign, beyond its rounding error. True: no slope of the wrong sign is larger
    than 1e-6 of the steepest one that was found along this input. `Undecided` is raised if time is over before either,
    or if the slopes cannot be told apart from 0.
    """
    domain = Domain.of(net, box, constraints)
    feature = checked_index(feature, net.inputs, "feature", "inputs")
    wrong = np.zeros(net.inputs)
    wrong[feature] = -1.0 if increasing else 1.0
    part = one_output(net, output)
    points = starts(domain, STARTS)
    slopes = np.broadcast_to(gradient_of(part, pieces_at(part, points)), points.shape)[:, feature]
    flat = PROVED * float(np.abs(slopes).max())
    found = steepest(part, domain, along(wrong), replace(effort_of(time_limit, progress), target=flat))
    if found.value > gradient_error(part, pieces_at(part, found.x))[feature]:
        return False
    if found.bound > flat:
        raise Undecided(found)
    return True


def steepest(net: Network, domain: Domain, what: Steepness, how: Effort) -> Optimum:
    """Return where a function of the gradient of the network's first output is largest."""
    start = time.monotonic()
    if not domain.free and (ball := domain_ball(domain)) is not None and ball[1] <= INSIDE:
        raise ValueError("the constraints leave a flat domain, where a gradient has no meaning; loosen one of them")
    if net.inputs <= 2 and domain.free:
        try:
            return _by_pieces(net, domain, what, timed(how, start), start)
        except (Unlisted, TimeOver):
            pass
    return _by_program(net, domain, what, how, start)


def _by_pieces(net: Network, domain: Domain, what: Steepness, progress: Progress, start: float) -> Optimum:
    if net.inputs == 1:
        line = curve(net, *domain.box[0], progress=progress)
        gradients, errors = line.slopes[:, :1], line.tolerance[:, :1]
        middles = (line.knots[1:, None] + line.knots[:-1, None]) / 2
    else:
        found = polygons(net, (tuple(domain.box[0]), tuple(domain.box[1])), progress=progress)
        gradients, errors = found.gradients[:, 0], found.tolerances[:, 0]
        middles = polygon_cover(found).middles
    values = what.measure(gradients)
    best = int(np.argmax(values))
    bound = float((values + what.change(errors)).max())
    return _optimum(middles[best], float(values[best]), bound, start)


def _by_program(net: Network, domain: Domain, what: Steepness, how: Effort, start: float) -> Optimum:
    deadline = start + how.seconds
    x, gradient = _steep_sample(net, domain, what, deadline)
    value, bound = float(what.measure(gradient)), np.inf
    seen, thin = [gradient], _Thin([], -np.inf)
    while not (_closed(value, bound, _blur(what, seen)) or bound <= how.target < np.inf or value > how.target):
        tops, found = _solve(net, domain, what, _Told(how, value, start), seen, thin)
        if max(thin.largest, *tops) < value and not _closed(max(thin.largest, *tops), value):
            raise Contradiction(f"HiGHS finds no steepness above {max(tops)}, but the network has {value}")
        bound = min(bound, max(value, thin.largest, *tops))
        known = len(seen), len(thin.patterns), value
        for pattern in found:
            gradient, here = gradient_of(net, pattern), inner_point(net, domain, pattern, deadline)
            steep = float(what.measure(gradient))
            if not any(np.array_equal(gradient, old) for old in seen):
                seen.append(gradient)
            if here is None:
                thin = _Thin([*thin.patterns, pattern], thin.largest)
            elif not all(map(np.array_equal, pieces_at(net, here), pattern)):
                thin = _Thin([*thin.patterns, pattern], max(thin.largest, steep))
            elif steep > value:
                x, value = here, steep
        if known == (len(seen), len(thin.patterns), value) or time.monotonic() > deadline:
            break
    return _optimum(x, value, bound, start, _blur(what, seen))


def _blur(what: Steepness, seen: list[Floats]) -> float:
    """Return the measure that the solver cannot tell apart from 0, from the steepest gradient of a pattern it met."""
    return what.back(FEASIBLE * float(np.abs(what.measure(np.stack(seen))).max()) ** what.power)


def _steep_sample(net: Network, domain: Domain, what: Steepness, deadline: float) -> tuple[Floats, Floats]:
    """Return the steepest of many points and the gradient there."""
    points, found = starts(domain, SAMPLES), []
    for block in blocks(len(points), BLOCK):
        some = points[block]
        gradients = np.broadcast_to(gradient_of(net, pieces_at(net, some)), some.shape)
        best = int(np.argmax(what.measure(gradients)))
        found.append((some[best], gradients[best]))
        if time.monotonic() > deadline:
            break
    return max(found, key=lambda pair: float(what.measure(pair[1])))


def _optimum(x: Floats, value: float, bound: float, start: float, blur: float = 0.0) -> Optimum:
    bound = max(bound, value)
    return Optimum(x, value, bound, _closed(value, bound, blur), time.monotonic() - start)


@dataclass(frozen=True)
class _Thin:
    """Patterns that are excluded: their regions are empty, or so thin that no floating-point x is inside.

    Units with a common kink, and kinks on the edge of the box, have such patterns. `largest` is the largest measure
    of a gradient in thin regions. It counts for the bound and not for the value.
    """

    patterns: list[list[Ints]]
    largest: float


def _closed(value: float, bound: float, blur: float = 0.0) -> bool:
    """Whether the two agree to 1e-6 of their size, or cannot be told apart from 0."""
    return bound < np.inf and (bound - value <= PROVED * max(abs(value), abs(bound)) or -blur <= value <= bound <= blur)


@dataclass(frozen=True)
class _Told:
    """The effort, the best value so far and the time of the start: what the progress display needs."""

    how: Effort
    value: float
    start: float

    @property
    def deadline(self) -> float:
        return self.start + self.how.seconds

    def listener(self, back: Callable[[float], float]) -> Listener | None:
        """Return a listener for goals whose value, through `back`, is the measure."""
        tell = self.how.progress
        if tell is None:
            return None

        def listen(best: float, bound: float) -> None:
            spent = time.monotonic() - self.start
            text = f"steepness between {self.value:.4g} and {back(bound):.4g} after {spent:.0f} s"
            tell(min(spent / self.how.seconds, 1.0), text)

        return listen


def _solve(
    net: Network, domain: Domain, what: Steepness, told: _Told, seen: list[Floats], thin: _Thin
) -> tuple[list[float], list[list[Ints]]]:
    """Return the bounds from the goals of a measure, and the pattern where each is largest."""
    encoding = tighten(net, domain, encode_domain(net, domain), -np.inf, told.deadline)
    gradient, bounds = gradient_form(net, encoding)
    for pattern in thin.patterns:
        exclude(encoding, pattern)
    tops, found = [], []
    for goal in what.goals(encoding, gradient, bounds, seen):
        seconds, listener = told.deadline - time.monotonic(), told.listener(what.back)
        solution = encoding.program.maximise(goal, seconds=seconds, listener=listener)
        tops.append(what.back(min(solution.bound, float(goal.range()[1][0]))))
        if solution.t is not None:
            found.append(encoding.pattern(solution.t))
    return tops, found


SPLITS = 8
"""The number of chords that bound a square at first."""

Measure = Callable[[Floats], Floats]
"""Turns gradients [..., in] into numbers [...]."""

Goals = Callable[[Encoding, Form, Range, list[Floats]], list[Form]]


@dataclass(frozen=True)
class Steepness:
    """A function of the gradient that is maximised, and the goals of a program that bound it.

    change: the most that errors of the gradient, all >= 0, can change the measure. goals: takes the encoding, the form
    and the range of the gradient, and the gradients found so far. It returns forms of one row each. Their largest
    maximum bounds the measure to this power.
    """

    measure: Measure
    change: Measure
    goals: Goals
    power: int = 1

    def back(self, bound: float) -> float:
        """Return the bound of the measure from that of the goals."""
        return bound if self.power == 1 else float(max(bound, 0.0) ** (1 / self.power))


def along(direction: Floats) -> Steepness:
    """Direction . gradient."""

    def goals(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
        return [gradient.map(direction[None], np.zeros(1))]

    return Steepness(lambda g: np.asarray(g @ direction), lambda g: np.asarray(g @ np.abs(direction)), goals)


def dual_norm(order: float) -> Steepness:
    """The norm of the gradient that is dual to the norm of x of order 1, 2 or inf."""
    return {1.0: _LARGEST, 2.0: _EUCLID, np.inf: _SUM}[order]


def _largest(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
    size = _sizes(encoding, gradient, bounds)
    return [size[i : i + 1] for i in range(len(bounds[0]))]


def _sum(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
    return [_sizes(encoding, gradient, bounds).map(np.ones((1, len(bounds[0]))), np.zeros(1))]


def _sizes(encoding: Encoding, gradient: Form, bounds: Range) -> Form:
    count = len(bounds[0])
    return add_units(encoding.program, absolute().spread(count), gradient, bounds)[0]


def _squares(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
    """Sum g_i^2 from above, by chords: exact at the ends of the ranges, on a grid, and at the gradients seen so far."""
    total = encoding.program.form(1)
    for i, (low, high) in enumerate(zip(*bounds, strict=True)):
        places = np.array([*np.linspace(low, high, SPLITS + 1), *(g[i] for g in seen)])
        places = _apart(np.unique(np.clip(places, low, high)), 2 * NARROW * (high - low))
        if len(places) == 1:
            total.constant[0] += low**2
            continue
        chords = places[1:] + places[:-1]
        f = piecewise(places[1:-1], chords, _chord_at_zero(places))
        part = add_units(encoding.program, f.spread(1), gradient[i : i + 1], (places[:1], places[-1:]))[0]
        total = encoding.program.padded(total)
        total = Form(total.matrix + part.matrix, total.constant + part.constant)
    return [total]


def _apart(places: Floats, distance: float) -> Floats:
    """Return places in order without those that follow another too closely; the ends stay."""
    kept = [places[0]]
    for place in places[1:-1]:
        if place - kept[-1] > distance and places[-1] - place > distance:
            kept.append(place)
    return np.array([*kept, *places[1:][-1:]])


def _chord_at_zero(places: Floats) -> float:
    """Return the value at 0 of the chords of g^2 between neighbouring places, continued beyond them."""
    j = int(np.clip(np.searchsorted(places, 0.0) - 1, 0, len(places) - 2))
    return float(-places[j] * places[j + 1])


def _norm(order: float, goals: Goals, power: int = 1) -> Steepness:
    def measure(gradient: Floats) -> Floats:
        return np.asarray(np.linalg.norm(gradient, order, axis=-1))

    return Steepness(measure, measure, goals, power)


_LARGEST, _SUM = _norm(np.inf, _largest), _norm(1, _sum)
_EUCLID = _norm(2, _squares, 2)


def gradient_form(net: Network, encoding: Encoding) -> tuple[Form, Range]:
    """Return the gradient of the first output, [in], as a form, and its range."""
    program = encoding.program
    low = high = net.layers[-1].weight[0]
    back = Form(np.zeros((len(low), program.count)), low)
    for layer, units in zip(net.layers[-2::-1], encoding.units[::-1], strict=True):
        weight = layer.weight.T
        front = _through(program, units, back, low, high)
        slopes = np.array([[unit.slopes.min(), unit.slopes.max()] for unit in units]).T
        ends = np.stack([slopes[0] * low, slopes[0] * high, slopes[1] * low, slopes[1] * high])
        low, high = interval_of(weight, np.zeros(len(weight)), ends.min(axis=0), ends.max(axis=0))
        back = front.map(weight, np.zeros(len(weight)))
    return back, (low, high)


def _through(program: Program, units: Sequence[Unit], back: Form, low: Floats, high: Floats) -> Form:
    """Return s v for the units of a layer."""
    fresh = [
        program.columns(len(unit.slopes)) if len(unit.slopes) > 1 and low[i] < high[i] else None
        for i, unit in enumerate(units)
    ]
    back, front = program.padded(back), program.form(len(units))
    for i, (unit, place) in enumerate(zip(units, fresh, strict=True)):
        if len(unit.slopes) == 1:
            front.matrix[i], front.constant[i] = unit.slopes[0] * back.matrix[i], unit.slopes[0] * back.constant[i]
            continue
        on = _indicators(program, unit)
        parts = Form(low[i] * on.matrix, low[i] * on.constant)
        if place is not None:
            share = program.form(len(unit.slopes))
            share.matrix[:, place] = np.eye(len(unit.slopes))
            program.limit(Form(on.matrix - share.matrix, on.constant), 0.0, np.inf)
            parts.matrix[:, place] += (high[i] - low[i]) * np.eye(len(unit.slopes))
            whole = parts.map(np.ones((1, len(unit.slopes))), np.zeros(1))
            rest = Form(whole.matrix - back.matrix[i], whole.constant - back.constant[i])
            program.limit(rest, 0.0, 0.0)
        front.matrix[i], front.constant[i] = unit.slopes @ parts.matrix, unit.slopes @ parts.constant
    return front


def _indicators(program: Program, unit: Unit) -> Form:
    """Return p_0 = 1 - b_1, p_j = b_j - b_{j+1}, ..., p_m = b_m."""
    found = program.form(len(unit.slopes))
    found.constant[0] = 1.0
    binaries = np.eye(len(unit.slopes) - 1)
    found.matrix[1:, unit.binaries] += binaries
    found.matrix[:-1, unit.binaries] -= binaries
    return found


def exclude(encoding: Encoding, pattern: Sequence[Ints]) -> None:
    """Exclude a pattern; one with a piece that its unit cannot be on in this encoding is excluded already."""
    row = encoding.program.form(1)
    for units, pieces in zip(encoding.units, pattern, strict=True):
        for unit, piece in zip(units, pieces - np.array([unit.first for unit in units]), strict=True):
            if not 0 <= piece < len(unit.slopes):
                return
            on = np.arange(len(unit.slopes) - 1) < piece
            row.matrix[0, unit.binaries] = np.where(on, -1.0, 1.0)
            row.constant[0] += piece
    encoding.program.limit(row, 1.0, np.inf)
