"""Train the networks and measure their errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from plunit.base.errors import UserError
from plunit.ensemble.arrays import Array, Scale
from plunit.ensemble.minimax import Target
from plunit.ensemble.mlp import MLP, PIECEWISE, exact, in_units
from plunit.expressions import MOST_VARIABLES, SupError
from plunit.expressions.distance import begin_search
from plunit.fitting.curves import Reduced, reduce_pieces, start_from_curve
from plunit.fitting.problems import Problem, root_mean_square
from plunit.fitting.smallest import SizeSearch
from plunit.pieces import Curve, FixedNetwork, Network
from plunit.sklearn import PLURegressor

if TYPE_CHECKING:
    from plunit.expressions import Expression

FRESH_POINTS = 20_000
"""Number of random points of the root mean square error against a function."""

RANDOM_POINTS = 100_000
"""Number of random points that estimate the largest error if it is not proved; half of them are on faces of the box."""

PROOF, SHORT_PROOF = 30.0, 2.0
"""Time limits for bounding a network's error against a function (s); the second one after the training was stopped."""

ADAM_STEPS, QUICK = 6000, 4
"""Adam's steps for a function. Quick fits of shapes use half of them, and a quarter of the starts."""

_ROUNDS = 40  # rounds of halving boxes that locate the largest error well enough

Watch = Callable[[str, float, float], bool]
"""Called with the current task, the fraction of it done and the lowest loss; returns whether to stop."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit.

    Attributes:
        hidden: units of the hidden layers; () means 8, 8 for one input and 16, 16 for more.
        starts: the number of random starts.
        best: the number of best networks that are averaged, at most `starts`.
        splits: the number of random fifths of a table on which the error is tested.
        pieces: the number of pieces wanted, for one input.
        error: the error allowed: of the curve for one input, of the network against a function of several.
        activation: the activation of the networks.
        seed: the seed of starts and splits.
        bits: bits of the fixed-point weights, 8 or 16; None leaves the network in floating point.
        minimax: lower the largest error against a function, if it can be proved, instead of the mean square error.
    """

    hidden: tuple[int, ...] = ()
    starts: int = 256
    best: int = 1
    splits: int = 5
    pieces: int | None = None
    error: float | None = None
    activation: str = "plu"
    seed: int = 0
    bits: int | None = None
    minimax: bool = True


class Fixed(NamedTuple):
    """The network in fixed point, and a proved bound on its distance from the network."""

    network: FixedNetwork
    bound: float


@dataclass(frozen=True)
class FitResult:
    """The result of a fit.

    Attributes:
        model: the fitted estimator.
        rmse: root mean square error on all rows; for a function, on random points that training did not see.
        tests: root mean square errors on test rows, one for each split; empty for a function.
        seen: the largest error on test rows, NaN without tests.
        unseen: targets and predictions of the test rows of all splits, concatenated.
        largest: the largest error against the function, with its bound for up to four inputs; None for a table.
        fixed: the network in fixed point, if requested.
        asked: the error that was requested, if any.
        tried: with a requested error, the hidden layers that were tried to the end or with success, and the smallest
            proved error of each.
        needed: if none is within the requested error, the number n for which n x n units probably are, extrapolated
            from the networks tried; infinite if their errors do not fall, NaN if it is not known.
        curve: the curve of the network, for one input.
        reduced: the curve with fewer pieces, for one input.
        missing: why that curve was not found, if it was not requested.
        stopped: whether the user stopped the search.
    """

    model: PLURegressor
    rmse: float
    tests: tuple[float, ...] = ()
    seen: float = math.nan
    unseen: tuple[Array, Array] = (np.empty(0), np.empty(0))
    largest: SupError | None = None
    fixed: Fixed | None = None
    asked: float | None = None
    tried: tuple[tuple[tuple[int, ...], float], ...] = ()
    needed: float = math.nan
    curve: Curve | None = None
    reduced: Reduced | None = None
    missing: str = ""
    stopped: bool = False

    @property
    def proved(self) -> float:
        """The proved bound on the distance between the written network and the function; infinite without one."""
        if self.largest is None or self.largest.bound is None:
            return math.inf
        rounding = 0.0 if self.fixed is None else self.fixed.bound
        return float(np.nextafter(self.largest.bound + rounding, math.inf))

    @property
    def missed(self) -> bool:
        """Whether an error was requested within which the written model is not proved to be."""
        if self.asked is None:
            return False
        if (few := self.reduced) is not None:
            return few.of == "f" and (few.bound is None or few.bound > self.asked)
        return self.proved > self.asked

    def interval(self) -> tuple[float, float]:
        """Return the mean of the errors on test rows, and half the width of its 95 % interval.

        The splits share training rows, so their errors are correlated: the variance of the mean is that of one error
        times 1 / n + (test rows) / (training rows), the correction of Nadeau and Bengio (2003; docs/glossary.md).
        """
        n = len(self.tests)
        spread = np.std(self.tests, ddof=1) * math.sqrt(1 / n + 1 / 4) if n > 1 else math.nan
        return float(np.mean(self.tests)), float(stdtrit(n - 1, 0.975) * spread)  # the quantile of Student's t


