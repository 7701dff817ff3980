"""The best of many starts and numbers of blocks: train all for a while, go on with the better half, and so on.

This is successive halving (Jamieson and Talwalkar, 2016; docs/literature.md).
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plunit.base.stopping import Pace, Progress, interruption, listening
from plunit.densities import native_chain, numpy_chain
from plunit.densities.architecture import Architecture, start
from plunit.densities.chain_state import Member, MemberSteps, begin
from plunit.densities.sample import Sample, check_spread, checked
from plunit.ensemble.arrays import Array, as_count
from plunit.ensemble.halving import RUNGS
from plunit.programs.compiling import CannotCompile
from plunit.programs.loading import library

Advance = Callable[[Sequence[Member], MemberSteps], None]

ENGINES: dict[str, Advance] = {
    "native": native_chain.advance,
    "numpy": numpy_chain.advance,
}

SHARPENED = 0.9
"""With `anneal`, the corners are gone after this part of the steps."""


class NoFiniteStart(ValueError):
    """No start gave finite numbers."""


def search(
    architectures: Sequence[Architecture],
    training: Sample | Array,
    validation: Sample | Array,
    *,
    starts: int,
    steps: int,
    keep: int = 1,
    batch: int = 128,
    lr: float = 0.01,
    seed: int = 0,
    anneal: bool = False,
    every: int = 0,
    patience: float = math.inf,
    engine: str | None = None,
    progress: Progress = lambda done, best: None,
) -> list[Member]:
    """Train `starts` members of each architecture, and return all of them, the best first.

    Args:
        architectures: the forms.
        training: the points to train on, in random order; an array [rows, n] stands for a `Sample` of it.
        validation: the points that decide.
        starts: members of each form.
        steps: for those that are trained to the end.
        keep: so many members, and no fewer, are trained to the end.
        batch: points of a step, at most all of them.
        lr: Adam's step size; it falls to 0 by a half cosine.
        seed: member i of form j starts with the generator of (seed, j, i).
        anneal: for "plu": begin with rounded corners; rho falls from 0.9 to 0.02, then to 0.
        every: steps from one look at the points of validation to the next; 0 looks 100 times.
        patience: a member stands still after so many looks without a better one. Looks while corners are rounded by
            `anneal` do not count.
        engine: "native" or "numpy"; by default native where possible.
        progress: called now and then with the part of the work that is done and the least loss so far. If it returns
            true, the search ends with what it has found. So it does, with a warning, at Ctrl-C; before the first look
            Ctrl-C raises.

    The loss is the mean of |z|^2 / 2 - log|det dz/dx|: the negative log-likelihood without n/2 log(2 pi).

    >>> x = np.random.default_rng(0).standard_normal((1000, 2)) * [1.0, 0.5]
    >>> best, *others = search([Architecture(2, 4)], Sample(x[:800]), Sample(x[800:]), starts=4, steps=200)
    >>> best.network().log_prob(x[:5]).shape, len(others), bool(best.loss <= others[0].loss)
    ((5,), 3, True)
    """
    _check(architectures, anneal, lr, patience, seed, steps=steps, starts=starts, keep=keep, batch=batch)
    n = architectures[0].features
    given, decide = checked(training, n, "training"), checked(validation, n, "validation")
    check_spread(given)
    every = as_count("every", every) or max(1, steps // 100)
    plan = MemberSteps(
        rate=lr * 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps)),
        training=given,
        batch=min(batch, len(given.x)),
        rho=roundings(steps) if anneal else np.zeros(steps),
        tests=decide,
        every=every,
        patience=patience,
    )
    members = [
        _begin(form, steps // every, np.random.default_rng([seed, j, i]))
        for j, form in enumerate(architectures)
        for i in range(starts)
    ]
    advance = ENGINES[engine_for(engine)]
    with listening() as ctrl_c:
        found = sorted(_trained(members, plan, keep, advance, ctrl_c.ending(progress)), key=_rank)
    if ctrl_c.pressed:
        warnings.warn(interruption((one.steps for one in found), steps, "the best so far"), stacklevel=2)
    if not math.isfinite(found[0].loss):
        raise NoFiniteStart(f"no start gave finite numbers; standardise the columns, or take a smaller lr than {lr}")
    return found


def roundings(steps: int) -> Array:
    """Return rho of each step: from 0.9 to 0.02 geometrically, then 0.

    >>> roundings(4).round(2)
    array([0.9 , 0.13, 0.02, 0.  ])
    """
    rounded = math.floor(SHARPENED * steps)
    return np.concatenate([np.geomspace(0.9, 0.02, rounded), np.zeros(steps - rounded)])


def _trained(
    members: list[Member],
    plan: MemberSteps,
    keep: int,
    advance: Advance,
    progress: Progress,
) -> list[Member]:
    """Take all steps; return all members, in no order."""
    steps, rho, everyone = plan.count, plan.rho, list(members)
    rungs = [min(steps, math.ceil(part * steps / plan.every) * plan.every) for part in RUNGS]
    sharp = int((rho > 0).sum())  # the first step with kinks
    work, done, first, stop, pace = _work(members, steps, keep), 0.0, 0, False, Pace()
    while first < steps and not stop:
        last = pace.next(first, min(mark for mark in (*rungs, sharp) if mark > first))
        # while corners shrink, each look is at another function: none of them says that a member is at its end
        patience = math.inf if first < sharp else plan.patience
        advance(members, replace(plan, rate=plan.rate[first:last], rho=rho[first:last], patience=patience))
        done += (last - first) * sum(member.architecture.parameters for member in members)
        first = last
        stop = bool(progress(min(done / work, 0.99), min(one.loss for one in everyone)))
        if first == sharp:
            _sharpen(members, plan.tests)
        if first in rungs[:-1]:
            members, worse = _halved(members, keep)
            _sharpen(worse if first < sharp else [], plan.tests)
    if first < sharp:
        _sharpen(members, plan.tests)
    _sharpen([one for one in everyone if one.best_step == 0], plan.tests)  # no look yet
    progress(1.0, min(one.loss for one in everyone))
    return everyone


def _sharpen(members: Sequence[Member], validation: Sample | None) -> None:
    """Begin the records anew with the running means as they are without corners: other networks, other losses."""
    for member in members:
        member.best[...] = member.average
        with np.errstate(all="ignore"):  # members that diverge
            loss = numpy_chain.mean_loss(member.network(), validation) if validation else math.inf
        member.loss = float(member.theta.dtype.type(loss)) if math.isfinite(loss) else math.inf
        member.best_step, member.mark, member.waited = member.steps, math.inf, 0


def _begin(form: Architecture, looks: int, rng: np.random.Generator) -> Member:
    return begin(form, start(form, rng), int(rng.integers(2**63)), looks)


def _rank(member: Member) -> float:
    return member.loss


def _halved(members: list[Member], keep: int) -> tuple[list[Member], list[Member]]:
    """Return the better half and the worse one."""
    count = max(keep, len(members) // 2)
    order = sorted(members, key=_rank)
    return order[:count], order[count:]


def _work(members: list[Member], steps: int, keep: int) -> float:
    """Estimate the steps of all rungs, times the parameters of their members; forms are taken to end alike."""
    count, total, previous = len(members), 0.0, 0.0
    for part in RUNGS:
        total += count / len(members) * (part - previous)
        previous, count = part, min(count, max(keep, count // 2))
    return total * steps * sum(member.architecture.parameters for member in members)


def _check(
    architectures: Sequence[Architecture], anneal: bool, lr: float, patience: float, seed: Any, **counts: Any
) -> None:
    """Raise ValueError unless a search can be run with these options."""
    for name, value in counts.items():
        as_count(name, value, 1)
    if not isinstance(architectures, Sequence) or not all(isinstance(form, Architecture) for form in architectures):
        raise ValueError(
            f"architectures must be a list of Architecture, such as [Architecture(2, 4)], got {architectures!r}"
        )
    if not architectures:
        raise ValueError("architectures must hold one Architecture or more, got none")
    if len({form.features for form in architectures}) > 1:
        raise ValueError(
            f"all architectures must have the same features, got {[one.features for one in architectures]}"
        )
    if anneal and {form.activation for form in architectures} != {"plu"}:
        raise ValueError('anneal is for the activation "plu": "smooth" learns its rounding, "leaky" has none')
    if not (_is_number(lr) and 0 < lr < math.inf):
        raise ValueError(f"lr must be positive and finite, got {lr!r}; the default is 0.01")
    if not (_is_number(patience) and patience > 0):
        raise ValueError(f"patience must be positive, got {patience!r}")
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"seed must be an integer of 0 or more, got {seed!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def engine_for(asked: str | None) -> str:
    """Return the engine that is asked for, or the faster one that works; a warning says why it is the slow one."""
    if asked is not None:
        if asked not in ENGINES:
            raise ValueError(f"unknown engine {asked!r}; choose one of {', '.join(ENGINES)}")
        return asked
    try:
        library("chain")
    except CannotCompile as reason:
        warnings.warn(f"{reason}. Training runs in NumPy, which is slower.", stacklevel=3)
        return "numpy"
    return "native"
