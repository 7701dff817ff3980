"""Two maps before a density: `Columns` takes bounded and rounded columns to the whole line, `Whitening` standardises.

Whitening gives columns mean 0, variance 1 and no correlation; by itself it makes a normal density.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.ensemble.arrays import Array, Scale

SHRINKAGES = (1e-8, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Parts of the correlations that are given up; the rows of validation choose one."""

NODES = 64  # the probability of integers is a mean over so many points of their interval
INSIDE = 1 - 1e-9  # values are spread over this part of their interval: a point on its end may be on a bound


@dataclass(frozen=True)
class Whitening:
    """v = L^-1 (u - mean) / spread, with L L^T the matrix of correlations."""

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
        """Return the mean of |v|^2 / 2 - log|det dv/du|."""
        return float(np.average(0.5 * (self.forward(u) ** 2).sum(1), weights=weight)) - self.log_det


def whiten(training: tuple[Array, Array], validation: tuple[Array, Array] | None) -> Whitening:
    """Return the whitening of rows and weights, with the shrinkage that is best for those of validation.

    Correlations C become (1 - s) C + s I. Without rows of validation, s = 1.
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


@dataclass(frozen=True)
class Columns:
    """u = x, log(x - low), -log(high - x) or log((x - low) / (high - x)) for each column, by the bounds that it has."""

    low: Array  # [n], the least value, or -inf
    high: Array  # [n], the largest value, or inf
    step: Array  # [n], the distance of neighbouring values of a rounded column, or 0
    integer: Array  # [n], whether the values are integers; their intervals, value +- 1/2, are in the bounds
    margin: Array  # [n], how far inside a value on a bound is taken to be

    def spread(self, x: Array, rng: np.random.RandomState) -> Array:
        """Return rows of which rounded values are anywhere in their intervals, at random; within the bounds."""
        x = x + (rng.random_sample(x.shape) - 0.5) * (INSIDE * self.step)
        x = np.where(x < self.low, 2 * self.low - x, x)
        return np.where(x > self.high, 2 * self.high - x, x)

    def to_line(self, x: Array) -> tuple[Array, Array]:
        """Return u of rows within the bounds, and the sum of log(du/dx) of each row."""
        from_low, from_high = np.isfinite(self.low), np.isfinite(self.high)
        below = np.where(from_low, np.where(x > self.low, x - self.low, self.margin), 1.0)
        above = np.where(from_high, np.where(x < self.high, self.high - x, self.margin), 1.0)
        logs = np.log(below), np.log(above)
        width = np.where(from_low & from_high, self.high - self.low, 1.0)
        u = np.where(from_low | from_high, logs[0] - logs[1], x)
        return u, (np.log(width) - logs[0] - logs[1]).sum(1)

    def from_line(self, u: Array) -> Array:
        """Return the rows x; integers where the column has them."""
        from_low, from_high = np.isfinite(self.low), np.isfinite(self.high)
        with np.errstate(over="ignore", invalid="ignore"):
            part = 1 / (1 + np.exp(-u))
            x = np.where(from_low, self.low + np.exp(u), np.where(from_high, self.high - np.exp(-u), u))
            x = np.where(from_low & from_high, self.low * (1 - part) + self.high * part, x)
        rounded = np.clip(np.rint(x), np.ceil(self.low), np.floor(self.high)) + 0.0  # -0.0 is 0
        return np.where(self.integer, rounded, np.clip(x, self.low, self.high))

    def admits(self, x: Array) -> Array:
        """Return whether each value is possible, [rows, n]: within the bounds, and an integer where it must be."""
        return np.asarray((x >= self.low) & (x <= self.high) & (~self.integer | (x == np.rint(x))))

    def nodes(self) -> Array:
        """Return offsets [nodes, n] in the intervals of integers: the middles of equal parts, each column shuffled."""
        if not self.integer.any():
            return np.zeros((1, len(self.low)))
        middles = np.tile((np.arange(NODES) + 0.5) / NODES - 0.5, (len(self.low), 1))
        return np.asarray(np.random.default_rng(0).permuted(middles, axis=1).T * self.integer)