class _Stop:
    """Passes progress on, and remembers whether the callback or Ctrl-C asked to stop."""

    def __init__(self, progress: Watch) -> None:
        self.progress, self.what, self.asked = progress, "", False

    def __call__(self, done: float, best: float) -> bool:
        self.asked = bool(self.progress(self.what, done, best)) or self.asked
        return self.asked


class Watched(PLURegressor):
    """An estimator that reports to a `_Stop`, which can stop it; Ctrl-C is recorded there without a warning."""

    watch: _Stop
    problem: Problem | None = None

    def _formula(self, network: MLP, scales: Sequence[Scale]) -> Target | None:
        """Return the function of the problem in scaled inputs and outputs."""
        if self.problem is None or self.problem.expression is None:
            return None
        (x, y), f, sides = scales, self.problem.expression, self.problem.box

        def values(points: Array) -> Array:
            with np.errstate(all="ignore"):
                return y(f(*np.clip(points * x.spread + x.mean, *sides.T).T)[:, None])

        def worst(theta: Array) -> Array:
            exact = self._exact(in_units(network, theta, x, y), network)
            try:
                search = begin_search(f, exact, sides)
                rounds = iter(range(_ROUNDS))
                search.refine(None, lambda done, what: next(rounds, None) is None)
            except ValueError:  # numbers beyond 1e300
                return np.empty((0, len(sides)))
            return x(search.x[None])

        start = start_from_curve(network, values, x(sides.T).T, self.alpha, self.c)
        return Target(values, x(sides.T).T, worst, start)

    def _exact(self, theta: Array, network: MLP) -> Network:
        return exact(network, theta, self.alpha, self.c).member(0)

    def _progress(self, starts: int) -> Callable[[float, float], object]:
        return self.watch

    def _warn(self, note: str) -> None:
        self.watch.asked |= bool(note)


def fit_problem(problem: Problem, settings: FitSettings, progress: Watch = lambda what, done, best: False) -> FitResult:
    """Return the fitted problem; if `progress` returns true, or at Ctrl-C, return the best result so far."""
    stop = _Stop(progress)
    problem = _with_edges(problem) if can_minimax(problem, settings) else problem
    if settings.error is not None and len(problem.inputs) > 1:
        return _within(problem, settings, settings.error, stop)
    model = _train(problem, settings, np.arange(len(problem.y)), stop, f"{settings.starts} starts")
    model = model if problem.table is None else model[-1]
    tests = {} if problem.expression else _tests(problem, settings, stop)
    curve = model.curve_ if len(problem.inputs) == 1 and settings.activation in PIECEWISE else None
    few, missing = None, ""
    try:
        few = None if curve is None else reduce_pieces(problem, curve, settings.pieces, settings.error)
    except UserError as error:
        if settings.pieces is not None or settings.error is not None:
            raise
        missing = str(error)
    found = _judge(problem, settings, model, stop)
    return replace(found, **tests, asked=settings.error, curve=curve, reduced=few, missing=missing)


