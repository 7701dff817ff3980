"""Networks of several sizes, trained on several splits of the rows; the mean validation loss selects the size.

A `Whitening` gives columns mean 0, variance 1 and no correlation; a network without blocks is then a normal density.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

import numpy as np

from plunit.base.machine import processors
from plunit.base.progress import PAUSE_SECONDS, Progress
from plunit.densities import Architecture, DensityNetwork, NoFiniteStart, Sample, search
from plunit.densities.chain import PreparedSample, prepare_sample
from plunit.ensemble.arrays import Array, Scale
from plunit.sklearn.density.columns import Columns
from plunit.sklearn.folds import FEWEST_ROWS, LARGEST_FOLD

SHRINKAGES = (1e-8, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Shrinkage factors of the correlations; the validation rows select one."""

COPIES, MOST_COPIED = 8, 50_000
"""The number of copies in which rounded values are spread out, and the maximum number of rows with copies."""


@dataclass(frozen=True)
class Whitening:
    """v = L^-1 (u - mean) / spread, where L L^T is the correlation matrix."""

    mean: Array  # [n]
    spread: Array  # [n], standard deviations
    lower: Array  # [n, n], L

    def forward(self, u: Array) -> Array:
        """Return the rows v."""
        return np.linalg.solve(self.lower, ((u - self.mean) / self.spread).T).T

    def inverse(self, v: Array) -> Array:
        """Return the rows u."""
        return np.asarray((v @ self.lower.T) * self.spread + self.mean)

    @property
    def log_det(self) -> float:
        """log|det dv/du|."""
        return float(-np.log(self.spread).sum() - np.log(self.lower.diagonal()).sum())

    def loss(self, u: Array, weight: Array) -> float:
        """Return the weighted mean of |v|^2 / 2 - log|det dv/du|."""
        return float(np.average(0.5 * (self.forward(u) ** 2).sum(1), weights=weight)) - self.log_det


def whiten(training: tuple[Array, Array], validation: tuple[Array, Array] | None) -> Whitening:
    """Return the whitening of weighted training rows, with the best shrinkage for the validation rows.

    Correlations C become (1 - s) C + s I. Without validation rows, s = 1.
    """
    u, weight = training
    scale = Scale.of(u, weight)
    scaled = scale(u)
    correlation = (scaled * weight[:, None]).T @ scaled / weight.sum()
    found = [
        Whitening(scale.mean, scale.spread, np.linalg.cholesky((1 - s) * correlation + s * np.eye(len(correlation))))
        for s in (SHRINKAGES if validation else SHRINKAGES[-1:])
    ]
    return min(found, key=lambda one: one.loss(*validation)) if validation else found[0]


def normal_network(features: int) -> DensityNetwork:
    """Return the network without blocks, z = x; after whitening, its density is normal."""
    form = Architecture(features, 0)
    return DensityNetwork(form, np.zeros(form.parameters), np.arange(features)[None], np.ones((1, features)))


@dataclass(frozen=True)
class WhitenedSplit:
    """Whitened training and validation rows; losses plus `offset` are in the units of the data, in nats."""

    whitening: Whitening
    training: PreparedSample
    validation: PreparedSample
    seed: int
    offset: float


@dataclass(frozen=True)
class BestStart:
    """The best start of one size on one split.

    `loss` and `looks` are minus the mean log-likelihood of the validation rows. `loss` is NaN if Ctrl-C ended the
    search before.
    """

    form: Architecture
    network: DensityNetwork
    loss: float
    looks: Array
    best_step: int
    steps: int


def repeat(x: Array, weight: Array) -> tuple[Array, Array]:
    """Return distinct rows repeated by their weights, and the weight of each copy."""
    unit = max(weight.min(), weight.sum() / MOST_COPIED)
    times = np.maximum(1, np.rint(weight / unit)).astype(np.int64)
    return np.repeat(x, times, axis=0), np.repeat(weight / times, times)


def deal(rows: int, share: float, count: int, rng: np.random.RandomState) -> list[tuple[Array, Array]]:
    """Return `count` pairs of training and validation rows; validation rows differ if there are enough."""
    order = rng.permutation(rows)
    if rows < FEWEST_ROWS:
        return [(order, order)] * count
    size = min(max(round(share * rows), 2), rows - 2, LARGEST_FOLD)
    parts = [np.take(order, np.arange(i * size, (i + 1) * size), mode="wrap") for i in range(count)]
    return [(rng.permutation(np.setdiff1d(order, part)), part) for part in parts]


