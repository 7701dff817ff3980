"""A second-order finish: after Adam, Levenberg-Marquardt steps bring a least-squares fit close to its optimum.

Let r be the residuals of a member, each times the root of its row's weight, and J their Jacobian in its parameters. A
step leads to

    theta - (J^T J + damping D)^-1 J^T r,    D = diag(J^T J) + LIFT mean(diag(J^T J))

in float64 (Levenberg, 1944; Marquardt, 1963; docs/glossary.md). A step is kept only if the loss falls; then the damping
falls, otherwise it rises. So no loss ever rises, and Ctrl-C keeps the parameters so far.

J has one column for each parameter, and J^T J takes rows x parameters^2 operations: this is for small networks.
`_native` calls programs/csrc/squares.h; `_numpy` states the same steps in NumPy.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plunit import learned
from plunit.base.machine import processors
from plunit.base.progress import Pace, Progress, interruption
from plunit.base.ranges import as_count, as_positive
from plunit.ensemble import numpy_steps
from plunit.ensemble.arrays import Array, as_array
from plunit.ensemble.mlp import MLP
from plunit.ensemble.native_steps import form
from plunit.ensemble.training_data import Data, Rows, StepData, check_numbers, points
from plunit.ensemble.training_state import State, initial_state
from plunit.programs.interface import Squares, call_program, run_on_threads
from plunit.programs.libraries import choose_engine, library

DAMPING = 1e-3
"""The initial damping of members that Adam has trained."""

LIFT = 1e-3  # so that a parameter without effect moves little

EASIER, HARDER = 0.25, 4.0
"""The factors of the damping after a step that is kept, and after one that is not."""

FLOOR, HARDEST = 1e-14, 1e12  # the damping stays above the first; a member stops when it exceeds the second

PATIENCE = 12
"""A member stops after this number of steps in a row that do not lower its loss by the fraction `TOLERANCE`."""

TOLERANCE = 1e-6

_BLOCK = 256  # rows whose Jacobian is in memory at once, in NumPy


@dataclass
class Finish:
    """The state of members during and after the finish.

    Attributes:
        theta: the parameters [parameters, S], in float64.
        loss: the weighted mean square error of each on its rows [S].
        steps: the number of steps each has taken [S]; a member that stalls stops early.
        damping: the damping of the next step of each [S].
        waited: the number of steps in a row that have not lowered the loss [S].
        unit: for a power above 2, the largest error of each at the start [S].
        power: the power of the errors.
    """

    theta: Array
    loss: Array
    steps: Array
    damping: Array
    waited: Array
    unit: Array
    power: int = 2

    def copy(self) -> Finish:
        """Return a copy that shares no array with this one."""
        parts: dict[str, Any] = {
            name: np.array(part, order="C") for name, part in vars(self).items() if name != "power"
        }
        return replace(self, **parts)


def finish_members(
    network: MLP,
    theta: Any,
    data: Data | Rows,
    *,
    steps: int,
    alpha: Any = 0.1,
    c: Any = 1.0,
    damping: float = 0.1,
    power: int = 2,
    engine: str | None = None,
    progress: Progress = lambda done, best: None,
    interrupted: Callable[[], object] | None = None,
) -> Finish:
    """Lower every member's mean square error by up to `steps` Levenberg-Marquardt steps on all of its points.

    Args:
        network: the form of the members.
        theta: the start [parameters, S], or the result of an earlier call, to continue it; not changed. A member that
            is not finite is returned as it is.
        data: a fixed batch or the `Rows` of a table; every step uses all of them.
        steps: the maximum number of steps of a member.
        alpha: the outer slope of PLU; a number, [S] or [depth - 1, S].
        c: the half-width of its inner piece, in the same shapes.
        damping: the damping of the first step: 0.001 suits trained members, 0.1 others.
        power: lower the mean of |error|^power, with errors in units of the largest one at the start; 2 is the mean
            square error. The larger the power, the more the largest errors count.
        engine: "native" (compiled) or "numpy"; by default native if possible.
        progress: called now and then with the fraction of the steps done and the lowest loss; if it returns true, the
            steps end.
        interrupted: called if Ctrl-C ended the steps; the default is a warning. The parameters so far are returned.

    One thread computes each member. So with the compiled program its bits depend only on its own start and rows; with
    NumPy they may depend on the number of BLAS threads.

    >>> from plunit.ensemble import MLP, initial
    >>> x = np.linspace(-3, 3, 60)[None]
    >>> network = MLP((1, 6, 1), "tanh")
    >>> start = initial(network, [np.random.default_rng(seed) for seed in range(4)])
    >>> bool(finish_members(network, start, (x, np.sin(x)), steps=60).loss.min() < 1e-5)
    True
    """
    as_count("steps", steps)
    as_count("power", power, 2, 1024)
    as_positive("damping", damping, 0.1)
    if not isinstance(data, (Rows, tuple, list)):
        raise ValueError(
            f"data must be a pair (inputs, targets) or Rows, got {type(data).__name__}; a finish needs all points"
        )
    earlier = theta if isinstance(theta, Finish) else None
    theta = earlier.theta if earlier else as_array(theta, np.float64, "theta")
    state = initial_state(network, theta, steps=0, alpha=alpha, c=c)
    whole = Rows(data.x, data.y, data.weight) if isinstance(data, Rows) else data
    given = points(whole, 1, network, state.theta)
    check_numbers(given, "square", table=isinstance(data, Rows))
    advance = _native if choose_engine(engine) == "native" else _numpy
    members = state.members
    zero, first = np.zeros(members, np.int64), np.full(members, float(damping))
    now = earlier or Finish(state.theta, np.full(members, np.inf), zero, first, zero, np.ones(members), power)
    taken, pace = 0, Pace()
    try:
        while True:
            stop = pace.next(taken, steps)
            after = now.copy()
            advance(state, given, after, stop - taken)
            now, taken = after, stop
            over = progress(taken / max(steps, 1), float(np.nanmin(now.loss, initial=np.inf)))
            if over or taken == steps or (now.waited >= PATIENCE).all():
                return now
    except KeyboardInterrupt:
        if interrupted is None:
            warnings.warn(interruption(taken, steps), stacklevel=2)
        else:
            interrupted()
        return now


def square_losses(network: MLP, theta: Any, data: Data | Rows, **options: Any) -> Array:
    """Return the mean square error of each member on its points [S], in float64; options as of `finish_members`."""
    return finish_members(network, theta, data, steps=0, **options).loss


def affordable_steps(network: MLP, rows: int, members: int, operations: float) -> int:
    """Return how many steps of `members` members take this number of operations (J^T J and its factorisation).

    >>> affordable_steps(MLP((1, 9, 1)), 200, 4, 1e8)
    112
    """
    p = network.parameters
    return int(operations / (p * p * (rows * network.widths[-1] + 3 * p) * members))


def _native(state: State, given: StepData, now: Finish, steps: int) -> None:
    """Take steps in place by the compiled program; threads share the members."""
    network = state.network
    arrays = [np.moveaxis(part[0], (0, 1, 2), (2, 1, 0)) for part in (given.x, given.y)]  # [S or 1, rows, units]
    members = max(len(part) for part in arrays)
    x, y = (np.array(np.broadcast_to(part, (members, *part.shape[1:])), order="C") for part in arrays)
    theta = np.array(now.theta.T, order="C")
    task = Squares(
        members=state.members,
        **form(network),
        parameters=network.parameters,
        learned=network.learned,
        limit=learned.LIMIT,
        rows=x.shape[1],
        apart=x.shape[1] if members > 1 else 0,
        x=x,
        y=y,
        weight=None if given.weight is None else np.array(given.weight.ravel(), order="C"),
        alpha=np.array(state.alpha.T, order="C"),
        c=np.array(state.c.T, order="C"),
        power=now.power,
        unit=now.unit,
        steps=steps,
        patience=PATIENCE,
        tolerance=TOLERANCE,
        lift=LIFT,
        easier=EASIER,
        harder=HARDER,
        hardest=HARDEST,
        floor=FLOOR,
        theta=theta,
        loss=now.loss,
        damping=now.damping,
        waited=now.waited,
        taken=now.steps,
    )
    counter = ctypes.c_int64(0)
    call = library().plunit_squares, ctypes.byref(task), ctypes.byref(counter)

    def work() -> None:
        known = call_program(*call)
        assert known, f"programs/csrc/activations.h lacks {network.activation}"

    run_on_threads(work, min(processors(), state.members))
    now.theta = theta.T


def _numpy(state: State, given: StepData, now: Finish, steps: int) -> None:
    """Take steps in place in NumPy, one member after the other, as the compiled program does."""
    with np.errstate(all="ignore"):
        for i in range(state.members):
            x, y = (part[..., [i if part.shape[3] > 1 else 0]] for part in (given.x, given.y))
            _advance_member(state.select([i]), StepData(x, y, given.weight), now, i, steps)


def _advance_member(state: State, given: StepData, now: Finish, i: int, steps: int) -> None:
    if not now.steps[i]:
        if now.power > 2:
            blocks = _blocks(state, given, now.theta[:, [i]])
            most = max(float(np.abs(numpy_steps.outputs(own, x) - y).max()) for own, x, y, _ in blocks)
            now.unit[i] = most if most > 0 else 1.0
        now.loss[i] = _loss(state, given, now.theta[:, [i]], now.power, now.unit[i])
    normal = None
    for _ in range(steps):
        if not np.isfinite(now.loss[i]) or now.damping[i] > HARDEST:
            now.waited[i] = PATIENCE
        if now.waited[i] >= PATIENCE:
            return
        if normal is None:
            normal = _normal(state, given, now.theta[:, [i]], now.power, now.unit[i])
        trial = now.theta[:, [i]] - _step(normal, now.damping[i])[:, None]
        found, before = _loss(state, given, trial, now.power, now.unit[i]), now.loss[i]
        now.waited[i] = 0 if found < before * (1 - TOLERANCE) else now.waited[i] + 1
        if found < before:
            now.theta[:, [i]], now.loss[i], normal = trial, found, None
            now.damping[i] = max(now.damping[i] * EASIER, FLOOR)
        else:
            now.damping[i] *= HARDER
        now.steps[i] += 1


def _blocks(state: State, given: StepData, theta: Array) -> Iterator[tuple[State, Array, Array, Array]]:
    """Yield the member with blocks of its rows: inputs, targets, and the root of each row's weight in the loss."""
    own = replace(state, theta=theta)
    x, y = (np.moveaxis(part[0], -1, 0) for part in (given.x, given.y))
    count = x.shape[2]
    weight = np.ones(count) if given.weight is None else given.weight.ravel()
    root = np.sqrt(weight / (count * y.shape[1]))
    for first in range(0, count, _BLOCK):
        rows = slice(first, first + _BLOCK)
        yield own, x[..., rows], y[..., rows], root[rows]