def _judge(problem: Problem, settings: FitSettings, model: PLURegressor, stop: _Stop) -> FitResult:
    """Return the model with its errors against the function, and with its fixed-point network if requested."""
    largest = None if problem.expression is None else _largest(problem.expression, problem, model, stop)
    fixed = None
    if settings.bits is not None:
        from plunit.pieces import error_bound, quantize

        try:
            numbers = quantize(model.network_, problem.box, bits=settings.bits)
            fixed = Fixed(numbers, float(error_bound(numbers)[0]))
        except ValueError as error:
            raise UserError(str(error)) from None
    x, y = (problem.x, problem.y) if problem.expression is None else _fresh_points(problem)
    rmse = root_mean_square(model.predict(x) - y)
    return FitResult(model, rmse, largest=largest, fixed=fixed, stopped=stop.asked)


def _within(problem: Problem, settings: FitSettings, error: float, stop: _Stop) -> FitResult:
    """Return the smallest network that is proved to be within the error, or the best one found."""
    found: list[FitResult] = []

    def attempt(hidden: tuple[int, ...], thorough: bool) -> float:
        if stop.asked:
            return math.nan
        starts = settings.starts * min(1.0, (16 / max(hidden)) ** 2)  # larger networks take longer
        starts = max(1, round(starts if thorough else starts / QUICK))
        what = f"{' x '.join(map(str, hidden))} units, {starts} starts"
        steps = ADAM_STEPS if thorough else ADAM_STEPS // 2
        one = replace(settings, hidden=hidden, starts=starts)
        try:
            model = _train(problem, one, np.arange(len(problem.y)), stop, what, steps)
            result = _judge(problem, one, model, stop)
        except KeyboardInterrupt:
            if not found:  # otherwise the results of earlier shapes are kept
                raise
            stop.asked = True
            return math.nan
        found.append(result)
        cut_short = result.stopped and result.proved > error  # more training could have helped
        return math.nan if cut_short else result.proved

    search = SizeSearch(attempt, len(problem.inputs), error)
    if settings.hidden:
        proved = attempt(settings.hidden, thorough=True)
        search.known |= {} if math.isnan(proved) else {settings.hidden: proved}
    else:
        search.run()
    within = [one for one in found if one.proved <= error]
    best = (
        min(within, key=lambda one: (one.model.theta_.shape[0], one.proved))
        if within
        else min(found, key=lambda one: one.proved)
    )
    tried = tuple(sorted(search.known.items(), key=lambda pair: search.weights(pair[0])))
    needed = math.nan if within else search.needed
    return replace(best, asked=error, tried=tried, needed=needed, stopped=stop.asked)


def _fresh_points(problem: Problem) -> tuple[Array, Array]:
    """Return random points of the box that training did not see, and the function there."""
    assert problem.expression is not None
    low, high = problem.box.T
    x = np.random.default_rng(2).uniform(low, high, (FRESH_POINTS, len(low)))
    y = problem.expression(*x.T)
    there = np.isfinite(y)
    return x[there], y[there]