def make_splits(
    x: Array, weight: Array, columns: Columns, share: float, count: int, rng: np.random.RandomState
) -> list[WhitenedSplit]:
    """Return splits of the distinct rows x, with several copies of rounded values spread out."""
    copies = min(COPIES, max(1, MOST_COPIED // len(x))) if columns.step.any() else 1
    on_line = [columns.to_line(columns.scatter(x, rng)) for _ in range(copies)]
    u, slopes = np.stack([one[0] for one in on_line]), np.stack([one[1] for one in on_line])
    splits = []
    for train, test in deal(len(x), share, count, rng):
        given, held = ((u[:, part].reshape(-1, x.shape[1]), np.tile(weight[part], copies)) for part in (train, test))
        white = whiten(given, held if train is not test else None)
        mean_slope = np.average(slopes[:, test].ravel(), weights=held[1])
        offset = 0.5 * x.shape[1] * math.log(2 * math.pi) - white.log_det - mean_slope
        order = rng.permutation(len(given[0]))
        training, validation = _sample(white, given[0][order], given[1][order]), _sample(white, *held)
        splits.append(WhitenedSplit(white, training, validation, int(rng.randint(2**31 - 1)), float(offset)))
    return splits


def _sample(white: Whitening, u: Array, weight: Array) -> PreparedSample:
    return prepare_sample(Sample(white.forward(u), None if np.ptp(weight) == 0 else weight), u.shape[1], "X")


def best_starts(
    splits: Sequence[WhitenedSplit],
    sizes: Sequence[Architecture],
    progress: Progress,
    **options: Any,
) -> tuple[list[list[BestStart]], bool]:
    """Return the best start of each size on each split, [size][split], and whether Ctrl-C ended the search.

    The options are those of `search`.
    """
    tasks = [(form, split) for form in sizes for split in splits]
    options["threads"] = max(1, processors() // len(tasks))  # per search; the searches run in parallel
    shared = _Progress([form.parameters if form.blocks else 0 for form, _ in tasks], progress)
    order = sorted(range(len(tasks)), key=lambda i: -tasks[i][0].parameters)  # the longest first
    with ThreadPoolExecutor(processors()) as pool:
        try:
            jobs = {i: pool.submit(_best_start, *tasks[i], shared, i, options) for i in order}
            try:
                shared.begin.set()
                _wait(jobs.values())
            except KeyboardInterrupt:
                if not math.isfinite(shared.best):
                    raise
                shared.asked = shared.interrupted = True  # the searches stop at their next pause
            _wait(jobs.values())
            found = [jobs[i].result() for i in range(len(tasks))]
        except BaseException:
            shared.stop = True
            shared.begin.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    progress(1.0, shared.best)
    return [found[i : i + len(splits)] for i in range(0, len(found), len(splits))], shared.interrupted


def _wait(jobs: Collection[Future[BestStart]]) -> None:
    """Wait until all jobs have ended; timeouts are needed because a thread can miss Ctrl-C as it starts to wait."""
    while wait(jobs, timeout=PAUSE_SECONDS).not_done:
        pass


def mean_losses(found: Sequence[Sequence[BestStart]], splits: Sequence[WhitenedSplit]) -> Array:
    """Return the mean loss of each size over the splits on which it was trained; inf if there are none.

    If sizes were trained on different splits, each loss is relative to a normal density on its split.
    """
    losses = np.array([[one.loss for one in of_size] for of_size in found])
    if np.isnan(losses).any():
        normal = np.array([_normal_loss(split) for split in splits])
        losses += normal.mean() - normal
    trained = [row[~np.isnan(row)] for row in losses]
    return np.array([np.mean(row) if len(row) else math.inf for row in trained])


def _normal_loss(split: WhitenedSplit) -> float:
    half = 0.5 * (split.validation.x.astype(np.float64) ** 2).sum(1)
    return float(np.average(half, weights=split.validation.weight)) + split.offset


def _best_start(form: Architecture, split: WhitenedSplit, shared: _Progress, i: int, options: Any) -> BestStart:
    shared.begin.wait()
    if form.blocks == 0:  # only the whitening
        loss = _normal_loss(split)
        return BestStart(form, normal_network(form.features), loss, np.array([loss]), 0, 0)
    if shared.asked:
        return BestStart(form, normal_network(form.features), math.nan, np.empty(0), 0, 0)
    options = {"seed": split.seed, "progress": shared.part(i, split.offset), **options}
    try:
        member = search([form], split.training, split.validation, **options)[0]
    except NoFiniteStart:
        return BestStart(form, normal_network(form.features), math.inf, np.array([math.inf]), 0, 0)
    looked = np.flatnonzero(np.isfinite(member.looks))
    steps = int(looked[-1] + 1) * options["every"]
    looks = member.looks[looked].astype(np.float64) + split.offset
    return BestStart(form, member.network(), member.loss + split.offset, looks, member.best_step, steps)


class _Progress:
    """The combined progress of many parallel searches."""

    def __init__(self, work: Sequence[float], progress: Progress) -> None:
        self.work, self.progress = np.asarray(work, float), progress
        self.done, self.best, self.lock = np.zeros(len(work)), math.inf, Lock()
        self.stop = self.asked = self.interrupted = False  # after an error; by `progress` or Ctrl-C; by Ctrl-C
        self.begin = Event()  # set when all tasks are in the pool; only then can Ctrl-C keep results

    def part(self, i: int, offset: float) -> Progress:
        """Return the progress function of task i; after an error in another task it raises, to end the search."""

        def call(done: float, best: float) -> object:
            if self.stop:
                raise CancelledError
            with self.lock:
                self.done[i], self.best = done, min(self.best, best + offset)
                if self.progress(min(float(self.done @ self.work / self.work.sum()), 0.99), self.best):
                    self.asked = True
                return self.asked

        return call
