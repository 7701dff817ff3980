"""Train the networks, measure the error, and find the fewest pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from plunit.base.errors import UserError
from plunit.ensemble.mlp import PIECEWISE
from plunit.expressions import SupError, sup_error
from plunit.fitting.problems import Array, Problem, root_mean_square
from plunit.fitting.reducing import Reduced, reduced
from plunit.pieces import Curve
from plunit.sklearn import PLURegressor

SAMPLES = 100_000
"""So many random points show the error of a network of several inputs against a function."""

Progress = Callable[[str, float, float], bool]
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
    stopped: bool = field(default=False)

    @property
    def curve(self) -> Curve:
        """The exact curve of a model with one input."""
        found: Curve = self.model.curve_
        return found

    def interval(self) -> tuple[float, float]:
        """Return mean and half the width of the 95 % interval of the errors on test rows."""
        n = len(self.tests)
        if n < 2:
            return float(np.mean(self.tests)), math.nan
        spread = np.std(self.tests, ddof=1) / math.sqrt(n)
        return float(np.mean(self.tests)), float(stdtrit(n - 1, 0.975) * spread)  # the quantile of Student's t


class Watched(PLURegressor):
    """An estimator that reports to, and is stopped by, a `_Stop`; it notes Ctrl-C there instead of warning of it."""

    watch: _Stop
    what = ""

    def _progress(self, starts: int) -> Callable[[float, float], object]:
        return self.watch.during(self.what)

    def _warn(self, note: str) -> None:
        self.watch.asked |= bool(note)


def solve(problem: Problem, settings: FitSettings, progress: Progress = lambda what, done, best: False) -> Found:
    """Fit the problem; when `progress` returns true, or at Ctrl-C, return what has been found so far."""
    stop = _Stop(progress)
    model = _trained(problem, settings, np.arange(len(problem.y)), stop, f"{settings.starts} starts")
    tests = () if problem.expression else tuple(_tests(problem, settings, stop))
    curve = model.curve_ if len(problem.inputs) == 1 and settings.activation in PIECEWISE else None
    return Found(
        model,
        _rmse(model, problem.x, problem.y),
        tests,
        _largest(problem, model, curve) if problem.expression else None,
        *(_reduced(problem, curve, settings) if curve is not None else (None, "")),
        stop.asked,
    )


def _reduced(problem: Problem, curve: Curve, settings: FitSettings) -> tuple[Reduced | None, str]:
    """Return the curve with fewer pieces; or None and why, if nobody asked for it."""
    try:
        return reduced(problem, curve, settings.pieces, settings.error), ""
    except UserError as error:
        if settings.pieces is None and settings.error is None:
            return None, str(error)
        raise


class _Stop:
    """Passes progress on, and remembers whether it, or Ctrl-C, asked to stop."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.asked = progress, False

    def during(self, what: str) -> Callable[[float, float], object]:
        def call(done: float, best: float) -> bool:
            self.asked = bool(self.progress(what, done, best)) or self.asked
            return self.asked

        return call


def _trained(problem: Problem, settings: FitSettings, rows: Array, stop: _Stop, what: str) -> PLURegressor:
    hidden = settings.hidden or ((8, 8) if len(problem.inputs) == 1 else (16, 16))
    model = Watched(
        hidden,
        settings.activation,
        n_init=settings.starts,
        n_best=settings.best,
        max_iter=6000 if problem.expression else None,
        weight_decay=0.0 if problem.expression else "auto",  # a function has no noise
        random_state=settings.seed,
    )
    model.watch, model.what = stop, what
    model.fit(problem.x[rows], problem.y[rows])
    del model.watch, model.what
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


def _largest(problem: Problem, model: PLURegressor, curve: Curve | None) -> SupError:
    assert problem.expression is not None
    if curve is not None:
        return sup_error(problem.expression, curve, *problem.box[0].tolist())
    low, high = problem.box.T
    x = np.random.default_rng(1).uniform(low, high, (SAMPLES, len(problem.inputs)))
    errors = np.abs(model.predict(x) - problem.expression(*x.T))
    return SupError(float(errors.max()), math.nan, None, 0)
