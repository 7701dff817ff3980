"""The best of many starts and numbers of blocks: train all for a while, go on with the better half, and so on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from plunit.densities import native, stepping
from plunit.densities.architecture import Architecture, start
from plunit.densities.state import Member, Sample, Steps, begin
from plunit.ensemble.arrays import Array
from plunit.ensemble.build import library
from plunit.ensemble.compiling import Unavailable
from plunit.ensemble.halving import RUNGS
from plunit.ensemble.pacing import Pace

ENGINES: dict[str, Callable[[Sequence[Member], Steps], None]] = {"native": native.advance, "numpy": stepping.advance}

SHARPENED = 0.9
"""With `anneal`, the corners are gone after this part of the steps."""

Progress = Callable[[float, float], object]


def search(
    architectures: Sequence[Architecture],
    training: Sample,
    validation: Sample,
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
        training: the points to train on, in random order, float32.
        validation: the points that decide.
        starts: members of each form.
        steps: for those that are trained to the end.
        keep: so many members, and no fewer, are trained to the end.
        batch: points of a step.
        lr: Adam's step size; it falls to 0 by a half cosine.
        seed: member i of form j starts with the generator of (seed, j, i).
        anneal: with kinks, begin with rounded corners: rho falls from 0.9 to 0.02, then to 0.
        every: steps from one look at the points of validation to the next; 0 looks 100 times.
        patience: a member ends after so many looks without a better one.
        engine: "native" or "numpy"; by default native where possible.
        progress: called now and then with the part of the work that is done and the least loss so far. If it returns
            true, the search ends with what it has found.

    The loss is the mean of |z|^2 / 2 - log|det dz/dx|: the negative log-likelihood without n/2 log(2 pi).
    """
    advance = ENGINES[_engine(engine)]
    every = every or max(1, steps // 100)
    members = [
        _begin(form, steps // every, np.random.default_rng([seed, j, i]), anneal)
        for j, form in enumerate(architectures)
        for i in range(starts)
    ]
    rate, rho = lr * 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps)), roundings(steps) if anneal else np.zeros(steps)
    marks = sorted({*(math.ceil(part * steps) for part in RUNGS), steps, *np.flatnonzero(np.diff(rho == 0)) + 1})
    plan = Steps(rate, training, batch, rho, validation, every, patience)
    ended: list[Member] = []
    work, done, first, pace = _work(members, steps, keep), 0.0, 0, Pace()
    while members and first < steps:
        last = pace.next(first, min(mark for mark in marks if mark > first))
        advance(members, replace(plan, rate=rate[first:last], rho=rho[first:last]))
        done += (last - first) * sum(member.architecture.parameters for member in members)
        stop, first = progress(min(done / work, 0.99), min(one.loss for one in (*members, *ended))), last
        if stop and last >= every:  # before the first look nothing is known
            break
        if last < steps and rho[last - 1] > 0 and rho[last] == 0:
            for member in members:
                _forget(member)
        elif last in marks[:-1]:
            members, worse = _halved(members, keep)
            ended += worse
    progress(1.0, min(one.loss for one in (*members, *ended)))
    return sorted(members, key=_rank) + sorted(ended, key=_rank)


def roundings(steps: int) -> Array:
    """Return rho of each step: from 0.9 to 0.02 geometrically, then 0."""
    part = np.arange(steps) / max(1, steps) / SHARPENED
    return np.where(part < 1, 0.9 * (0.02 / 0.9) ** part, 0.0)


def _begin(form: Architecture, looks: int, rng: np.random.Generator, anneal: bool) -> Member:
    return begin(form, start(form, rng), int(rng.integers(2**63)), looks)


def _forget(member: Member) -> None:
    """Begin the record anew: with its corners gone the network is another one, and so are its losses."""
    member.record[...] = [math.inf, math.inf, 0, 0]
    member.average[...] = member.theta


def _rank(member: Member) -> tuple[bool, float]:
    return math.isnan(member.loss), member.loss


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


def _engine(asked: str | None) -> str:
    """Return the engine that is asked for, or the faster one that works; a warning says why it is the slow one."""
    if asked is not None:
        if asked not in ENGINES:
            raise ValueError(f"unknown engine {asked!r}; choose one of {', '.join(ENGINES)}")
        return asked
    try:
        library("chain")
    except Unavailable as reason:
        warnings.warn(f"{reason}. Training runs in NumPy, which is slower.", stacklevel=3)
        return "numpy"
    return "native"
