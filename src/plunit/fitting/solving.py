"""Train the networks, measure the error, and find a curve with few pieces for problems of one input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from plunit.base.errors import UserError
from plunit.ensemble.mlp import PIECEWISE
from plunit.expressions import Expression, SupError, sup_error
from plunit.fitting.problems import Array, Problem, root_mean_square
from plunit.pieces import Curve, fit_segments, simplify
from plunit.sklearn import PLURegressor

SAMPLES = 100_000
"""So many random points show the error of a network of several inputs against a function."""

KNOTS = 2001
"""A function is followed by the straight lines between its values at so many points."""

Watch = Callable[[str, float, float], bool]
"""Called with what is done, the part of it that is done and the least loss; it returns whether to stop."""


@dataclass(frozen=True)
class FitSettings:
    """How to fit.

    Attributes:
        hidden: units of the hidden layers; () chooses 8, 8 for one input and 16, 16 for more.
        starts: random starts.
        best: how many of the best networks are averaged, at most `starts`.
        splits: of a table: on so many random fifths of the rows the error is tested.
        pieces: the number of pieces wanted, for one input.
        error: the error allowed, for one input.
        activation: of the networks.
        seed: of starts and splits.
    """

    hidden: tuple[int, ...] = ()
    starts: int = 256
    best: int = 1
    splits: int = 5
    pieces: int | None = None
    error: float | None = None
    activation: str = "plu"
    seed: int = 0


class Reduced(NamedTuple):
    """A curve with few pieces.

    Attributes:
        curve: the curve.
        of: what it is close to: "f", "the rows" or "the network".
        error: its largest distance from it; for "the rows" the root mean square error.
        bound: a proved bound of the error, if there is one.
    """

    curve: Curve
    of: str
    error: float
    bound: float | None = None


@dataclass(frozen=True)
class Found:
    """What was found.

    Attributes:
        model: the fitted estimator.
        rmse: root mean square error on all rows.
        tests: root mean square errors on test rows, one for each split; empty for a function.
        largest: the largest error against the function, with its bound for one input; None for a table.
        reduced: the curve with fewer pieces, for one input.
        missing: why there is no such curve, if it could not be found and was not asked for.
        stopped: whether the user stopped the search.
    """

    model: PLURegressor
    rmse: float
    tests: tuple[float, ...] = ()
    largest: SupError | None = None
    reduced: Reduced | None = None
    missing: str = ""
    stopped: bool = False

    @property
    def curve(self) -> Curve:
        """The exact curve of a model with one input."""
        found: Curve = self.model.curve_
        return found

    def interval(self) -> tuple[float, float]:
        """Return mean and half the width of the 95 % interval of the errors on test rows."""
        n = len(self.tests)
        spread = np.std(self.tests, ddof=1) / math.sqrt(n) if n > 1 else math.nan
        return float(np.mean(self.tests)), float(stdtrit(n - 1, 0.975) * spread)  # the quantile of Student's t


class _Stop:
    """Passes progress on, and remembers whether it, or Ctrl-C, asked to stop."""

    def __init__(self, progress: Watch) -> None:
        self.progress, self.what, self.asked = progress, "", False

    def __call__(self, done: float, best: float) -> bool:
        self.asked = bool(self.progress(self.what, done, best)) or self.asked
        return self.asked


class Watched(PLURegressor):
    """An estimator that reports to, and is stopped by, a `_Stop`; it notes Ctrl-C there instead of warning of it."""

    watch: _Stop

    def _progress(self, starts: int) -> Callable[[float, float], object]:
        return self.watch

    def _warn(self, note: str) -> None:
        self.watch.asked |= bool(note)


def solve(problem: Problem, settings: FitSettings, progress: Watch = lambda what, done, best: False) -> Found:
    """Fit the problem; when `progress` returns true, or at Ctrl-C, return what has been found so far."""
    stop = _Stop(progress)
    model = _trained(problem, settings, np.arange(len(problem.y)), stop, f"{settings.starts} starts")
    tests = () if problem.expression else tuple(_tests(problem, settings, stop))
    curve = model.curve_ if len(problem.inputs) == 1 and settings.activation in PIECEWISE else None
    few, missing = None, ""
    try:
        few = None if curve is None else reduced(problem, curve, settings.pieces, settings.error)
    except UserError as error:
        if settings.pieces is not None or settings.error is not None:
            raise
        missing = str(error)
    largest = _largest(problem.expression, problem, model, curve) if problem.expression else None
    return Found(model, _rmse(model, problem.x, problem.y), tests, largest, few, missing, stop.asked)


def _trained(problem: Problem, settings: FitSettings, rows: Array, stop: _Stop, what: str) -> PLURegressor:
    model = Watched(
        settings.hidden or ((8, 8) if len(problem.inputs) == 1 else (16, 16)),
        settings.activation,
        n_init=settings.starts,
        n_best=settings.best,
        max_iter=6000 if problem.expression else None,
        weight_decay=0.0 if problem.expression else "auto",  # a function has no noise
        random_state=settings.seed,
    )
    model.watch, stop.what = stop, what
    model.fit(problem.x[rows], problem.y[rows])
    del model.watch
    return model


def _tests(problem: Problem, settings: FitSettings, stop: _Stop) -> list[float]:
    """Return the errors on a random fifth of the rows of models that did not see it."""
    errors = []
    try:
        for split in range(settings.splits):
            order = np.random.default_rng([settings.seed, split]).permutation(len(problem.y))
            test, rows = np.split(order, [max(1, len(order) // 5)])
            if stop.asked:
                break
            model = _trained(problem, settings, rows, stop, f"test {split + 1} of {settings.splits}")
            if not stop.asked:  # a model whose training was cut short says little about the others
                errors.append(_rmse(model, problem.x[test], problem.y[test]))
    except KeyboardInterrupt:  # the model is there; only tests are missing
        stop.asked = True
    return errors


def _rmse(model: PLURegressor, x: Array, y: Array) -> float:
    return root_mean_square(model.predict(x) - y)


def _largest(f: Expression, problem: Problem, model: PLURegressor, curve: Curve | None) -> SupError:
    if curve is not None:
        return sup_error(f, curve, problem.box)
    low, high = problem.box.T
    x = np.random.default_rng(1).uniform(low, high, (SAMPLES, len(problem.inputs)))
    return SupError(float(np.abs(model.predict(x) - f(*x.T)).max()), (), None, 0)


def reduced(problem: Problem, curve: Curve, pieces: int | None, error: float | None) -> Reduced:
    """Return the curve with `pieces` pieces, or with the fewest within `error`, or what shows most with few pieces.

    For a function it is close to the function itself. For a table with `pieces`, or with neither, it is fitted to the
    rows. For a table with `error` it is within the error of the network.
    """
    try:
        if problem.expression is not None:
            return _of_function(problem.expression, curve, pieces, error)
        if error is not None:
            found = simplify(curve, tolerance=error)
            return Reduced(found.curve, "the network", found.error)
        fitted = fit_segments(problem.x[:, 0], problem.y, pieces).curve
    except ValueError as wrong:
        raise UserError(str(wrong)) from None
    return Reduced(fitted, "the rows", root_mean_square(fitted(problem.x[:, 0])[:, 0] - problem.y))


def _of_function(f: Expression, curve: Curve, pieces: int | None, error: float | None) -> Reduced:
    low, high = float(curve.knots[0]), float(curve.knots[-1])
    x = np.linspace(low, high, KNOTS)
    y = f(x)
    dense = Curve(x, y[:, None], (np.diff(y) / np.diff(x))[:, None])
    if pieces is None:
        away = sup_error(f, dense, [(low, high)])
        reach = away.value if away.bound is None else away.bound
        # as good as the network by default
        allowed = sup_error(f, curve, [(low, high)]).value if error is None else error
        if reach >= allowed:
            away_from = f"{KNOTS - 1} straight lines through the function are {reach:.3g} away from it"
            if error is None:
                raise UserError(f"no curve with the fewest pieces: {away_from}. Take a shorter interval")
            raise UserError(
                f"an error of {error:.3g} is too small: {away_from}. Take a larger error or a shorter interval"
            )
        found = simplify(dense, tolerance=allowed - reach).curve
    else:
        found = simplify(dense, pieces=pieces).curve
    distance = sup_error(f, found, [(low, high)])
    return Reduced(found, "f", distance.value, distance.bound)