def _with_edges(problem: Problem) -> Problem:
    """Return the problem with points added on faces, edges and corners, which random points never hit.

    Errors are largest there. The grid for two inputs already has such points.
    """
    inputs = len(problem.inputs)
    if inputs < 3 or problem.expression is None:
        return problem
    x = np.concatenate([problem.x, _on_faces(problem.box, len(problem.y) // 2)])
    return problem._replace(x=x, y=problem.expression(*x.T))


def _on_faces(box: Array, count: int) -> Array:
    """Return random points [count, in] on faces, edges and corners of a box: half of the numbers are ends."""
    rng, (low, high) = np.random.default_rng(1), box.T
    x = rng.uniform(low, high, (count, len(box)))
    return np.where(rng.random(x.shape) < 0.5, np.where(rng.random(x.shape) < 0.5, low, high), x)


def _train(
    problem: Problem,
    settings: FitSettings,
    rows: Array,
    stop: _Stop,
    what: str,
    steps: int = ADAM_STEPS,
) -> Any:
    """Return an estimator fitted to some rows: for text and missing values, a Pipeline that encodes them first."""
    model: Any = Watched(
        settings.hidden or ((8, 8) if len(problem.inputs) == 1 else (16, 16)),
        settings.activation,
        n_init=settings.starts,
        n_best=min(settings.best, settings.starts),
        max_iter=steps if problem.expression else None,
        weight_decay=0.0 if problem.expression else "auto",  # a function has no noise
        random_state=settings.seed,
        minimax=can_minimax(problem, settings),
    )
    watched, stop.what = model, what
    watched.watch, watched.problem = stop, problem
    if problem.table is None:
        model.fit(problem.x[rows], problem.y[rows])
    else:  # the encoder sees only these rows
        model = make_pipeline(clone(problem.encoder), model).fit(problem.table.x[rows], problem.y[rows])
    del watched.watch, watched.problem
    return model


def can_minimax(problem: Problem, settings: FitSettings) -> bool:
    """Whether the fit lowers the largest error: if requested, and if that error can be proved."""
    known = problem.expression is not None and len(problem.inputs) <= MOST_VARIABLES
    return settings.minimax and known and settings.activation in PIECEWISE


def _tests(problem: Problem, settings: FitSettings, stop: _Stop) -> dict[str, Any]:
    """Return `tests`, `seen` and `unseen` of the result; each model is tested on a random fifth it has not seen."""
    errors, pairs = [], [(np.empty(0), np.empty(0))]
    try:
        for split in range(settings.splits):
            order = np.random.default_rng([settings.seed, split]).permutation(len(problem.y))
            test, rows = np.split(order, [max(1, len(order) // 5)])
            if stop.asked:
                break
            model = _train(problem, settings, rows, stop, f"test {split + 1} of {settings.splits}")
            if not stop.asked:  # a model whose training was stopped says little about the others
                x = (problem.x if problem.table is None else problem.table.x)[test]
                with warnings.catch_warnings():  # text that the training rows lack is handled by its own rule
                    warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
                    predicted = model.predict(x)
                errors.append(root_mean_square(predicted - problem.y[test]))
                pairs.append((problem.y[test], predicted))
    except KeyboardInterrupt:  # the model exists; only tests are missing
        stop.asked = True
    y, predicted = (np.concatenate(part) for part in zip(*pairs, strict=True))
    largest = float(np.fmax.reduce(np.abs(predicted - y))) if errors else math.nan
    return {"tests": tuple(errors), "seen": largest, "unseen": (y, predicted)}


def _largest(f: Expression, problem: Problem, model: PLURegressor, stop: _Stop) -> SupError:
    """Return the largest error of the network, with a bound if possible."""
    why = f"it needs a piecewise-linear network and at most {MOST_VARIABLES} variables"
    if model.activation in PIECEWISE and len(problem.inputs) <= MOST_VARIABLES:
        try:
            search = begin_search(f, model.network_, problem.box)
        except ValueError as error:  # numbers beyond 1e300
            why = str(error)
        else:
            stop.what, before = "bounding the error", stop.asked
            try:
                search.refine(
                    SHORT_PROOF if before else PROOF, lambda done, what: stop(done, search.value) and not before
                )
            except KeyboardInterrupt:
                stop.asked = True
            return search.outcome()
    low, high = problem.box.T
    half = RANDOM_POINTS // 2
    x = np.random.default_rng(1).uniform(low, high, (half, len(low)))
    x = np.concatenate([x, _on_faces(problem.box, half)])  # errors are often largest there
    away = np.abs(model.predict(x) - f(*x.T))
    return SupError(float(away[np.isfinite(away)].max()), (), None, 0, why)
