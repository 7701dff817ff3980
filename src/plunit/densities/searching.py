"""The best density of many starts and numbers of blocks, by successive halving (`plunit.ensemble.halving`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plunit.base.progress import Progress, interruption
from plunit.base.ranges import as_count
from plunit.densities import chain, numpy_chain
from plunit.densities.chain import Member, MemberSteps, Sample, check_spread, initial_member, mean_loss, prepare_sample
from plunit.densities.density_network import Architecture, start
from plunit.ensemble.adam import half_cosine
from plunit.ensemble.arrays import Array
from plunit.ensemble.halving import estimate_work, halve
from plunit.programs.libraries import choose_engine

Advance = Callable[[Sequence[Member], MemberSteps, int | None], None]

_ENGINES: dict[str, Advance] = {"native": chain.advance, "numpy": numpy_chain.advance}

SHARPENED = 0.9  # with `anneal`, the corners are removed after this fraction of the steps


class NoFiniteStart(ValueError):
    """Raised if no start gave a finite loss."""


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
    threads: int | None = None,
    progress: Progress = lambda done, best: None,
) -> list[Member]:
    """Train `starts` members of each architecture, and return all members, the best first.

    Args:
        architectures: the forms to try.
        training: the points to train on, in random order; an array [rows, n] stands for a `Sample` of it.
        validation: the points that select members.
        starts: the number of members of each form.
        steps: the number of steps of the members that are trained to the end.
        keep: the minimum number of members that are trained to the end.
        batch: the number of points in a step.
        lr: Adam's step size; it falls to 0 by a half cosine.
        seed: member i of form j starts with the generator of (seed, j, i).
        anneal: for "plu": start with rounded corners; rho falls from 0.9 to 0.02, then to 0.
        every: steps between validations; 0 validates 100 times.
        patience: a member stops after this number of validations without an improvement. Those before `anneal` has
            removed the corners do not count.
        engine: "native" or "numpy"; by default native if possible.
        threads: the number of threads that share the members; by default one for each processor.
        progress: called with the fraction of the work done and the lowest loss so far. If it returns true, the search
            returns its results so far, after the first validation at the earliest. Ctrl-C does the same, with a
            warning; before the first validation it raises KeyboardInterrupt.

    The loss is the mean of |z|^2 / 2 - log|det dz/dx|: the negative log-likelihood without n/2 log(2 pi).

    >>> x = np.random.default_rng(0).standard_normal((1000, 2)) * [1.0, 0.5]
    >>> best, *others = search([Architecture(2, 4)], Sample(x[:800]), Sample(x[800:]), starts=4, steps=200)
    >>> best.network().log_prob(x[:5]).shape, len(others), bool(best.loss <= others[0].loss)
    ((5,), 3, True)
    """
    for name, value in {"steps": steps, "starts": starts, "keep": keep, "batch": batch}.items():
        as_count(name, value, 1)
    _check(architectures, anneal, lr, patience)
    n = architectures[0].features
    given, decide = prepare_sample(training, n, "training"), prepare_sample(validation, n, "validation")
    check_spread(given)
    every = as_count("every", every) or max(1, steps // 100)
    plan = MemberSteps(
        rate=lr * half_cosine(steps),
        training=given,
        batch=min(batch, len(given.x)),
        rho=rho_schedule(steps) if anneal else np.zeros(steps),
        tests=decide,
        every=every,
        patience=patience,
    )
    members = []
    for j, i in np.ndindex(len(architectures), starts):
        form, rng = architectures[j], np.random.default_rng([seed, j, i])
        members.append(initial_member(start(form, rng), int(rng.integers(2**63)), steps // every))
    race = _DensityRace(tuple(members), plan, _ENGINES[choose_engine(engine, "chain")], threads)
    work = estimate_work(race.sizes(), steps, keep)
    race, interrupted = halve(race, steps, every, keep, work, progress, [race.sharp])
    # a member that was never validated, or diverged before, gets the loss of its running mean
    found = [_renew(one, decide) if one.best_step == 0 else one for one in race.ended]
    found.sort(key=lambda one: one.loss)
    progress(1.0, found[0].loss)
    if interrupted:
        warnings.warn(interruption(race.step, steps), stacklevel=2)
    if not math.isfinite(found[0].loss):
        raise NoFiniteStart(f"no start gave a finite loss; standardise the columns, or reduce lr from {lr}")
    return found


def rho_schedule(steps: int) -> Array:
    """Return rho of each step: from 0.9 to 0.02 geometrically, then 0."""
    rounded = math.floor(SHARPENED * steps)
    return np.concatenate([np.geomspace(0.9, 0.02, rounded), np.zeros(steps - rounded)])


@dataclass(frozen=True)
class _DensityRace:
    """The `Race` of density networks."""

    members: tuple[Member, ...]
    plan: MemberSteps
    engine: Advance
    threads: int | None
    ended: tuple[Member, ...] = ()
    step: int = 0

    @property
    def sharp(self) -> int:
        """The first step with kinks; 0 without `anneal`."""
        return int((self.plan.rho > 0).sum())

    def sizes(self) -> list[int]:
        return [one.architecture.parameters for one in self.members]

    def standings(self) -> Array:
        return np.array([one.loss for one in self.members])

    def least(self) -> float:
        return min(one.loss for one in (*self.members, *self.ended))

    def advance(self, last: int) -> _DensityRace:
        members, part = tuple(one.copy() for one in self.members), slice(self.step, last)
        # while corners shrink, the function changes, so validations do not show whether a member still improves
        patience = math.inf if self.step < self.sharp else self.plan.patience
        plan = replace(self.plan, rate=self.plan.rate[part], rho=self.plan.rho[part], patience=patience)
        self.engine(members, plan, self.threads)
        if last == self.sharp:
            members = tuple(_renew(one, plan.tests) for one in members)
        return replace(self, members=members, step=last)

    def drop(self, worse: Array) -> _DensityRace:
        ended = [one for one, out in zip(self.members, worse, strict=True) if out]
        if self.step < self.sharp:
            ended = [_renew(one, self.plan.tests) for one in ended]
        kept = tuple(one for one, out in zip(self.members, worse, strict=True) if not out)
        return replace(self, members=kept, ended=(*self.ended, *ended))


def _renew(member: Member, validation: Sample | None) -> Member:
    """Return a member with new records, which begin with its running mean as a network with kinks."""
    found = replace(member, best=member.average.copy(), best_step=member.steps, mark=math.inf, waited=0)
    with np.errstate(all="ignore"):  # members that diverge
        loss = mean_loss(found.network(), validation) if validation else math.inf
    return replace(found, loss=float(found.theta.dtype.type(loss)) if math.isfinite(loss) else math.inf)


def _check(architectures: Sequence[Architecture], anneal: bool, lr: float, patience: float) -> None:
    """Raise ValueError unless these options are valid."""
    features = [form.features for form in architectures]
    if len(set(features)) != 1:
        raise ValueError(f"architectures must not be empty and must have the same features, got {features}")
    if anneal and {form.activation for form in architectures} != {"plu"}:
        raise ValueError('anneal needs the activation "plu": "smooth" learns its rounding, "leaky" has none')
    if not 0 < lr < math.inf:
        raise ValueError(f"lr must be positive and finite, got {lr!r}; the default is 0.01")
    if not patience > 0:
        raise ValueError(f"patience must be positive, got {patience!r}; math.inf turns it off")
