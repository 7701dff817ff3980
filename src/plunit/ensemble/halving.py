"""The best of many starts and shapes: train all for a while, go on with the better half, and so on.

This is successive halving (Jamieson and Talwalkar, 2016; docs/literature.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plunit.base.stopping import Pace
from plunit.ensemble.arrays import Array
from plunit.ensemble.data import Rows, points
from plunit.ensemble.mlp import MLP, initial
from plunit.ensemble.run_state import Part, State, Steps, Validation
from plunit.ensemble.training import ENGINES, Engine, begin, engine_for

LAST = 0.3
"""The last layer starts smaller than the others by this factor: near the mean of the targets."""

RUNGS = (0.125, 0.25, 0.5, 1.0)
"""After these parts of the steps the worse half of the members ends; after the last all do."""


@dataclass(frozen=True)
class Candidate:
    """One member of a search.

    Attributes:
        network: its form.
        start: the number of its start, from 0.
        loss: the least loss on the rows of validation.
        best_step: the number of steps after which it was found.
        steps: the number of steps taken.
        theta: the parameters then [rows].
        history: losses of training, one every `stride` steps taken.
        looks: losses of validation, one every `every` steps taken.
    """

    network: MLP
    start: int
    loss: float
    best_step: int
    steps: int
    theta: Array
    history: Array
    looks: Array


@dataclass
class _Group:
    """The members of one shape that still train."""

    state: State
    starts: Array
    seeds: Array


def search(
    networks: Sequence[MLP],
    rows: Rows,
    validation: Validation,
    *,
    starts: int,
    steps: int,
    keep: int = 1,
    seed: int = 0,
    loss: str = "square",
    lr: float = 0.01,
    decay: Any = 0.0,
    alpha: float = 0.1,
    c: float = 1.0,
    stride: int = 16,
    first_starts: Sequence[Array] = (),
    engine: str | None = None,
    progress: Callable[[float, float], object] = lambda done, best: None,
) -> list[Candidate]:
    """Train `starts` members of each network, and return all of them, the best first.

    Args:
        networks: the shapes.
        rows: the table to train on; its `seeds` are not used, each member draws by its own.
        validation: the rows that decide.
        starts: members of each shape.
        steps: for those that are trained to the end.
        keep: so many members, and no fewer, are trained to the end.
        seed: member i of shape j starts with the generator of (seed, j, i).
        loss: a name of `LOSSES`.
        lr: Adam's step size; it falls to 0 by a half cosine.
        decay: decoupled weight decay, a number or one for each start.
        alpha: the outer slope of PLU.
        c: the half-width of its inner piece.
        stride: the loss of training is recorded every `stride` steps.
        first_starts: parameters [rows, n] for each network, where its first n members start instead.
        engine: "native" or "numpy"; by default native where possible.
        progress: called now and then with the part of the work that is done and the least loss so far. If it returns
            true, the search ends with what it has found.
    """
    schedule = 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps))
    options = {"loss": loss, "lr": lr, "decay": decay, "alpha": alpha, "c": c}
    lengths = {"stride": stride, "steps": steps, "every": validation.every}
    groups = [_begin(network, j, starts, seed, **options, **lengths) for j, network in enumerate(networks)]
    for group, theta in zip(groups, first_starts, strict=False):
        for part in (group.state.theta, group.state.running):
            part[:, : theta.shape[1]] = theta[:, :starts]
    advance = ENGINES[engine_for(groups[0].state.theta, engine)]
    for group, theta in zip(groups, first_starts, strict=False):
        _look(group.state, min(theta.shape[1], starts), rows, validation, advance)
    ended: list[Candidate] = []
    first, done, work, pace = 0, 0.0, _work(groups, steps, keep), Pace()
    rungs = [min(steps, math.ceil(part * steps / validation.every) * validation.every) for part in RUNGS]
    while groups and first < steps:
        last = pace.next(first, min(rung for rung in rungs if rung > first))
        advance([_part(group, rows, validation, first, schedule[first:last]) for group in groups])
        done += (last - first) * sum(group.state.members * group.state.network.rows for group in groups)
        first = last
        least = _least(groups, ended)
        stop = progress(min(done / work, 0.99), least)
        if stop and (first >= validation.every or math.isfinite(least)):  # before the first look nothing is known
            break
        if first in rungs[:-1]:
            groups = _halve(groups, first, ended, validation, keep)
    if groups:
        _halve(groups, first, ended, validation, 0)
    progress(1.0, _least(groups, ended))
    return sorted(ended, key=lambda one: (math.isnan(one.loss), one.loss))


def _part(group: _Group, rows: Rows, validation: Validation, first: int, schedule: Array) -> Part:
    network, theta = group.state.network, group.state.theta
    tests = points(Rows(validation.x, validation.y, validation.weight), 1, network, theta)
    given = points(replace(rows, seeds=group.seeds.tolist()), 1, network, theta)
    return group.state, Steps(first, schedule, given, tests, validation)


def _work(groups: list[_Group], steps: int, keep: int) -> float:
    """Estimate the steps of all rungs, times the parameters of their members; shapes are taken to end alike."""
    everyone = members = sum(group.state.members for group in groups)
    total, previous = 0.0, 0.0
    for part in RUNGS:
        total += members / everyone * (part - previous)
        previous, members = part, min(members, max(keep, members // 2))
    return total * steps * sum(group.state.members * group.state.network.rows for group in groups)


def _least(groups: list[_Group], ended: list[Candidate]) -> float:
    return min([float(group.state.best_loss.min()) for group in groups] + [one.loss for one in ended])


def _look(state: State, members: int, rows: Rows, validation: Validation, advance: Engine) -> None:
    """Record the losses of validation of the first members before their first step, by a step of size 0."""
    if not members:
        return
    some = state.select(slice(0, members))
    some = replace(some, lr=np.zeros_like(some.lr), looks=np.zeros((1, members), some.looks.dtype))
    tests = points(Rows(validation.x, validation.y, validation.weight), 1, state.network, some.theta)
    given = points(replace(rows, batch=0), 1, state.network, some.theta)
    advance([(some, Steps(0, np.ones(1), given, tests, replace(validation, every=1)))])
    state.best_loss[:members], state.mark[:members] = some.best_loss, some.mark
    state.best[:, :members] = some.theta


def _begin(network: MLP, shape: int, starts: int, seed: int, **options: Any) -> _Group:
    generators = [np.random.default_rng([seed, shape, i]) for i in range(starts)]
    scales = [1 / math.sqrt(n) for n in network.widths[:-1]]
    scales[-1] *= LAST
    theta = initial(network, generators, scales=scales, alpha=options["alpha"], c=options["c"])
    seeds = np.array([g.integers(2**63) for g in generators], dtype=np.uint64)
    return _Group(begin(network, theta, **options), np.arange(starts), seeds)


def _halve(groups: list[_Group], step: int, ended: list[Candidate], validation: Validation, keep: int) -> list[_Group]:
    """Move the worse half of all members, and those out of patience, to `ended`; return the others."""
    losses = np.concatenate([group.state.best_loss for group in groups])
    over = np.concatenate([group.state.waited >= validation.patience for group in groups])
    order = np.argsort(np.where(np.isnan(losses), np.inf, losses), kind="stable")
    chosen = np.zeros(len(losses), dtype=bool)
    if keep:
        chosen[order[: max(keep, len(losses) // 2)]] = True
    chosen &= ~over
    kept, at = [], 0
    for group in groups:
        mine = chosen[at : at + group.state.members]
        at += group.state.members
        ended += [_candidate(group, i, step, validation) for i in np.flatnonzero(~mine).tolist()]
        if mine.any():
            kept.append(_Group(group.state.select(mine), group.starts[mine], group.seeds[mine]))
    return kept


def _candidate(group: _Group, i: int, step: int, validation: Validation) -> Candidate:
    state = group.state
    seen = np.flatnonzero(np.isfinite(state.looks[:, i]))
    if state.waited[i] >= validation.patience and len(seen):  # it ended before the rung did
        step = int(seen[-1] + 1) * validation.every
    return Candidate(
        state.network,
        int(group.starts[i]),
        float(state.best_loss[i]),
        int(state.best_step[i]),
        step,
        state.best[:, i].copy(),
        history=state.history[np.isfinite(state.history[:, i]), i],
        looks=state.looks[seen, i],
    )