def _loss(state: State, given: StepData, theta: Array, power: int, unit: float) -> float:
    total = 0.0
    for own, x, y, root in _blocks(state, given, theta):
        away = numpy_steps.outputs(own, x) - y
        total += float(((away * root) ** 2 if power == 2 else root**2 * np.abs(away / unit) ** power).sum())
    return total


def _normal(state: State, given: StepData, theta: Array, power: int, unit: float) -> Array:
    """Return [J r]^T [J r] of a member, [parameters + 1, parameters + 1].

    Rows are scaled by the root of |r|^(power - 2). The second derivative of |r|^power has the factor power - 1, by
    which r is divided here.
    """
    size = state.network.parameters + 1
    total = np.zeros((size, size))
    for own, x, y, root in _blocks(state, given, theta):
        outputs, slopes = numpy_steps.jacobian(own, x)
        for at, one in enumerate(slopes[:, :, 0]):
            away = (outputs - y)[0, [at]]
            factor = root if power == 2 else root * np.abs(away / unit) ** (power / 2 - 1)
            both = np.concatenate([one, away / (power - 1)]) * factor
            total += both @ both.T
    return total


def _step(normal: Array, damping: float) -> Array:
    """Return (J^T J + damping D)^-1 J^T r, or infinities if the matrix is not positive definite."""
    gram, right = normal[:-1, :-1], normal[:-1, -1]
    diagonal = np.diag(gram)
    try:
        factor = np.linalg.cholesky(gram + np.diag(damping * (diagonal + LIFT * diagonal.mean())))
    except np.linalg.LinAlgError:
        return np.full_like(right, np.inf)
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, right)))
